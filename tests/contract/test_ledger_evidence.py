"""What the ledger remembers of the log's ends, and how it tells of rows that contradict it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.domain.logs.snapshot import PartitionBounds, PastBounds
from tallystick.domain.planning.log_changes import LogChanges, LostRange
from tallystick.domain.rules.a6_ledger_unsound import overlaps_in_ledger, skips_in_ledger
from tallystick.domain.rules.findings import FindingCode
from tests.support.builders import a_range
from tests.support.ledger_story import FEED, NOON, TOPIC, TOPIC_ID, LedgerStory, snapshot_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def story(ledger_dsn: str) -> LedgerStory:
    return LedgerStory(ledger_dsn)


def look(story: LedgerStory, minute: int, stable: int, high: int, topic_id: str = TOPIC_ID) -> None:
    """A plan that sees these ends of partition 0, and others of partition 1."""
    snapshot = replace(
        snapshot_of({}, topic_id=topic_id),
        taken_at=NOON + minute * MINUTE,
        partitions={
            0: PartitionBounds(0, high, stable, 0),
            1: PartitionBounds(0, high + 100, high + 100, 0),
        },
    )
    with story.ledger.planning(FEED, TOPIC) as session:
        session.apply(LogChanges(), snapshot)


def test_past_ends_come_oldest_first_and_of_one_log_only(story: LedgerStory) -> None:
    look(story, 0, 2, 5, topic_id="an earlier life")
    look(story, 1, 3, 6)
    look(story, 2, 3, 9)
    assert story.ledger.past_bounds(FEED, TOPIC_ID, [0]) == {
        0: [PastBounds(NOON + MINUTE, 6, 3), PastBounds(NOON + 2 * MINUTE, 9, 3)]
    }
    assert list(story.ledger.past_bounds(FEED, TOPIC_ID, [0, 1])) == [0, 1]
    assert story.ledger.past_bounds(FEED, TOPIC_ID, []) == {}
    assert story.ledger.past_bounds(FEED, TOPIC_ID, [7]) == {}


def test_a_long_history_is_not_read_to_its_beginning(story: LedgerStory) -> None:
    for minute in (0, 1, *range(3000, 3104)):
        look(story, minute, minute, minute)
    [first, *rest] = story.ledger.past_bounds(FEED, TOPIC_ID, [0])[0]
    # Minute 3000 began an hour, the two days before it hold no other look.
    assert (first.high_watermark, rest[0].high_watermark, len(rest)) == (3000, 3004, 100)


def test_frequent_looks_do_not_make_the_memory_short(story: LedgerStory) -> None:
    """A transaction that is open for hours is still seen where a look is taken every minute."""
    for minute in range(200):
        look(story, minute, 3, minute)
    [first, second, third, *_] = story.ledger.past_bounds(FEED, TOPIC_ID, [0])[0]
    assert [each.high_watermark for each in (first, second, third)] == [0, 60, 100]


def test_a_sound_ledger_has_nothing_to_tell(story: LedgerStory) -> None:
    story.open({0: (0, 9), 1: (4, 9), 2: (0, 0)})
    story.committed((0, 0, 5), (1, 4, 9))
    lost = LostRange(story.account().generation_id, a_range(5, 7), FindingCode.EXPIRED)
    story.change(LogChanges(lost=[lost]))
    story.committed((0, 8, 9))
    story.planned((0, 7, 8))
    assert story.account().frontier == 7
    assert story.ledger.unsound(FEED) == []


def test_rows_that_were_written_past_the_schema_are_told_exactly(story: LedgerStory) -> None:
    story.open({0: (0, 9), 1: (0, 9)})
    story.committed((0, 0, 5), (1, 0, 5))
    generation_id = story.account().generation_id
    with story.raw() as hand:
        hand.execute("ALTER TABLE offset_range DROP CONSTRAINT offset_range_no_overlap")
        hand.execute("ALTER TABLE offset_range DISABLE TRIGGER USER")
        hand.execute("ALTER TABLE generation DISABLE TRIGGER USER")
        hand.execute(
            "INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)"
            f" VALUES ({int(generation_id)}, '[3,7)', 'committed', 4, 0)"
        )
        hand.execute(f"UPDATE generation SET frontier = 9 WHERE generation_id = {generation_id}")
    [unsound] = story.ledger.unsound(FEED)
    found = [
        *overlaps_in_ledger(FEED, unsound.account, unsound.ranges),
        *skips_in_ledger(FEED, unsound.account, unsound.ranges),
    ]
    assert unsound.account.partition.partition == 0
    assert [(each.code.value, each.from_offset, each.until_offset) for each in found] == [
        ("A6", 3, 5),
        ("A6", 7, 9),
    ]


@pytest.mark.parametrize("is_guarded", [True, False], ids=["constraint stands", "constraint gone"])
def test_a_frontier_that_was_moved_by_hand_is_told(story: LedgerStory, is_guarded: bool) -> None:
    story.open({0: (2, 9), 1: (0, 9)})
    story.committed((0, 2, 5), (1, 0, 5))
    story.committed((0, 7, 9))
    with story.raw() as hand:
        hand.execute("ALTER TABLE generation DISABLE TRIGGER USER")
        if not is_guarded:
            hand.execute("ALTER TABLE offset_range DROP CONSTRAINT offset_range_no_overlap")
    assert story.ledger.unsound(FEED) == []
    with story.raw() as hand:
        hand.execute("UPDATE generation SET frontier = 8 WHERE partition = 0")
    [unsound] = story.ledger.unsound(FEED)
    [found] = skips_in_ledger(FEED, unsound.account, unsound.ranges)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 5, 7)
    assert overlaps_in_ledger(FEED, unsound.account, unsound.ranges) == ()
