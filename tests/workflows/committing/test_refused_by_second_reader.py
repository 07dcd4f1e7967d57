"""What a second reader has refused is committed only after an equal comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import AttemptId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import NO_TIMESTAMP, SeenRecord, SliceRead
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import VerificationFailed
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.dying_attempts import record_proof
from tests.support.scripted_broker import Kind, Log, ScriptedReader, ScriptedSpark
from tests.support.story import FEED, Story
from tests.workflows.committing.test_second_reader import (
    C3,
    LOSS,
    OWNER,
    UNKNOWN,
    differing,
    land,
    log,
    looked,
    recorded,
    rewritten,
    story,
    unheard,
    with_reader,
)

__all__ = ["log", "story"]


def refused(story: Story, log: Log) -> Attempt:
    """An attempt at ten records, of which the second reader saw another one at offset 3."""
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3))
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("a1b2c3d4e5f60718"), OWNER)
    assert attempt is not None
    with pytest.raises(VerificationFailed):
        verify_and_commit(services, attempt)
    return attempt


def test_a_rescue_commits_nothing_that_a_second_reader_has_refused(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3))
    [outcome] = land_feed(services, None, OWNER).batches
    assert isinstance(outcome.error, VerificationFailed)
    log.append(Kind.RECORD, 5)
    log.log_start_offset = 10

    report = land_feed(story.services(), None, OWNER)

    assert list(report.plan.rescued) == []
    lost = [each for each in report.findings if each.code is FindingCode.EXPIRED]
    assert [(each.from_offset, each.until_offset) for each in lost] == [(0, 10)]
    assert "quarantine" in str(lost[0])
    assert len(list((story.directory / "landing" / FEED).rglob("*.parquet"))) == 1
    assert story.published_offsets() == {0: list(range(10, 15))}


@pytest.mark.parametrize("log_start", [2, 10])
def test_a_look_foresees_no_rescue_by_files_that_nobody_can_compare_again(
    story: Story, log: Log, log_start: int
) -> None:
    refused(story, log)
    log.append(Kind.RECORD, 2)
    log.log_start_offset = log_start

    shown = dry_run(story.services(), None)
    reconciled = reconcile(story.services())
    done = plan_feed(story.services(), None, OWNER)

    assert list(shown.rescued) == list(done.rescued) == []
    lost = [(LOSS, 1, 0, 0, log_start)]
    for found in (shown.findings, reconciled.findings, done.findings):
        assert [
            (each.verdict, each.generation, each.partition, each.from_offset, each.until_offset)
            for each in found
            if each.code is FindingCode.EXPIRED
        ] == lost


def test_a_refused_attempt_keeps_no_unreadable_record_from_being_set_aside(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3))
    [outcome] = land_feed(services, None, OWNER).batches
    assert isinstance(outcome.error, VerificationFailed)
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    spark.unreadable = {(0, 7): "long overflow"}

    for _ in range(3):
        report = land_feed(replace(services, spark=spark), None, OWNER)

    assert not report.errors
    assert story.published_offsets() == {0: [*range(7), *range(8, 10)]}
    [told] = [
        each.finding
        for each in services.ledger.findings(FEED)
        if each.finding.code is FindingCode.UNREADABLE_RECORD
    ]
    [place] = told.evidence["kept"]  # type: ignore[misc]
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    assert place.rpartition("=")[2] == file.parent.parent.name


@pytest.mark.parametrize("before", [unheard, None])
def test_a_refused_attempt_is_refused_again_while_nobody_can_compare(
    story: Story, log: Log, before: Callable[[], None] | None
) -> None:
    attempt = refused(story, log)
    services = replace(story.services(), second_reader=None)
    if before:
        services, _ = with_reader(story, before=before)

    with pytest.raises(VerificationFailed, match="could not compare the same offsets again"):
        verify_and_commit(services, attempt)

    assert recorded(story) == [(UNKNOWN, 1, 0, 0, 10)]
    land(story)
    assert looked(story).verdict is Verdict.PROVEN_OK, "another attempt has landed it"
    assert recorded(story) == []


def test_a_refused_attempt_is_committed_when_the_same_slices_are_equal(
    story: Story, log: Log
) -> None:
    attempt = refused(story, log)
    log.entries[3] = replace(log.entries[3], value=b"v3")

    assert verify_and_commit(story.services(), attempt) is not None

    looked(story)
    assert recorded(story) == []


def test_every_attempt_that_was_refused_stays_so(story: Story, log: Log) -> None:
    first = refused(story, log)
    services, _ = with_reader(story, before=lambda: rewritten(log, 5))
    land_feed(services, None, OWNER)

    [stored] = story.services().ledger.findings(FEED)

    attempts = stored.finding.evidence["attempts"]
    assert isinstance(attempts, list)
    assert len(attempts) == 2
    assert first.attempt_id in attempts


@pytest.mark.parametrize("before", [unheard, None], ids=["no answer", "no second reader"])
def test_what_others_landed_unseen_takes_no_refusal_back(
    story: Story, log: Log, before: Callable[[], None] | None
) -> None:
    refused(story, log)
    services = replace(story.services(), second_reader=None)
    if before:
        services, _ = with_reader(story, before=before)

    land(story, services)

    assert story.published_offsets() == {0: list(range(10))}
    assert reconcile(story.services()).verdict is UNKNOWN
    assert recorded(story) == [(UNKNOWN, 1, 0, 0, 10)]
    assert looked(story).verdict is Verdict.PROVEN_OK, "the same slices were compared, and equal"
    assert recorded(story) == []


def test_a_commit_compares_what_was_refused_of_other_attempts(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 5_000)
    services, _ = with_reader(story, before=lambda: rewritten(log, 0, 4_999))
    land_feed(services, None, OWNER)
    [stored] = story.services().ledger.findings(FEED)
    slices = stored.finding.evidence["slices"]

    services, reader = with_reader(story)
    land(story, services)

    assert isinstance(slices, list)
    for run in slices:
        assert any(
            each.from_offset <= run[0] and run[1] <= each.until_offset for each in reader.seen
        )
    [ended] = story.services().ledger.all_findings(FEED)
    assert "was compared: equal" in (ended.closed_by or "")


def test_a_landing_that_differs_again_is_refused_as_well(story: Story, log: Log) -> None:
    refused(story, log)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3, 5))
    log.entries[5] = replace(log.entries[5], value=b"a third one")
    land_feed(services, None, OWNER)

    assert story.published_offsets() == {}
    assert looked(story).verdict is UNKNOWN


def test_a_refusal_whose_offsets_are_lost_ends_with_the_loss(story: Story, log: Log) -> None:
    refused(story, log)
    log.append(Kind.RECORD, 5)
    log.log_start_offset = 10
    land(story)

    report = reconcile(story.services())

    assert recorded(story) == []
    assert [(each.code.value, each.from_offset) for each in report.findings] == [("A1", 0)]


def test_a_rebuild_enters_nothing_that_was_refused_after_its_proof(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("a1b2c3d4e5f60718"), OWNER)
    assert attempt is not None
    record_proof(services, attempt)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3))
    with pytest.raises(VerificationFailed):
        verify_and_commit(services, attempt)

    report = rebuild(story.services())

    [left_out] = report.left_out
    assert "a second reader has seen" in " ".join(left_out.reasons)
    assert story.published_offsets() == {}


def test_a_repair_that_differs_leaves_the_loss_on_record(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    land(story)
    rewritten(log, 3)
    looked(story)
    [number] = [each.finding_id for each in story.services().ledger.findings(FEED)]
    tries = iter(range(100))

    def another() -> None:
        log.entries[5] = replace(log.entries[5], value=b"x%d" % next(tries))

    services, _ = with_reader(story, before=another)
    repair_feed(services, [number], OWNER)
    for _ in range(3):
        land_feed(services, None, OWNER)

    report = reconcile(story.services(), Level.L3)
    assert (LOSS, 1, 0, 0, 10) in differing(report.findings)
    assert report.verdict is LOSS


@pytest.mark.parametrize("change", ["recreated", "cut"])
def test_a_log_that_changes_between_look_and_read_is_no_difference(
    story: Story, log: Log, change: str
) -> None:
    log.append(Kind.RECORD, 10)
    land(story)

    def changed() -> None:
        if change == "recreated":
            story.broker.recreate(1)
        else:
            log.cut(5)
        story.broker.logs[0].append(Kind.RECORD, 20, value=b"new")

    services, _ = with_reader(story, before=changed)
    report = looked(story, services)

    assert differing(report.findings) == []
    assert report.second_read is not None
    assert report.second_read.batches == 0
    assert "meanwhile" in report.second_read.not_compared[0]


class Untimed:
    """Shows no time where it is 0, as librdkafka does for records of format 1."""

    def __init__(self, story: Story) -> None:
        self._inner = ScriptedReader(story.broker)

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        return [
            replace(each, records=tuple(self._shown(one) for one in each.records))
            for each in self._inner.read(slices, isolation)
        ]

    @staticmethod
    def _shown(record: SeenRecord) -> SeenRecord:
        if record.head.timestamp_ms:
            return record
        return SeenRecord.of(
            partition=0,
            offset=record.offset,
            timestamp_ms=NO_TIMESTAMP,
            timestamp_type=NO_TIMESTAMP,
            key=record.head.key,
            value=record.head.value,
            headers=(),
        )


def test_a_record_whose_time_the_reader_cannot_show_is_not_compared(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 5)
    log.append(Kind.RECORD, 1, at=datetime(1970, 1, 1, tzinfo=UTC))
    log.append(Kind.RECORD, 5)

    services = replace(story.services(), second_reader=Untimed(story))
    [outcome] = land_feed(services, None, OWNER).batches

    assert outcome.commit is not None
    assert outcome.commit.sample is not None
    assert outcome.commit.sample.offsets == 10
    assert "time" in (outcome.commit.sample.not_compared or "")
    assert C3 not in {each.code for each in reconcile(services, Level.L4).findings}
