"""What a rehearsal leaves when its process is killed."""

from __future__ import annotations

import os
import time

from tallystick.workflows.asking.sweeping import sweep
from tests.support.story import Story

TWO_DAYS = 2 * 24 * 3600


def test_what_a_killed_rehearsal_left_is_swept_after_a_day(story: Story) -> None:
    root, feed = story.directory / "landing", story.services().feed_name
    names = (f"{feed}/_rehearsal-1", "_staging/_rehearsal-2", "_other", f"{feed}/_rehearsal-3")
    places = [root / name for name in names]
    for place in places:
        place.mkdir(parents=True)
        (place / "block").write_text("a block")
    for place in places[:3]:
        os.utime(place, (time.time() - TWO_DAYS,) * 2)

    sweep(story.services())

    assert [place.exists() for place in places] == [False, False, True, True]
