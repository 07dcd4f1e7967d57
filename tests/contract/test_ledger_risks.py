"""What the ledger says of offsets whose only copy may lie in staging."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import CutClaim, EndedGeneration, LogChanges
from tallystick.domain.rules.findings import FindingCode
from tests.support.ledger_story import FEED, LedgerStory

Risks = list[tuple[str, str, int, int]]


@pytest.fixture
def log(story: LedgerStory) -> LedgerStory:
    """One partition of which a hundred offsets are readable."""
    story.open({0: (0, 100)})
    return story


def risks(story: LedgerStory, batch_id: BatchId) -> Risks:
    """State of the range, state of its log, offsets."""
    return [
        (each.state.value, each.log.value, each.offsets.from_offset, each.offsets.until_offset)
        for each in story.ledger.offsets_at_risk([batch_id]).get(batch_id, ())
    ]


def cut(story: LedgerStory, batch_id: BatchId, from_offset: int, until_offset: int) -> None:
    account = story.account()
    offsets = OffsetRange(account.partition, from_offset, until_offset)
    becomes, code = RangeState.LOST, FindingCode.EXPIRED
    cuts = (CutClaim(batch_id, account.generation_id, offsets, becomes, code),)
    story.change(LogChanges(cuts=cuts))


def test_what_is_claimed_is_at_risk_until_its_commit(log: LedgerStory) -> None:
    attempt = log.verified((0, 0, 10))
    assert risks(log, attempt.batch_id) == [("claimed", "open", 0, 10)]
    log.ledger.commit(attempt)
    assert log.ledger.offsets_at_risk([attempt.batch_id]) == {}


def test_what_was_lost_stays_at_risk_when_the_rest_is_committed(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 10))
    cut(log, batch, 0, 4)
    attempt = log.begin(batch)
    log.verify(attempt)
    log.ledger.commit(attempt)
    assert risks(log, batch) == [("lost", "open", 0, 4)]


def test_what_was_released_is_at_risk_until_another_batch_commits_it(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 10))
    account = log.account()
    offsets = OffsetRange(account.partition, 0, 10)
    becomes, code = RangeState.RELEASED, FindingCode.SHORT_READ
    released = CutClaim(batch, account.generation_id, offsets, becomes, code)
    log.change(LogChanges(cuts=(released,)))
    assert risks(log, batch) == [("released", "open", 0, 10)]
    log.committed((0, 0, 6))
    assert risks(log, batch) == [("released", "open", 6, 10)]


def test_the_log_that_was_closed_is_told(log: LedgerStory) -> None:
    attempt = log.verified((0, 0, 10))
    closed = EndedGeneration(log.account().generation_id, FindingCode.TOPIC_RECREATED, "gone")
    log.change(LogChanges(closed=[closed]))
    [(_, state, _, _)] = risks(log, attempt.batch_id)
    assert state == GenerationState.CLOSED.value


def test_what_a_repair_landed_is_at_risk_until_its_files_are_replaced(log: LedgerStory) -> None:
    old = log.committed((0, 0, 10))
    log.ledger.mark_published(old.batch_id)
    [name] = [each.file.name for each in log.ledger.files(FEED)]
    plan = replace(log.batch_of((0, 0, 10)), replaces=(CommittedFile(old.batch_id, name),))
    log.freeze(plan)
    assert risks(log, plan.batch_id) == [("claimed", "open", 0, 10)]
    attempt = log.begin(plan.batch_id)
    log.verify(attempt)
    log.ledger.commit(attempt)
    assert log.ledger.offsets_at_risk([plan.batch_id, old.batch_id]) == {}


def copies(story: LedgerStory, batch_id: BatchId) -> list[tuple[str, int, int]]:
    """Directory and offsets of the committed files that hold what the batch does."""
    return [
        (each.directory, each.offsets.from_offset, each.offsets.until_offset)
        for each in story.ledger.committed_copies(batch_id)
    ]


def test_a_committed_file_is_a_copy_where_it_lies_now(log: LedgerStory) -> None:
    attempt = log.verified((0, 0, 10))
    batch = attempt.batch_id
    assert copies(log, batch) == []
    log.ledger.commit(attempt)
    plan = log.ledger.batch(batch).plan
    staged = {directory for directory, _, _ in copies(log, batch)}
    assert staged == {StagingPath.of(plan, attempt.attempt_id).data}
    log.ledger.mark_published(batch)
    assert set(copies(log, batch)) == {(str(BatchPath.of(plan)), 0, 10)}
    [file] = log.ledger.files(FEED)
    assert {(each.name, each.length_bytes) for each in log.ledger.committed_copies(batch)} == {
        (file.file.name, file.file.length_bytes)
    }


def test_what_another_batch_has_committed_of_released_offsets_is_a_copy(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 10))
    account = log.account()
    offsets = OffsetRange(account.partition, 0, 10)
    becomes, code = RangeState.RELEASED, FindingCode.SHORT_READ
    log.change(LogChanges(cuts=(CutClaim(batch, account.generation_id, offsets, becomes, code),)))
    other = log.committed((0, 0, 6))
    plan = log.ledger.batch(other.batch_id).plan
    staged = StagingPath.of(plan, other.attempt_id).data
    assert copies(log, batch) == [(staged, 0, 6)]
    log.ledger.mark_published(other.batch_id)
    log.ledger.fold(FEED)
    assert copies(log, batch) == [(str(BatchPath.of(plan)), 0, 6)]
