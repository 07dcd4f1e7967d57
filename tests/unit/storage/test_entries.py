"""What WebHDFS tells of entries and of its clock, and what readers read of a directory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.errors import StorageRefused
from tallystick.ports.file_store import StoredEntry
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.paths import checked, parent_of
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import Answer, scripted_server

STATUS = {
    "type": "FILE",
    "length": 10,
    "modificationTime": 1_000,
    "fileId": 16_400,
    "permission": "644",
    "owner": "landing",
    "group": "hadoop",
}


class OneFile:
    """NameNodes that list one file with this status."""

    def __init__(self, status: dict[str, Any]) -> None:
        self._status = status

    def ask(self, path: str, question: Callable[[Any], Any]) -> Any:
        return question(SimpleNamespace(hdfs=self))

    def list(self, path: str, *, status: bool) -> list[tuple[str, dict[str, Any]]]:
        return [("a.parquet", self._status)]


def version_of(**more: Any) -> str:
    store = WebHdfsFileStore(OneFile({**STATUS, **more}), "hdfs://scripted")  # type: ignore[arg-type]
    [entry] = store.entries("/landing")
    return entry.version


@pytest.mark.parametrize(
    "change",
    [
        {"fileId": 16_401},
        {"modificationTime": 1_001},
        {"childrenNum": 1},
        {"permission": "600"},
        {"owner": "hdfs"},
        {"group": "hdfs"},
        {"aclBit": True},
        {"encBit": True},
        {"ecPolicy": "RS-6-3-1024k"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_a_file_shows_in_its_version(change: dict[str, Any]) -> None:
    assert version_of() == version_of() != version_of(**change)


@pytest.mark.parametrize("number", [None, 0])
def test_without_a_number_of_the_file_nobody_can_tell_it_from_another_one(
    number: int | None,
) -> None:
    assert version_of(fileId=number) == ""


@pytest.mark.parametrize(
    ("more", "checksum"), [({}, "MD5:00"), ({"ecPolicy": "XOR-2-1-1024k"}, "XOR-2-1-1024k/MD5:00")]
)
def test_a_checksum_names_the_coding_that_it_was_made_by(
    more: dict[str, Any], checksum: str
) -> None:
    store = WebHdfsFileStore(OneFile({**STATUS, **more}), "hdfs://scripted")  # type: ignore[arg-type]
    [entry] = store.entries("/landing")
    assert entry.checksum("MD5:00") == checksum


class OneDate:
    """NameNodes whose answers bear this date."""

    def __init__(self, date: str) -> None:
        self._date = date

    def ask(self, path: str, question: Callable[[Any], Any]) -> Any:
        return question(SimpleNamespace(date=lambda: self._date))


@pytest.mark.parametrize(
    ("date", "clock_ms"),
    [
        ("Mon, 23 Nov 2026 15:37:53 GMT", 1_795_448_273_000),
        ("Mon, 23 Nov 2026 15:37:53 GMT, Mon, 23 Nov 2026 15:37:53 GMT", 1_795_448_273_000),
        ("", None),
        ("soon", None),
    ],
)
def test_the_clock_is_the_date_of_an_answer(date: str, clock_ms: int | None) -> None:
    store = WebHdfsFileStore(OneDate(date), "hdfs://scripted")  # type: ignore[arg-type]
    assert store.clock_ms() == clock_ms


def test_a_file_system_that_refuses_to_say_tells_no_time() -> None:
    with scripted_server(Answer.remote("AccessControlException")) as server:
        store = WebHdfsFileStore(NameNodes([server.url], user="ada"), "hdfs://scripted")
        assert store.clock_ms() is None


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


@pytest.mark.parametrize(
    "path", ["relative", "", "/a/../b", "/a/./b", "/a//b", "//a", "/a:b", "/a\0"]
)
def test_a_path_that_no_store_could_hold_is_refused(path: str) -> None:
    with pytest.raises(StorageRefused):
        checked(path)


@pytest.mark.parametrize(("path", "kept"), [("/", "/"), ("/a/", "/a"), ("/a/b c%20", "/a/b c%20")])
def test_a_path_is_kept_as_it_is(path: str, kept: str) -> None:
    assert checked(path) == kept


def test_the_parent_of_a_path() -> None:
    assert (parent_of("/a/b"), parent_of("/a"), parent_of("/")) == ("/a", "/", "/")
