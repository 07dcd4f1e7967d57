"""What the ledger promises of changes: snapshots, losses, cuts, ended and opened logs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.states import BatchState, RangeState
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.planning.log_changes import CutClaim, EndedGeneration, LogChanges
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import ClaimConflict, LedgerRefused
from tallystick.ledger.look_columns import Shown
from tests.contract.test_ledger_planning import beyond, lost
from tests.support.builders import a_range
from tests.support.ledger_story import (
    FEED,
    MINUTE,
    NO_TIME,
    OWNER,
    TOPIC,
    LedgerStory,
    finding_of,
    opened,
    snapshot_of,
)


def cut(
    story: LedgerStory,
    batch_id: BatchId,
    from_offset: int,
    until_offset: int,
    becomes: RangeState = RangeState.LOST,
    partition: int = 0,
) -> CutClaim:
    return CutClaim(
        batch_id,
        story.account(partition).generation_id,
        a_range(from_offset, until_offset, partition=partition),
        becomes,
        FindingCode.EXPIRED,
    )


def claims(story: LedgerStory, batch_id: BatchId) -> list[tuple[int, int, int]]:
    ranges = [each.offsets for each in story.status(batch_id).plan.ranges]
    return [(each.partition.partition, each.from_offset, each.until_offset) for each in ranges]


def test_a_snapshot_is_kept_with_every_plan(story: LedgerStory) -> None:
    story.open({0: (3, 9), 4: (0, 1)})
    ((kept, *plain),) = story.ask(
        "SELECT shown, log_start_sum, high_watermark_sum, last_stable_sum, leaderless_count,"
        " retention_ms, retention_bytes FROM broker_snapshot"
    )
    assert Shown.of(kept) == Shown([0, 4], [9, 1], [9, 1], [3, 0], [0, 0], [], [])
    assert plain == [3, 10, 10, 0, 604_800_000, None]


def test_the_last_seen_end_only_grows_and_only_for_the_same_topic_id(story: LedgerStory) -> None:
    story.open({0: (0, 10)})
    assert story.change(LogChanges(), {0: (0, 30)}).generations[0].last_seen_until == 30
    assert story.change(LogChanges(), {0: (0, 20)}).generations[0].last_seen_until == 30
    other = story.change(LogChanges(), {0: (0, 99)}, topic_id="topic-id-2")
    assert other.generations[0].last_seen_until == 30


def test_a_log_is_opened_as_the_look_that_found_it_has_seen_it(story: LedgerStory) -> None:
    seen = replace(opened(0, 3), seen_until=9, seen_epoch=4)
    behind = replace(opened(1, 3), seen_until=2, reason="the partition was added")
    with story.ledger.planning(FEED, TOPIC) as session:
        ids = session.apply(LogChanges(opened=(seen, behind, opened(2, 3))), None)
    assert ids
    found = [story.account(each) for each in range(3)]
    assert [(each.last_seen_until, each.seen_epoch) for each in found] == [
        (9, 4), (3, None), (3, None),
    ]  # fmt: skip
    assert found == [
        each.account(ids[place]) for place, each in enumerate((seen, behind, opened(2, 3)))
    ]


def test_a_lost_range_that_joins_the_frontier_moves_it(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 10, 20))
    accounts = story.change(LogChanges(lost=[lost(story, 0, 10)]))
    assert accounts.generations[0].frontier == 20
    assert accounts.generations[0].beyond == ()


def test_a_lost_range_behind_a_gap_does_not_move_the_frontier(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    assert story.change(LogChanges(lost=[lost(story, 5, 10)])).generations[0].frontier == 0


def test_lost_ranges_are_kept_with_their_code_and_evidence(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    story.change(LogChanges(lost=[lost(story, 0, 4, 1), lost(story, 6, 9), lost(story, 0, 3)]))
    found = story.ledger.lost(FEED)
    assert [(str(each), code) for _, each, code in found] == [
        ("orders-0 [0, 3)", "A1"),
        ("orders-0 [6, 9)", "A1"),
        ("orders-1 [0, 4)", "A1"),
    ]
    assert found[0][0].frontier == 3
    evidence = story.ask("SELECT loss_evidence FROM offset_range ORDER BY offsets LIMIT 1")
    assert evidence == [({"log_start_offset": 3},)]


def test_a_loss_of_committed_offsets_is_refused(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    with pytest.raises(ClaimConflict, match=r"orders-0 \[5, 12\) overlaps \[0, 10\)"):
        story.change(LogChanges(lost=[lost(story, 5, 12)]))
    assert not story.ledger.lost(FEED)


def test_a_cut_takes_the_beginning_of_a_claim(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20), lease=NO_TIME)
    accounts = story.change(LogChanges(cuts=[cut(story, batch, 0, 5)]))
    assert claims(story, batch) == [(0, 5, 20)]
    assert accounts.generations[0].frontier == 5
    assert [str(each) for _, each, _ in story.ledger.lost(FEED)] == ["orders-0 [0, 5)"]


def test_a_cut_takes_the_end_of_a_claim_and_releases_it(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20), lease=NO_TIME)
    story.change(LogChanges(cuts=[cut(story, batch, 15, 20, RangeState.RELEASED)]))
    assert claims(story, batch) == [(0, 0, 15)]
    assert not story.ledger.lost(FEED)
    assert story.planned((0, 15, 20))


def test_a_batch_that_loses_its_last_range_is_abandoned(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    batch = story.planned((0, 0, 20), (1, 0, 5), lease=NO_TIME)
    story.change(LogChanges(cuts=[cut(story, batch, 0, 20)]))
    assert story.status(batch).state is BatchState.PLANNED
    assert claims(story, batch) == [(1, 0, 5)]
    accounts = story.change(LogChanges(cuts=[cut(story, batch, 0, 5, partition=1)]))
    assert story.status(batch).state is BatchState.ABANDONED
    assert not accounts.unfinished
    assert (story.account(0).frontier, story.account(1).frontier) == (20, 5)


def test_one_claim_may_be_cut_into_lost_and_released_parts(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20), lease=NO_TIME)
    cuts = [cut(story, batch, 0, 5), cut(story, batch, 5, 20, RangeState.RELEASED)]
    story.change(LogChanges(cuts=cuts))
    assert story.status(batch).state is BatchState.ABANDONED
    assert (story.account().frontier, beyond(story)) == (5, [])


def test_a_cut_that_would_split_a_claim_in_two_is_refused(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20), lease=NO_TIME)
    with pytest.raises(LedgerRefused, match=r"can't cut orders-0 \[5, 10\)"):
        story.change(LogChanges(cuts=[cut(story, batch, 5, 10)]))
    assert claims(story, batch) == [(0, 0, 20)]


def test_a_cut_of_a_batch_that_has_committed_meanwhile_changes_nothing(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    zombie = story.another()
    with story.ledger.planning(FEED, TOPIC) as session:
        session.accounts()
        zombie.ledger.commit(attempt)
        cuts = [cut(zombie, attempt.batch_id, 0, 5)]
        assert session.apply(LogChanges(cuts=cuts), snapshot_of({0: (5, 20)})) is None
        accounts = session.accounts()
    zombie.ledger.close()
    assert accounts.generations[0].frontier == 20
    assert not story.ledger.lost(FEED)
    assert len(story.ledger.look_places(FEED)) == 1, "the look of the opening"


def test_a_re_created_topic_closes_one_generation_and_opens_another(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    live = story.planned((0, 10, 20))
    old = story.account()
    accounts = story.change(
        LogChanges(
            cuts=[cut(story, live, 10, 20)],
            lost=[lost(story, 20, 100)],
            closed=[
                EndedGeneration(old.generation_id, FindingCode.TOPIC_RECREATED, "another topic id")
            ],
            opened=[opened(0, ordinal=2, topic_id="topic-id-2")],
        ),
        {0: (0, 5)},
        topic_id="topic-id-2",
    )
    new = accounts.generations[0]
    assert (new.ordinal, new.topic_id, new.frontier, new.last_seen_until) == (2, "topic-id-2", 0, 5)
    assert story.status(live).state is BatchState.ABANDONED
    first, second = story.ledger.generations(FEED)[0]
    assert (first.state, first.frontier) == (GenerationState.CLOSED, 100)
    assert (second.state, second.generation_id) == (GenerationState.OPEN, new.generation_id)
    story.committed((0, 0, 5))  # the same numbers again, in another log


def test_batches_of_a_closed_generation_are_abandoned_whatever_their_lease(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    attempt = story.verified((0, 0, 20), (1, 0, 5))
    bystander = story.planned((1, 5, 9))
    closed = EndedGeneration(
        story.account().generation_id, FindingCode.TOPIC_RECREATED, "re-created"
    )
    story.change(LogChanges(closed=[closed]))
    assert story.status(attempt.batch_id).state is BatchState.ABANDONED
    assert story.status(bystander).state is BatchState.PLANNED
    assert (beyond(story, 0), beyond(story, 1)) == ([], [(5, 9)])


def test_a_stopped_generation_is_kept_and_takes_no_claim(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    stopped = EndedGeneration(story.account().generation_id, FindingCode.LOG_CUT, "cut")
    accounts = story.change(LogChanges(stopped=[stopped]))
    assert accounts.generations[0].state is GenerationState.STOPPED
    with pytest.raises(LedgerRefused, match="orders-0 is stopped"):
        story.planned((0, 0, 5))
    assert story.planned((1, 0, 5))


def test_findings_are_recorded_with_the_changes_or_not_at_all(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    with pytest.raises(ClaimConflict):
        story.change(LogChanges(lost=[lost(story, 5, 12)]), findings=[finding_of()])
    assert not story.ledger.findings(FEED)
    story.change(LogChanges(), findings=[finding_of()])
    assert len(story.ledger.findings(FEED)) == 1


def test_findings_of_a_plan_are_not_older_than_the_plan(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.ledger.record_findings(FEED, [finding_of(0, 1)])
    with story.ledger.planning(FEED, TOPIC) as session:
        session.apply(LogChanges(), snapshot_of({0: (0, 9)}))
        session.record_findings([finding_of(0, 2)])
        frozen = session.freeze(None, [], [], owner=OWNER, lease=MINUTE)
    old, new = story.ledger.findings(FEED)
    assert old.first_seen_at < frozen.planned_at <= new.first_seen_at
