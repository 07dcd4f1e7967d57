from __future__ import annotations

import pytest

from tallystick.errors import StorageRefused
from tallystick.storage.paths import checked, is_hidden, parent_of


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


@pytest.mark.parametrize(
    "name", ["_SUCCESS", "_tally.json", "_temporary", ".part.crc", ".x=1", "p.parquet._COPYING_"]
)
def test_spark_does_not_see(name: str) -> None:
    assert is_hidden(name)


@pytest.mark.parametrize("name", ["p.parquet", "p.parquet.tmp", "_x=1.parquet", "x._COPYING", "a_"])
def test_spark_does_see(name: str) -> None:
    assert not is_hidden(name)
