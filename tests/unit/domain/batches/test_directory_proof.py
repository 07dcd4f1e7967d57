"""What a directory proves of its manifest, and what is unlike one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from tallystick.domain.batches.directory_proof import DirectoryLook, offsets_of, proof_of
from tallystick.domain.batches.landed import FileSlice, LandedFile, ReadBack
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.batches.stored_file import StoredFile, Unlike, unlike_manifest
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.builders import a_file, a_manifest, planned

# Partition 0 holds [0, 10) with a marker at 4, in two files; a third file has no row.
FIRST = a_file("first", FileSlice(0, 0, 5, 5))
SECOND = a_file("second", FileSlice(0, 6, 9, 4))
EMPTY = a_file("empty")
MANIFEST = a_manifest(
    AccountedRange(planned(0, 10), 9, {HoleClass.CONTROL: OffsetRuns.of([(4, 5)])}),
    files=(FIRST, SECOND, EMPTY),
)
SOUND = {"first": FIRST, "second": SECOND, "empty": EMPTY}
ROWS = [(0, 4), (5, 10)]


@dataclass(frozen=True)
class Lying:
    """What lies in the directory."""

    files: dict[str, LandedFile]
    landed: list[tuple[int, int]] | None
    """None when something there is no landed file."""
    doubled: list[tuple[int, int]] = field(default_factory=list)
    strange: tuple[str, ...] = ()

    def look(self) -> DirectoryLook:
        lengths = {name: each.length_bytes for name, each in self.files.items()}
        lengths |= dict.fromkeys(self.strange, 7)
        checksums = {name: each.checksum for name, each in self.files.items()}
        found = None
        if self.landed is not None:
            found = ReadBack(
                tuple(self.files.values()),
                {0: OffsetRuns.of(self.landed)} if self.landed else {},
                {0: OffsetRuns.of(self.doubled)},
            )
        return DirectoryLook(lengths, checksums, found)


def without(*names: str) -> dict[str, LandedFile]:
    return {name: each for name, each in SOUND.items() if name not in names}


def changed(name: str, **changes: object) -> dict[str, LandedFile]:
    return SOUND | {name: replace(SOUND[name], **changes)}  # type: ignore[arg-type]


SHORTER = changed("first", length_bytes=999)
OTHER_SUM = changed("first", checksum="crc32c:ffffffff")
OTHER_ROWS = changed("first", slices=(FileSlice(0, 0, 5, 6),))
CASES = {
    # id: what lies there, files that a repair has replaced, problems, notes
    "sound": (Lying(SOUND, ROWS), (), [], []),
    "without a file that had no row": (
        Lying(without("empty"), ROWS), (), [], ["empty is missing"]
    ),
    "without a file": (
        Lying(without("first"), [(6, 10)]), (), ["first is missing"], []
    ),
    "without a replaced file": (Lying(without("first"), [(6, 10)]), ("first",), [], []),
    "with the replaced file still there": (Lying(SOUND, ROWS), ("first",), [], []),
    "with the replaced file still there, damaged": (Lying(SHORTER, None), ("first",), [], []),
    "shorter, the same rows": (
        Lying(SHORTER, ROWS), (), [],
        ["first has 999 bytes, 1000 were committed; its offsets are as the manifest says"],
    ),
    "another checksum, the same rows": (
        Lying(OTHER_SUM, ROWS), (), [],
        ["first has checksum crc32c:ffffffff, crc32c:00000000 was committed;"
         " its offsets are as the manifest says"],
    ),
    "shorter, and nothing can be counted": (
        Lying(SHORTER, None), (),
        ["first has 999 bytes, 1000 were committed, and it can't be told what it holds"], [],
    ),
    "shorter, beside a stray": (
        Lying(SHORTER, ROWS, strange=("stray",)), (),
        ["first has 999 bytes, 1000 were committed, and it can't be told what it holds"],
        ["stray is in no manifest"],
    ),
    "a stray": (Lying(SOUND, ROWS, strange=("stray",)), (), [], ["stray is in no manifest"]),
    "a stray that is no landed file": (
        Lying(SOUND, None, strange=("stray",)), (), [], ["stray is in no manifest"]
    ),
    "other slices": (
        Lying(OTHER_ROWS, ROWS), (), ["first holds other offsets than the manifest says"], []
    ),
    "a row is missing": (
        Lying(SOUND, [(0, 4), (6, 10)]), (), ["orders-0: 1 offsets have no row: 5"], []
    ),
    "a row at the hole": (
        Lying(SOUND, [(0, 10)]), (), ["orders-0: 1 rows are not the manifest's: 4"], []
    ),
    "a row twice": (
        Lying(SOUND, ROWS, doubled=[(7, 9)]), (),
        ["orders-0: 2 offsets are there twice: [7, 9)"], [],
    ),
    "nothing at all": (
        Lying({}, []), (), ["first is missing", "second is missing"], ["empty is missing"]
    ),
    "everything replaced": (Lying({}, []), ("first", "second", "empty"), [], []),
}  # fmt: skip


@pytest.mark.parametrize(("lying", "gone", "problems", "notes"), CASES.values(), ids=CASES)
def test_what_a_directory_proves(
    lying: Lying, gone: tuple[str, ...], problems: list[str], notes: list[str]
) -> None:
    proof = proof_of(MANIFEST, gone, lying.look())
    assert list(proof.problems) == problems
    assert list(proof.notes) == notes
    assert proof.is_proven == (not problems)


def test_offsets_of_replaced_files_are_not_asked_for() -> None:
    assert offsets_of(MANIFEST) == {0: OffsetRuns.of(ROWS)}
    assert offsets_of(MANIFEST, {"first"}) == {0: OffsetRuns.of([(6, 10)])}
    assert offsets_of(MANIFEST, {"first", "second"}) == {}


def test_a_batch_of_holes_alone_needs_no_file() -> None:
    holes = {HoleClass.ABORTED: OffsetRuns.of([(0, 10)])}
    manifest: Manifest = a_manifest(AccountedRange(planned(0, 10), 0, holes))
    assert proof_of(manifest, (), Lying({}, []).look()).is_proven


ONE = a_file("one.parquet", FileSlice(0, 0, 4, 5), FileSlice(1, 7, 8, 2), length_bytes=1_000)
TWO = a_file("two.parquet", FileSlice(0, 5, 8, 4), length_bytes=900)
AS_COMMITTED = {
    "one.parquet": StoredFile(1_000, ONE.checksum),
    "two.parquet": StoredFile(900, TWO.checksum),
}

NOTHING = a_file("empty.parquet", length_bytes=100)
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
    manifest = a_manifest(files=(ONE, TWO, NOTHING))

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
