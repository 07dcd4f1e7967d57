"""An application that outlives its task may still finish: nothing that it reads is lost before."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ApplicationFailed, SourceChanged
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed, settle_and_plan
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    THREE,
    TWO,
    expire,
    landed,
    lost,
    quarantined,
)
from tests.support.scripted_broker import ScriptedSpark
from tests.support.story import FEED, Story
from tests.workflows.settling.test_asked_by_offsets import halved

LONG, OVER = timedelta(hours=1), timedelta(0)
A1 = FindingCode.EXPIRED
UNREADABLE = FindingCode.UNREADABLE_RECORD
CLAIMED = {(0, 10, 20), (1, 10, 20)}


class Orphan(ScriptedSpark):
    """Works for an attempt whose task was killed; `ending` is what its interruption does to it."""

    ending: Callable[[], None] | None = None

    def interrupt(self, attempt_id: str) -> bool:
        if self.ending:
            self.ending()
        return super().interrupt(attempt_id)


class Dying(Orphan):
    """Its applications die in mid-work, and leave what their tasks have written."""

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        plan = LandingPlan.from_json(self._text(order.plan_uri))
        started("local")
        try:
            reason = self._failure(plan)
        except ApplicationFailed:
            self._store.write(f"{self._path(plan.output)}/_temporary/0/part", b"rows")
            raise
        assert reason is None
        self._write(plan)


def dying(story: Story, *records: tuple[int, int]) -> Dying:
    """Each that reads one of these records, by partition and offset, runs out of memory."""
    spark = Dying(story.broker, story.services().store)
    spark.longest_orphan, spark.deadly = LONG, set(records)
    return spark


def orphan(story: Story, longest: timedelta, *, is_heard: bool = True) -> Orphan:
    spark = Orphan(story.broker, story.services().store)
    spark.longest_orphan, spark.is_heard = longest, is_heard
    return spark


def beside(story: Story, spark: Orphan) -> Services:
    return replace(story.services(), spark=spark)


def data_of(story: Story, attempt: Attempt) -> Path:
    return story.directory / f"landing/_staging/{attempt.batch_id}/{attempt.attempt_id}/data"


def writing(story: Story) -> Attempt:
    """Its tasks have ended; the committer has shown nothing yet."""
    attempt = landed(story)
    data = data_of(story, attempt)
    hidden = data / "_temporary" / "0" / "task_1"
    hidden.mkdir(parents=True)
    for each in data.glob("*.parquet"):
        each.rename(hidden / each.name)
    return attempt


def finish_writing(story: Story, attempt: Attempt) -> None:
    data = data_of(story, attempt)
    for each in data.rglob("*.parquet"):
        each.rename(data / each.name)
    shutil.rmtree(data / "_temporary")


def told(found: Iterable[Finding | StoredFinding]) -> set[tuple[FindingCode, Verdict]]:
    findings = [each.finding if isinstance(each, StoredFinding) else each for each in found]
    return {(each.code, each.verdict) for each in findings}


UNKNOWN = {(A1, Verdict.UNKNOWN)}


def test_what_an_orphan_still_writes_is_not_lost_and_is_committed_when_it_has_ended(
    story: Story,
) -> None:
    attempt = writing(story)
    expire(story)
    spark = orphan(story, LONG)

    first = land_feed(beside(story, spark), None, TWO)

    assert lost(story) == set()
    assert told(first.on_record) == UNKNOWN
    assert spark.interrupted == [], "it may have read what nobody can read again"
    assert told(first.findings) == UNKNOWN, "the run fails"
    assert all("which may outlive its task by 1:00:00" in each.cause for each in first.findings)
    finish_writing(story, attempt)

    second = land_feed(beside(story, spark), None, THREE)

    assert [each.batch_id for each in second.plan.rescued] == [attempt.batch_id]
    assert not second.findings
    assert story.published_offsets() == ALL
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_an_orphan_whose_files_have_no_length_yet_is_not_swept_by_the_run_that_spares_it(
    story: Story,
) -> None:
    """HDFS tells no length of an open file before its first block is full."""
    attempt = writing(story)
    hidden = data_of(story, attempt) / "_temporary"
    rows = {each: each.read_bytes() for each in hidden.rglob("*.parquet")}
    for each in rows:
        each.write_bytes(b"")
    expire(story)
    spark = orphan(story, LONG)

    for _ in range(2):
        land_feed(beside(story, spark), None, TWO)

    assert lost(story) == set()
    assert attempt.attempt_id not in spark.interrupted
    for path, content in rows.items():
        path.write_bytes(content)
    finish_writing(story, attempt)
    assert not land_feed(beside(story, spark), None, THREE).findings
    assert story.published_offsets() == ALL


def test_what_has_not_ended_in_its_time_is_ended_before_anything_is_lost(story: Story) -> None:
    attempt = writing(story)
    expire(story)
    spark = orphan(story, OVER)
    lost_before: list[object] = []
    spark.ending = lambda: lost_before.append(lost(story))

    land_feed(beside(story, spark), None, TWO)

    assert spark.interrupted[0] == attempt.attempt_id
    assert lost_before[0] == set()
    assert lost(story) == CLAIMED


def test_what_ends_well_while_it_is_being_ended_is_committed(story: Story) -> None:
    attempt = writing(story)
    expire(story)
    spark = orphan(story, OVER)

    def ending() -> None:
        spark.ending = None
        finish_writing(story, attempt)

    spark.ending = ending

    assert not land_feed(beside(story, spark), None, TWO).findings
    assert story.published_offsets() == ALL


def test_nothing_is_lost_while_nobody_can_say_that_it_has_ended(story: Story) -> None:
    attempt = writing(story)
    expire(story)
    silent = orphan(story, OVER, is_heard=False)

    report = land_feed(beside(story, silent), None, TWO)

    assert lost(story) == set()
    assert told(report.findings) == UNKNOWN, "the run fails"
    assert told(report.on_record) == UNKNOWN
    assert silent.interrupted == [attempt.attempt_id], "asked once"
    assert not quarantined(story)
    land_feed(beside(story, orphan(story, OVER)), None, THREE)
    assert lost(story) == CLAIMED


def test_looks_say_as_the_run_does_and_end_nothing(story: Story) -> None:
    writing(story)
    expire(story)
    spark = orphan(story, LONG)

    assert told(reconcile(beside(story, spark)).findings) == UNKNOWN
    assert told(dry_run(beside(story, spark), None).findings) == UNKNOWN
    spark.longest_orphan = OVER
    assert told(reconcile(beside(story, spark)).findings) == UNKNOWN, "until a run has ended it"
    assert told(dry_run(beside(story, spark), None).findings) == UNKNOWN
    assert spark.interrupted == []


def test_an_application_whose_lease_runs_is_not_ended(story: Story) -> None:
    attempt = writing(story)
    services = story.services()
    services.ledger.renew_lease(attempt, timedelta(hours=1))
    story.broker.recreate()
    spark = orphan(story, OVER)

    land_feed(beside(story, spark), None, TWO)

    assert spark.interrupted == []
    assert lost(story) == set()


def test_an_attempt_of_another_ledger_below_the_same_root_is_not_ended(
    story: Story, ledger_databases: Callable[[], str]
) -> None:
    """It may live: this ledger can't tell."""
    writing(story)
    shutil.rmtree(story.directory / "landing" / FEED)
    other = replace(story, dsn=ledger_databases())
    plan_feed(other.services(), None, ONE)
    expire(story)
    spark = orphan(story, OVER)

    land_feed(beside(other, spark), None, TWO)

    assert lost(other) == {(0, 0, 20), (1, 0, 20)}
    assert spark.interrupted == []


def test_an_orphan_waits_as_long_behind_a_newer_attempt_that_has_failed(story: Story) -> None:
    """The newer one gives its lease back at once: that says nothing of the older one."""
    attempt = writing(story)
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    expire(story)
    spark = orphan(story, LONG)
    with pytest.raises(SourceChanged):
        land_batch(beside(story, spark), adopted.batch_id, SECOND, TWO)

    land_feed(beside(story, spark), None, THREE)
    assert lost(story) == set()
    assert FIRST not in spark.interrupted
    finish_writing(story, attempt)

    assert not land_feed(beside(story, spark), None, THREE).findings
    assert story.published_offsets() == ALL


def test_an_orphan_of_a_batch_that_claims_its_offsets_no_more_is_waited_for(story: Story) -> None:
    attempt = halved(story)
    data = data_of(story, attempt)
    hidden = data / "_temporary" / "0"
    hidden.mkdir(parents=True)
    for each in data.glob("*.parquet"):
        each.rename(hidden / each.name)
    expire(story)

    land_feed(beside(story, orphan(story, LONG)), None, TWO)
    assert lost(story) == set()
    finish_writing(story, attempt)

    assert not land_feed(beside(story, orphan(story, LONG)), None, THREE).findings
    assert story.published_offsets() == ALL


def test_what_is_quarantined_is_moved_before_its_application_is_ended(story: Story) -> None:
    """Spark clears away what it was about to show: also what its tasks have finished."""
    attempt = writing(story)
    for log in story.broker.logs.values():
        log.cut(5)
    plan_feed(story.services(), None, TWO)
    spark = orphan(story, OVER)
    spark.ending = lambda: shutil.rmtree(data_of(story, attempt), ignore_errors=True)

    sweep(beside(story, spark))

    assert spark.interrupted == [FIRST]
    assert len(quarantined(story)) == 1


EVERY_RECORD_OF_ONE = tuple((0, offset) for offset in range(30))


def test_a_batch_whose_applications_only_die_is_halved_while_the_log_has_it_all(
    story: Story,
) -> None:
    spark = dying(story, *EVERY_RECORD_OF_ONE)
    services = beside(story, spark)
    for _ in range(2):
        land_feed(services, None, TWO)
    spark.interrupted.clear()
    assert told(dry_run(services, None).findings) == set()
    assert spark.interrupted == [], "a look ends nothing"

    report = settle_and_plan(services, None, TWO)

    assert [len(each.ranges) for each in report.batches] == [1, 1]
    assert not report.findings
    assert len(spark.interrupted) == 1, "the other one is swept"


def test_a_record_that_every_application_dies_at_is_found_while_the_log_has_it(
    story: Story,
) -> None:
    services = beside(story, dying(story, (0, 13)))
    for _ in range(4):
        land_feed(services, None, TWO)

    told_of = [each.finding for each in services.ledger.findings(FEED)]
    assert [(each.code, each.from_offset) for each in told_of] == [(UNREADABLE, 13)]
    assert story.published_offsets() == {
        0: [each for each in range(20) if each != 13],
        1: list(range(20)),
    }
