"""What the ledger promises of *the* commit: all or nothing, once, by the newest token."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from tallystick.domain.batches.manifest import TailAnchor
from tallystick.domain.batches.states import BatchState, CommitAnswer, HoleClass, RangeState
from tallystick.domain.identities import AttemptId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import CutClaim, EndedGeneration, LogChanges, LostRange
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import AttemptFenced, LedgerRefused
from tallystick.ledger.hole_rows import hole_pieces
from tests.support.builders import a_range
from tests.support.ledger_story import FEED, MINUTE, NO_TIME, LedgerStory, manifest_of
from tests.support.ledger_waiting import until_somebody_waits


def in_parallel(*actions: object) -> None:
    """Run the actions at the same moment, each in a thread; an error in one is an error here."""
    gate = threading.Barrier(len(actions))
    errors: list[BaseException] = []

    def run(action: object) -> None:
        gate.wait(20)
        try:
            action()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - carried to the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if errors:
        raise errors[0]


def test_a_commit_moves_everything_at_once(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 20), (1, 5, 8)))
    holes = {
        0: {
            HoleClass.CONTROL: OffsetRuns.of([(3, 4), (10, 12)]),
            HoleClass.ABORTED: OffsetRuns.of([(5, 9)]),
        }
    }
    manifest = story.verify(attempt, holes=holes)
    assert story.ledger.commit(attempt) is CommitAnswer.COMMITTED
    status = story.status(attempt.batch_id)
    assert (status.state, status.committed_by) == (BatchState.COMMITTED, attempt.attempt_id)
    assert status.plan == manifest.plan
    assert (story.account(0).frontier, story.account(1).frontier) == (20, 0)
    assert story.account(0).anchor == TailAnchor(19, 3, (19).to_bytes(16, "big"))
    assert story.manifests() == [manifest]
    assert [each.file for each in story.ledger.files(FEED)] == list(manifest.files)
    (record,) = story.ledger.batches(FEED)
    assert record.ranges == manifest.ranges
    assert record.attempts[0].outcome == "committed"
    assert record.committed_at
    assert record.committed_at >= record.planned_at
    assert story.ask("SELECT class::text, runs::text, hole_count FROM hole ORDER BY 3") == [
        ("control", "{[3,4),[10,12)}", 3),
        ("aborted", "{[5,9)}", 4),
    ]
    assert story.ask("SELECT record_count, hole_count, byte_count FROM batch") == [(16, 7, 160)]


def test_a_range_of_holes_only_commits_without_a_file(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 2)))
    story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(0, 2)])}})
    assert story.ledger.commit(attempt) is CommitAnswer.COMMITTED
    assert (story.account().frontier, story.account().anchor) == (2, None)
    assert not story.ledger.files(FEED)


def test_the_second_commit_of_an_attempt_says_so_and_changes_nothing(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.committed((0, 0, 20))
    before = story.ask("SELECT * FROM batch")
    assert story.ledger.commit(attempt) is CommitAnswer.ALREADY_COMMITTED
    assert story.ask("SELECT * FROM batch") == before
    story.ledger.mark_published(attempt.batch_id)
    assert story.ledger.commit(attempt) is CommitAnswer.ALREADY_COMMITTED


def test_the_outcome_of_an_attempt_is_the_ledgers_word(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    status = story.ledger.take_up(attempt, MINUTE)
    assert status
    assert status.plan == story.status(attempt.batch_id).plan
    assert status.holder == attempt.owner
    with pytest.raises(LedgerRefused, match="is not in the ledger"):
        story.ledger.take_up(replace(attempt, attempt_id=AttemptId("f" * 16)), MINUTE)
    story.ledger.commit(attempt)
    assert story.ledger.take_up(attempt, MINUTE) is None


def test_a_zombie_cannot_commit_after_its_batch_was_adopted(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20))
    zombie = story.begin(batch, lease=NO_TIME)
    story.verify(zombie)
    newer = story.begin(batch)
    story.verify(newer)
    with pytest.raises(AttemptFenced):
        story.ledger.commit(zombie)
    assert story.ledger.commit(newer) is CommitAnswer.COMMITTED
    with pytest.raises(AttemptFenced):
        story.ledger.commit(zombie)
    with pytest.raises(AttemptFenced):
        story.ledger.take_up(zombie, MINUTE)


def test_what_was_not_verified_is_not_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20))
    attempt = story.begin(batch)
    with pytest.raises(LedgerRefused, match="is landing, and not verified by attempt"):
        story.ledger.commit(attempt)
    assert story.account().frontier == 0


def test_the_proof_of_an_older_attempt_is_not_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 20))
    story.verify(story.begin(batch))
    with pytest.raises(LedgerRefused, match="not verified by attempt"):
        story.ledger.commit(story.begin(batch))


def test_an_attempt_that_failed_may_still_commit_while_it_is_the_newest(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    story.ledger.record_failure(attempt, "the connection died at COMMIT")
    assert story.ledger.commit(attempt) is CommitAnswer.COMMITTED


# Ranges that changed since the verification -------------------------------------------------------


def cut_of(story: LedgerStory, attempt_batch: object, from_offset: int, until: int) -> CutClaim:
    return CutClaim(
        attempt_batch,  # type: ignore[arg-type]
        story.account().generation_id,
        a_range(from_offset, until),
        RangeState.LOST,
        FindingCode.EXPIRED,
    )


def test_a_claim_that_was_cut_after_the_verification_is_not_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    attempt = story.verified((0, 0, 20), (1, 0, 5))
    story.change(LogChanges(cuts=[cut_of(story, attempt.batch_id, 0, 5)]))
    with pytest.raises(
        LedgerRefused, match=r"orders-0 \[0, 20\) is verified, orders-0 \[5, 20\) is claimed"
    ):
        story.ledger.commit(attempt)
    assert (story.account(0).frontier, story.account(1).frontier) == (5, 0)
    assert story.status(attempt.batch_id).state is BatchState.VERIFIED
    assert not story.ledger.files(FEED)


def test_a_claim_that_was_cut_away_whole_is_not_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    attempt = story.verified((0, 0, 20), (1, 0, 5))
    story.change(LogChanges(cuts=[cut_of(story, attempt.batch_id, 0, 20)]))
    with pytest.raises(LedgerRefused, match="1 verified ranges are not claimed any more"):
        story.ledger.commit(attempt)


def test_a_manifest_that_proves_less_than_was_claimed_is_not_committed(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 20), (1, 0, 5)))
    plan = story.status(attempt.batch_id).plan
    less = replace(plan, ranges=plan.ranges[:1])
    story.ledger.record_verified(attempt, manifest_of(less, attempt))
    with pytest.raises(LedgerRefused, match=r"orders-1 \[0, 5\) is claimed and not verified"):
        story.ledger.commit(attempt)


def test_an_abandoned_batch_is_fenced(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    closed = EndedGeneration(
        story.account().generation_id, FindingCode.TOPIC_RECREATED, "re-created"
    )
    story.change(LogChanges(closed=[closed]))
    with pytest.raises(AttemptFenced):
        story.ledger.commit(attempt)
    with pytest.raises(AttemptFenced):
        story.ledger.renew_lease(attempt, NO_TIME)


# Frontiers and anchors ----------------------------------------------------------------------------


def test_the_frontier_waits_for_the_gap_and_then_passes_all(story: LedgerStory) -> None:
    story.open({0: (10, 100)})
    third, first, second = (
        story.verified((0, 30, 40)),
        story.verified((0, 10, 20)),
        story.verified((0, 20, 30)),
    )
    frontiers = []
    for attempt in (third, first, second):
        story.ledger.commit(attempt)
        frontiers.append(story.account().frontier)
    assert frontiers == [10, 20, 40]


def test_a_committed_range_and_a_lost_one_join(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    generation = story.account().generation_id
    lost = LostRange(generation, a_range(20, 30), FindingCode.EXPIRED)
    story.change(LogChanges(lost=[lost]))
    story.committed((0, 30, 40))
    assert story.account().frontier == 0
    story.committed((0, 0, 20))
    assert story.account().frontier == 40


def test_the_anchor_only_moves_forward(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    older, newer = story.verified((0, 0, 10)), story.verified((0, 10, 20))
    story.ledger.commit(newer)
    story.ledger.commit(older)
    anchor = story.account().anchor
    assert anchor
    assert anchor.offset == 19


def test_an_anchor_by_another_record_hash_is_not_compared(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 20))
    with monkeypatch.context() as later:
        later.setattr("tallystick.domain.rows.record_hash.VERSION", 2)
        assert story.account().anchor is None
    assert story.account().anchor


def test_a_commit_without_an_anchor_leaves_the_old_one(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    attempt = story.begin(story.planned((0, 10, 20)))
    story.verify(attempt, anchored=False)
    story.ledger.commit(attempt)
    anchor = story.account().anchor
    assert anchor
    assert anchor.offset == 9


def test_a_stopped_generations_last_claim_cannot_slip_through(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    generation = story.account().generation_id
    release = CutClaim(
        attempt.batch_id,
        generation,
        a_range(0, 20),
        RangeState.RELEASED,
        FindingCode.LOG_CUT,
    )
    stopped = EndedGeneration(generation, FindingCode.LOG_CUT, "cut")
    accounts = story.change(LogChanges(cuts=[release], stopped=[stopped]))
    assert accounts.generations[0].state is GenerationState.STOPPED
    with pytest.raises(AttemptFenced):
        story.ledger.commit(attempt)


# Holes --------------------------------------------------------------------------------------------


def test_many_holes_are_kept_in_pieces_and_none_is_lost(story: LedgerStory) -> None:
    story.open({0: (0, 100_000)})
    compacted = OffsetRuns.of((offset, offset + 1) for offset in range(0, 24_000, 2))
    attempt = story.begin(story.planned((0, 0, 24_000)))
    manifest = story.verify(attempt, holes={0: {HoleClass.COMPACTED: compacted}})
    story.ledger.commit(attempt)
    pieces = story.ask("SELECT position, hole_count FROM hole ORDER BY position")
    assert pieces == [(0, 10_000), (1, 2_000)]
    together = story.ask("SELECT range_agg(runs)::text FROM hole")
    assert together == story.ask(
        "SELECT range_agg(int8range(o, o + 1))::text FROM generate_series(0, 23999, 2) AS o"
    )
    assert story.manifests() == [manifest]


def test_hole_pieces_are_bounded_and_complete(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 20)))
    holes = {HoleClass.ABORTED: OffsetRuns.of([(0, 2), (4, 6), (8, 9)])}
    (accounted,) = manifest_of(
        story.status(attempt.batch_id).plan, attempt, holes={0: holes}
    ).ranges
    pieces = list(hole_pieces(accounted, 2))
    assert [(each.position, each.multirange, each.hole_count) for each in pieces] == [
        (0, "{[0,2),[4,6)}", 4),
        (1, "{[8,9)}", 1),
    ]


# Two committers -----------------------------------------------------------------------------------


def test_two_commits_of_one_attempt_at_once_commit_once(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    answers: list[CommitAnswer] = []

    def commit() -> None:
        beside = story.another()
        answers.append(beside.ledger.commit(attempt))
        beside.ledger.close()

    in_parallel(commit, commit, commit)
    assert sorted(answers) == sorted(
        [CommitAnswer.COMMITTED, CommitAnswer.ALREADY_COMMITTED, CommitAnswer.ALREADY_COMMITTED]
    )
    assert story.account().frontier == 20


def test_a_commit_that_waits_for_a_newer_attempt_is_fenced(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    beside = story.another()
    fenced: list[AttemptFenced] = []

    def commit() -> None:
        try:
            beside.ledger.commit(attempt)
        except AttemptFenced as error:
            fenced.append(error)

    thread = threading.Thread(target=commit)
    with story.raw() as newer, newer.transaction():
        newer.execute("UPDATE batch SET state = 'landing', newest_token = 2")
        thread.start()
        until_somebody_waits(story)
    thread.join(20)
    beside.ledger.close()
    assert fenced[0].args == (attempt.batch_id, 1, 2)


def test_batches_that_commit_side_by_side_leave_one_frontier(story: LedgerStory) -> None:
    partitions = 20
    story.open(dict.fromkeys(range(partitions), (0, 100)))
    attempts = [
        story.verified(*((p, start, start + 10) for p in range(partitions)))
        for start in (0, 10, 20, 30)
    ]

    def commit(attempt: object) -> None:
        beside = story.another()
        beside.ledger.commit(attempt)  # type: ignore[arg-type]
        beside.ledger.close()

    in_parallel(*(lambda a=each: commit(a) for each in attempts))
    accounts = story.generations.values()
    assert {each.frontier for each in accounts} == {40}
    assert {each.beyond for each in accounts} == {()}
    assert {each.anchor.offset for each in accounts if each.anchor} == {39}
