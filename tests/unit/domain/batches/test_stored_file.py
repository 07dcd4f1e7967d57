"""What is unlike a manifest."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.stored_file import StoredFile, Unlike, unlike_manifest
from tests.support.builders import a_file, a_manifest

ONE = a_file("one.parquet", FileSlice(0, 0, 4, 5), FileSlice(1, 7, 8, 2), length_bytes=1_000)
TWO = a_file("two.parquet", FileSlice(0, 5, 8, 4), length_bytes=900)
MANIFEST = a_manifest(files=(ONE, TWO))
AS_COMMITTED = {
    "one.parquet": StoredFile(1_000, ONE.checksum),
    "two.parquet": StoredFile(900, TWO.checksum),
}

EMPTY = a_file("empty.parquet", length_bytes=100)
LENGTHS = {"one.parquet": 1_000, "two.parquet": 900, "empty.parquet": 100}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(LENGTHS, None, id="as committed"),
        pytest.param(
            {"one.parquet": 1_000, "two.parquet": 900}, None, id="a file without a row is missing"
        ),
        pytest.param(
            LENGTHS | {"part.parquet": 5},
            Unlike("part.parquet", "nothing, for the manifest does not name it", "a file"),
            id="one more",
        ),
        pytest.param(
            LENGTHS | {"two.parquet": 899},
            Unlike("two.parquet", "900 bytes", "899 bytes"),
            id="one shorter",
        ),
        pytest.param(
            {"one.parquet": 1_000},
            Unlike("two.parquet", "900 bytes", "no such file"),
            id="one missing",
        ),
    ],
)
def test_what_is_unlike_the_manifest(stored: Mapping[str, int], expected: Unlike | None) -> None:
    manifest = a_manifest(files=(ONE, TWO, EMPTY))

    assert unlike_manifest(manifest, stored) == expected


@pytest.mark.parametrize(
    ("now", "committed", "is_comparable"),
    [
        ("MD5-of-0MD5-of-512CRC32C:00", "MD5-of-0MD5-of-512CRC32C:00", True),
        ("MD5-of-0MD5-of-512CRC32C:01", "MD5-of-0MD5-of-512CRC32C:00", True),
        ("MD5-of-0MD5-of-2048CRC32C:01", "MD5-of-0MD5-of-512CRC32C:00", False),
        ("MD5-of-2048MD5-of-512CRC32C:01", "MD5-of-0MD5-of-512CRC32C:00", False),
        ("MD5-of-2048MD5-of-512CRC32C:00", "MD5-of-2048MD5-of-512CRC32C:00", True),
        ("MD5-of-2048MD5-of-512CRC32C:01", "MD5-of-2048MD5-of-512CRC32C:00", True),
        # Erasure coding makes another checksum under the same name.
        ("RS-6-3-1024k/MD5-of-0MD5-of-512CRC32C:01", "MD5-of-0MD5-of-512CRC32C:00", False),
        ("MD5-of-0MD5-of-512CRC32C:01", "RS-6-3-1024k/MD5-of-0MD5-of-512CRC32C:00", False),
        (
            "RS-6-3-1024k/MD5-of-0MD5-of-512CRC32C:01",
            "RS-6-3-1024k/MD5-of-0MD5-of-512CRC32C:00",
            True,
        ),
        ("COMPOSITE-CRC32C:01", "MD5-of-0MD5-of-512CRC32C:00", False),
        ("COMPOSITE-CRC32C:01", "COMPOSITE-CRC32C:00", True),
    ],
)
def test_a_checksum_of_another_kind_says_nothing_of_the_bytes(
    now: str, committed: str, is_comparable: bool
) -> None:
    found = StoredFile.beside(900, now, committed)

    assert found.is_stored_anew is not is_comparable
    assert (found.trouble is None) is is_comparable
    assert found.checksum == now


def test_a_replaced_file_is_not_missed_and_not_welcome() -> None:
    manifest = a_manifest(files=(a_file("one.parquet"),))
    assert unlike_manifest(manifest, {}, {"one.parquet"}) is None
    assert unlike_manifest(manifest, {"one.parquet": 1_000}, {"one.parquet"}) == Unlike(
        "one.parquet", "nothing, for a repair took its place", "a file"
    )
