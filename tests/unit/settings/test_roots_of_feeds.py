"""Roots of feeds inside one another, as far as one folder of feed files shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.errors import FeedFileInvalid
from tallystick.settings.feeds import load_feed, read_feeds

MINIMAL = """\
feed: orders
source: {topic: orders}
schedule: {cron: "0 * * * *", start_date: 2026-11-01}
target: {root: /data/landing}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `feeds` of the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "feeds"
    folder.mkdir()
    return folder


INSIDE = [
    # the root of feed inner, beside feed outer below /data/landing: is it refused
    ("/data/landing/outer", True),
    ("/data/landing/outer/deeper/down", True),
    ("/data/landing", False),
    ("/data", False),
    ("/data/landing/outer2", False),
    ("/data/landing/inner", False),
]


@pytest.mark.parametrize(("root", "is_refused"), INSIDE)
def test_a_root_in_which_another_feed_lands_is_refused(
    folder: Path, root: str, is_refused: bool
) -> None:
    outer = MINIMAL.replace("feed: orders", "feed: outer")
    inner = MINIMAL.replace("feed: orders", "feed: inner").replace("/data/landing", root)
    (folder / "outer.yaml").write_text(outer)
    (folder / "inner.yaml").write_text(inner)
    found = read_feeds(folder)
    assert list(found.feeds) == (["outer"] if is_refused else ["inner", "outer"])
    assert load_feed(folder, "outer").name == "outer"
    if not is_refused:
        assert load_feed(folder, "inner").target.root == root
        return
    words = (
        f"feeds/inner.yaml:4: target.root: '{root}' is not accepted: it lies where feed outer"
        " lands; accepted: a directory outside of /data/landing/outer"
    )
    assert [str(each) for each in found.problems] == [words]
    with pytest.raises(FeedFileInvalid, match="it lies where feed outer lands"):
        load_feed(folder, "inner")
    # Another connection may be another file system.
    other = "target: {connection: webhdfs_other, "
    (folder / "inner.yaml").write_text(inner.replace("target: {", other))
    assert list(read_feeds(folder).feeds) == ["inner", "outer"]
