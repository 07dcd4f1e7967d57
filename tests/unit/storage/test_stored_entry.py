"""What readers read of a directory, and what all of them skip."""

from __future__ import annotations

import pytest

from tallystick.ports.file_store import StoredEntry


@pytest.mark.parametrize(
    ("name", "is_directory"),
    [
        ("p.parquet", False),
        ("p.parquet.tmp", False),
        ("_x=1.parquet", False),
        ("p.parquet._COPYING_", False),
        ("_day=1", True),
        ("a_", True),
        ("_metadata", True),
        ("_common_metadata_of_old", True),
    ],
)
def test_readers_read(name: str, is_directory: bool) -> None:
    assert StoredEntry(name, is_directory, 0).is_read


@pytest.mark.parametrize(
    ("name", "is_directory"),
    [
        ("_SUCCESS", False),
        ("_tally.json", False),
        ("_metadata", False),
        (".part.crc", False),
        ("_p.parquet._COPYING_", False),
        ("_temporary", True),
        (".day=1", True),
    ],
)
def test_readers_skip(name: str, is_directory: bool) -> None:
    assert not StoredEntry(name, is_directory, 0).is_read
