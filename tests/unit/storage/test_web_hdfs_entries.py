"""By what a listing of WebHDFS tells that a file is another one, or may be read by others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.storage.web_hdfs import WebHdfsFileStore

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
