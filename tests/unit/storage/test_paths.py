from __future__ import annotations

import pytest

from tallystick.errors import StorageRefused
from tallystick.storage.any_store import checked, parent_of


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
