"""What the ledger promises of planning: the lock, the accounts, claims, adoption."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.domain.planning.log_changes import LogChanges, LostRange
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.window import Window
from tallystick.errors import ClaimConflict, ConfigurationError, LedgerRefused
from tests.support.builders import a_range
from tests.support.ledger_story import (
    FEED,
    HOUR,
    MINUTE,
    NO_TIME,
    NOON,
    OWNER,
    RIVAL,
    TOPIC,
    TOPIC_ID,
    LedgerStory,
    finding_of,
    snapshot_of,
)
from tests.support.ledger_waiting import until_somebody_waits


def lost(story: LedgerStory, from_offset: int, until_offset: int, partition: int = 0) -> LostRange:
    return LostRange(
        story.account(partition).generation_id,
        a_range(from_offset, until_offset, partition=partition),
        FindingCode.EXPIRED,
        {"log_start_offset": until_offset},
    )


def beyond(story: LedgerStory, partition: int = 0) -> list[tuple[int, int]]:
    return [(each.from_offset, each.until_offset) for each in story.account(partition).beyond]


# Accounts -----------------------------------------------------------------------------------------


def test_a_new_feed_has_no_accounts(story: LedgerStory) -> None:
    accounts = story.ledger.accounts(FEED)
    assert (dict(accounts.generations), list(accounts.unfinished)) == ({}, [])


def test_batches_that_nobody_holds_are_told_by_their_newest_tokens(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    story.planned((0, 0, 10))
    begun = story.planned((0, 10, 20))
    story.begin(begun)
    newest = story.begin(begun)
    story.committed((0, 20, 30))
    assert story.ledger.newest_tokens(FEED) == {}
    story.ledger.record_failure(newest, "killed")
    assert story.ledger.newest_tokens(FEED) == {begun: newest.token}
    assert story.ledger.newest_tokens(FeedName("other")) == {}


def test_an_opened_generation_begins_at_its_first_offset(story: LedgerStory) -> None:
    accounts = story.open({0: (7, 20), 3: (0, 0)})
    first = accounts.generations[0]
    assert (first.first_offset, first.frontier, first.last_seen_until) == (7, 7, 20)
    assert (first.state, first.ordinal, first.topic_id) == (GenerationState.OPEN, 1, TOPIC_ID)
    assert (first.beyond, first.anchor) == ((), None)
    assert accounts.generations[3].partition == TopicPartition(TOPIC, 3)


def test_accounts_show_what_reaches_past_the_frontier_sorted(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    story.committed((0, 40, 50))
    claimed = story.planned((0, 20, 30))
    story.change(LogChanges(lost=[lost(story, 60, 70)]))
    assert story.account().frontier == 10
    assert beyond(story) == [(20, 30), (40, 50), (60, 70)]
    assert [each.plan.batch_id for each in story.ledger.accounts(FEED).unfinished] == [claimed]


def test_accounts_are_those_of_one_feed(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    story.planned((0, 0, 5))
    assert not story.ledger.accounts(FeedName("other")).generations
    assert not story.ledger.accounts(FeedName("other")).unfinished


def test_two_feeds_may_land_the_same_topic(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    story.committed((0, 0, 10))
    other = LedgerStory(story.dsn, FeedName("copy"))
    other.open({0: (0, 10)})
    other.committed((0, 0, 10))
    assert other.account().frontier == story.account().frontier == 10


def test_committed_batches_are_not_unfinished_for_adoption(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    story.committed((0, 0, 10))
    assert not story.ledger.accounts(FEED).unfinished


def test_a_lease_counts_down_by_the_ledgers_clock(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    story.planned((0, 0, 5))
    (held,) = story.ledger.accounts(FEED).unfinished
    assert 50 < held.lease_seconds_left <= 60
    assert held.holder == OWNER
    assert (held.state, held.newest_token, held.committed_by) == (BatchState.PLANNED, 0, None)


def test_a_batch_that_nobody_holds_has_no_holder(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    story.planned((0, 0, 5), lease=NO_TIME)
    (free,) = story.ledger.accounts(FEED).unfinished
    assert (free.holder, free.lease_seconds_left) == (None, 0.0)


# Freezing -----------------------------------------------------------------------------------------


def test_a_frozen_batch_is_read_back_as_it_was_planned(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    batch = story.batch_of((0, 0, 20), (1, 3, 5), window=HOUR)
    frozen = story.freeze(batch, window=HOUR)
    assert [each.plan for each in frozen.batches] == [batch]
    assert story.status(batch.batch_id).plan == batch
    assert story.status(batch.batch_id).state is BatchState.PLANNED


def test_two_plans_cannot_claim_the_same_offset(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    story.planned((0, 0, 20))
    before = story.ledger.accounts(FEED)
    overlap = r"feed orders: .* orders-0 \[19, 25\) overlaps \[0, 20\)"
    with pytest.raises(ClaimConflict, match=overlap):
        story.planned((1, 0, 5), (0, 19, 25))
    assert story.ledger.accounts(FEED).generations == before.generations


def test_a_range_of_another_feeds_generation_is_refused(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    other = LedgerStory(story.dsn, FeedName("copy"))
    other.open({0: (0, 100)})
    foreign = other.batch_of((0, 0, 5), generations=story.generations)
    with pytest.raises(LedgerRefused, match="1 ranges name a foreign generation"):
        other.freeze(foreign)
    with pytest.raises(LedgerRefused, match="belong to another feed"):
        other.freeze(story.batch_of((0, 0, 5)))


def test_a_range_before_the_feeds_first_offset_is_refused(story: LedgerStory) -> None:
    story.open({0: (50, 100)})
    with pytest.raises(LedgerRefused, match="begins at offset 50"):
        story.planned((0, 40, 60))


def test_a_batch_id_is_never_used_twice(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.batch_of((0, 0, 5))
    story.freeze(batch)
    with pytest.raises(LedgerRefused, match="make_batches"):
        story.freeze(batch)


def test_planning_is_undone_when_the_block_raises(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.batch_of((0, 0, 5))

    def plan_and_fail() -> None:
        with story.ledger.planning(FEED, TOPIC) as session:
            session.freeze(None, [batch], [], owner=OWNER, lease=MINUTE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plan_and_fail()
    assert not story.ledger.accounts(FEED).unfinished
    assert story.planned((0, 0, 5))


def test_an_error_that_is_swallowed_inside_the_block_commits_nothing(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.planned((0, 0, 5))
    good, bad = story.batch_of((0, 10, 15)), story.batch_of((0, 0, 5))

    def plan_and_swallow() -> None:
        with story.ledger.planning(FEED, TOPIC) as session:
            session.freeze(None, [good], [], owner=OWNER, lease=MINUTE)
            with pytest.raises(ClaimConflict):
                session.freeze(None, [bad], [], owner=OWNER, lease=MINUTE)

    with pytest.raises(LedgerRefused, match="an earlier statement"):
        plan_and_swallow()
    assert beyond(story) == [(0, 5)]


def test_a_feed_that_turns_to_another_topic_is_refused(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    with (
        pytest.raises(ConfigurationError, match="accepted: orders, which this feed has landed"),
        story.ledger.planning(FEED, "payments"),
    ):
        pytest.fail("the session was entered")


# Plans again --------------------------------------------------------------------------------------


def test_a_windows_plan_is_open_until_everything_is_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    assert story.open_plan(HOUR) is None
    first, second = story.batch_of((0, 0, 5), window=HOUR), story.batch_of((0, 5, 9), window=HOUR)
    frozen = story.freeze(first, second, window=HOUR)
    for batch in (first, second):
        found = story.open_plan(HOUR)
        assert found
        assert (found.plan_id, found.planned_at) == (frozen.plan_id, frozen.planned_at)
        assert [each.plan for each in found.batches] == [first, second]
        attempt = story.begin(batch.batch_id)
        story.verify(attempt)
        story.ledger.commit(attempt)
    assert story.open_plan(HOUR) is None, "what is committed is the finisher's"


def test_the_newest_revision_of_a_window_counts(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    old = story.planned((0, 0, 5), window=HOUR)
    newer = story.freeze(window=HOUR)
    assert newer.batches == []
    assert story.open_plan(HOUR) is None, "the newest revision has nothing to do"
    assert story.status(old).state is BatchState.PLANNED


def test_a_plan_belongs_to_its_own_window(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.planned((0, 0, 5), window=HOUR)
    assert story.open_plan(Window(HOUR.from_instant, NOON + timedelta(hours=1))) is None


def test_batches_of_one_plan_have_windows_of_their_own(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    earlier = Window(HOUR.from_instant - timedelta(days=3), HOUR.from_instant - timedelta(days=2))
    old, own = story.batch_of((0, 0, 5), window=earlier), story.batch_of((0, 5, 9), window=HOUR)

    story.freeze(old, own, window=HOUR)

    found = story.open_plan(HOUR)
    assert found
    assert [each.plan for each in found.batches] == [old, own]
    assert [each.status.plan.window for each in story.ledger.batches(FEED)] == [earlier, HOUR]
    assert [each.plan.window for each in story.ledger.accounts(FEED).unfinished] == [earlier, HOUR]
    assert story.open_plan(earlier) is None


@pytest.mark.parametrize(
    "window",
    [None, Window(HOUR.from_instant, HOUR.until_instant + timedelta(minutes=1))],
    ids=["none", "later"],
)
def test_a_batch_of_a_later_window_or_of_none_is_not_the_plans(
    story: LedgerStory, window: Window | None
) -> None:
    story.open({0: (0, 100)})
    with pytest.raises(LedgerRefused, match="another feed or a later window"):
        story.freeze(story.batch_of((0, 0, 5), window=window), window=HOUR)


def test_a_run_without_a_window_plans_anew(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.planned((0, 0, 5))
    assert story.open_plan(None) is None
    story.planned((0, 5, 9))
    revisions = story.ask("SELECT revision FROM plan WHERE window_from IS NULL ORDER BY plan_id")
    assert revisions == [(1,), (2,)]


def test_a_run_is_told_when_it_first_planned_the_feed(story: LedgerStory) -> None:
    def first(owner: Owner) -> datetime | None:
        with story.ledger.planning(FEED, TOPIC) as session:
            return session.first_planned_at(owner)

    story.open({0: (0, 100)})
    assert first(OWNER) is None
    frozen = [story.freeze(window=window, owner=OWNER) for window in (None, HOUR, None)]
    assert first(OWNER) == frozen[0].planned_at < frozen[1].planned_at
    assert first(RIVAL) is None
    elsewhere = LedgerStory(story.dsn, FeedName("payments"))
    with elsewhere.ledger.planning(elsewhere.feed, TOPIC) as session:
        assert session.first_planned_at(OWNER) is None
    elsewhere.ledger.close()


def test_what_a_feeds_file_says_is_written_where_it_changed_and_nothing_else_of_a_feed(
    story: LedgerStory,
) -> None:
    file = FeedInFile(TOPIC, "/landing", Isolation.READ_COMMITTED, "now", "@daily", "UTC")

    def describe(told: FeedInFile) -> tuple[FeedInFile | None, object]:
        with story.ledger.planning(FEED, TOPIC) as session:
            session.describe(told)
        [head] = story.ledger.feed_heads(FEED, most_runs=1)
        return head.described, story.ask("SELECT ctid FROM feed")

    story.open({0: (0, 100)})
    assert story.ledger.feed_heads(FEED, most_runs=1)[0].described is None
    first = describe(file)
    assert (first[0], describe(file)) == (file, first)
    edited = replace(file, labels={"owner": "Ada"}, complete_within_seconds=60.0)
    assert describe(edited)[0] == edited


# Adoption -----------------------------------------------------------------------------------------


def test_an_adopted_batch_belongs_to_the_new_plan_until_it_is_done(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    left = story.planned((0, 0, 5), lease=NO_TIME)
    frozen = story.freeze(adopted=[left], window=HOUR, owner=RIVAL)
    assert [each.plan.batch_id for each in frozen.adopted] == [left]
    assert frozen.adopted[0].holder == RIVAL
    again = story.open_plan(HOUR)
    assert again
    assert [each.plan.batch_id for each in again.adopted] == [left]
    assert [each.offsets.until_offset for each in again.adopted[0].plan.ranges] == [5]


def test_an_adopted_batch_is_not_adopted_at_once_by_another_run(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    left = story.planned((0, 0, 5), lease=NO_TIME)
    story.freeze(adopted=[left], owner=OWNER)
    assert story.freeze(adopted=[left], owner=RIVAL).adopted == []
    assert story.status(left).holder == OWNER


def test_a_batch_with_a_living_owner_is_not_adopted(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    held = story.planned((0, 0, 5), owner=OWNER)
    assert story.freeze(adopted=[held], owner=RIVAL).adopted == []
    assert [each.plan.batch_id for each in story.freeze(adopted=[held]).adopted] == [held]


def test_a_batch_that_commits_during_the_plan_is_not_adopted(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 5))
    zombie = story.another()
    with story.ledger.planning(FEED, TOPIC) as session:
        session.accounts()
        zombie.ledger.commit(attempt)
        frozen = session.freeze(None, [], [attempt.batch_id], owner=OWNER, lease=MINUTE)
    zombie.ledger.close()
    assert frozen.adopted == []


def test_a_batch_that_is_being_changed_at_this_moment_is_not_adopted(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    left = story.planned((0, 0, 5), lease=NO_TIME)
    with story.raw() as zombie, zombie.transaction():
        zombie.execute("SELECT FROM batch FOR UPDATE")
        assert story.freeze(adopted=[left]).adopted == []


# Two planners -------------------------------------------------------------------------------------


def test_two_planners_of_a_feed_take_turns(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    rival = story.another()
    seen: list[tuple[int, int]] = []

    def plan_the_rest() -> None:
        with rival.ledger.planning(FEED, TOPIC) as session:
            accounts = session.accounts()
            claimed = accounts.generations[0].beyond
            seen.extend((each.from_offset, each.until_offset) for each in claimed)
            batch = rival.batch_of((0, 50, 60), generations=accounts.generations)
            session.freeze(None, [batch], [], owner=RIVAL, lease=MINUTE)

    thread = threading.Thread(target=plan_the_rest)
    batch = story.batch_of((0, 0, 50))
    with story.ledger.planning(FEED, TOPIC) as session:
        thread.start()
        until_somebody_waits(story)
        session.freeze(None, [batch], [], owner=OWNER, lease=MINUTE)
    thread.join(20)
    rival.ledger.close()
    assert seen == [(0, 50)], "the second planner sees what the first one claimed"
    assert beyond(story) == [(0, 50), (50, 60)]


def test_planners_of_two_feeds_do_not_wait_for_one_another(story: LedgerStory) -> None:
    other = LedgerStory(story.dsn, FeedName("copy"))
    with story.ledger.planning(FEED, TOPIC), other.ledger.planning(FeedName("copy"), TOPIC):
        pass
    other.ledger.close()


def test_findings_and_attempts_do_not_wait_for_a_planner(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 50))
    beside = story.another()
    with story.ledger.planning(FEED, TOPIC) as session:
        session.apply(LogChanges(), snapshot_of({0: (0, 200)}))
        beside.ledger.record_findings(FEED, [finding_of()])
        attempt = beside.begin(batch)
        beside.ledger.renew_lease(attempt, MINUTE)
        assert beside.ledger.batch(batch).state is BatchState.LANDING
    beside.ledger.close()


def test_a_transaction_inside_a_planning_session_is_refused(story: LedgerStory) -> None:
    with (
        story.ledger.planning(FEED, TOPIC),
        pytest.raises(LedgerRefused, match="has a transaction of this ledger open"),
    ):
        story.ledger.findings(FEED)
