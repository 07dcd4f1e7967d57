"""What the question before a landing leaves when its process is killed."""

from __future__ import annotations

import os
import time

from tallystick.workflows.asking.sweeping import sweep
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
