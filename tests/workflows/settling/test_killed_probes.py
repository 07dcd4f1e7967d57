"""What the question before a landing leaves when its process is killed."""

from __future__ import annotations

import os
import time

import pytest

from tallystick.errors import StorageRefused
from tallystick.workflows.landing.sweeping import sweep
from tests.support.local_directory import LocalFileStore
from tests.support.story import FEED, Story

TWO_DAYS = 2 * 24 * 3600


def test_what_a_killed_probe_left_is_swept_after_a_day(story: Story) -> None:
    root = story.directory / "landing"
    names = (f"{FEED}/_probe-1", "_staging/_probe-2", f"{FEED}/_other", f"{FEED}/_probe-3")
    places = [root / name for name in names]
    for place in places:
        place.mkdir(parents=True)
        (place / "block").write_text("a block")
    for place in places[:3]:
        os.utime(place, (time.time() - TWO_DAYS,) * 2)

    sweep(story.services())

    assert [place.exists() for place in places] == [False, False, True, True]


def test_a_probe_that_can_not_be_deleted_keeps_no_other(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    staging = story.directory / "landing/_staging"
    for name in ("_probe-1", "_probe-2"):
        (staging / name).mkdir(parents=True)
        os.utime(staging / name, (time.time() - TWO_DAYS,) * 2)
    really = LocalFileStore.delete

    def delete(store: LocalFileStore, path: str) -> bool:
        if path.endswith("_probe-1"):
            raise StorageRefused(path, "Permission denied")
        return really(store, path)

    monkeypatch.setattr(LocalFileStore, "delete", delete)
    sweep(story.services())

    assert [each.name for each in staging.iterdir()] == ["_probe-1"]
