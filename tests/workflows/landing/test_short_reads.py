"""A batch that falls short is named to the offset, commits nothing, and is over once landed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tallystick.errors import VerificationFailed
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.checking import check
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import NOW, Kind, Log, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, Story

OWNER = Owner("one")
LONG = timedelta(seconds=60)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def told(findings: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {
        (each.code.value, each.verdict, each.partition, each.from_offset, each.until_offset)
        for each in findings
    }


def hiding(story: Story, hidden: dict[int, set[int]], **rest: timedelta) -> Services:
    """Services whose Spark does not see some offsets."""
    services = story.services(**rest)
    reader = ScriptedBroker(story.broker.topic)
    reader.logs = {
        number: Log(
            [
                replace(entry, kind=Kind.CONTROL) if offset in hidden.get(number, ()) else entry
                for offset, entry in enumerate(log.entries)
            ]
        )
        for number, log in story.broker.logs.items()
    }
    return replace(services, spark=ScriptedSpark(reader, services.store))


def test_missing_offsets_are_findings_of_the_run(story: Story) -> None:
    report = land_feed(hiding(story, {0: {3, 4, 9}, 1: {0}}), None, OWNER)
    assert [type(each) for each in report.errors] == [VerificationFailed]
    assert story.published_offsets() == {}
    expected = {
        ("A7", Verdict.UNKNOWN, 0, 3, 5),
        ("A7", Verdict.UNKNOWN, 0, 9, 10),
        ("A7", Verdict.UNKNOWN, 1, 0, 1),
    }
    assert told(report.findings) == expected


def test_a_short_read_is_over_when_its_offsets_are_landed(story: Story) -> None:
    land_feed(hiding(story, {0: {3}}), None, OWNER)
    report = land_feed(story.services(), None, OWNER)
    assert not report.errors
    assert report.findings == []
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_a_try_that_was_made_good_in_the_same_run_is_no_finding_of_it(story: Story) -> None:
    services = hiding(story, {0: {3}})
    plan = plan_feed(services, None, OWNER)
    batch_id = plan.batches[0].batch_id
    attempt = land_batch(services, batch_id, AttemptId("1" * 16), OWNER)
    assert attempt
    with pytest.raises(VerificationFailed):
        verify_and_commit(services, attempt)
    assert told(check(story.services(), plan.planned_at, OWNER)) == {
        ("A7", Verdict.UNKNOWN, 0, 3, 4)
    }
    again = land_batch(story.services(), batch_id, AttemptId("2" * 16), OWNER)
    assert again
    verify_and_commit(story.services(), again)
    assert check(story.services(), plan.planned_at, OWNER) == []


def test_an_attempt_that_dies_meanwhile_tells_nothing(story: Story) -> None:
    services = hiding(story, {0: {3}}, lease=LONG)
    batch_id = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch_id, AttemptId("1" * 16), OWNER)
    assert attempt

    def taken_over() -> None:
        land_batch(story.services(lease=LONG), batch_id, AttemptId("2" * 16), OWNER)

    store = Meanwhile(services.store, taken_over, method="read_back")
    with pytest.raises(VerificationFailed):
        verify_and_commit(replace(services, store=store), attempt)  # type: ignore[arg-type]
    assert story.services().ledger.findings(FEED) == []


def test_what_was_deleted_meanwhile_is_left_to_the_next_plan(story: Story) -> None:
    def purged(plan: LandingPlan) -> None:
        story.broker.logs[0].log_start_offset = 6

    services = hiding(story, {0: {3, 8}})
    assert isinstance(services.spark, ScriptedSpark)
    services.spark.before_write = purged
    assert told(land_feed(services, None, OWNER).findings) >= {("A7", Verdict.UNKNOWN, 0, 8, 9)}
    recorded = [each.finding for each in story.services().ledger.findings(FEED)]
    held = ("A1", Verdict.UNKNOWN, 0, 0, 6)
    assert told(recorded) == {("A7", Verdict.UNKNOWN, 0, 8, 9), held}
    later = land_feed(story.services(), None, OWNER)
    assert told(later.findings) == {("A1", Verdict.PROVEN_LOSS, 0, 0, 6)}


def test_a_log_that_became_another_one_is_no_short_read(story: Story) -> None:
    def recreated(plan: LandingPlan) -> None:
        story.broker.recreate()
        story.broker.logs[0].append(Kind.RECORD, 2, at=NOW)

    services = hiding(story, {0: {3}})
    assert isinstance(services.spark, ScriptedSpark)
    services.spark.before_write = recreated
    land_feed(services, None, OWNER)
    found = {each.finding.code for each in story.services().ledger.findings(FEED)}
    assert found == {FindingCode.TOPIC_RECREATED}


def test_a_short_read_of_a_repair_stands_until_the_repair_is_committed(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    (file,) = (story.directory / "landing" / FEED).rglob("*.parquet")
    file.unlink()
    reconcile(story.services())
    report = repair_feed(hiding(story, {0: {3}}), story.named(), OWNER)
    assert [type(each) for each in report.errors] == [VerificationFailed]
    short = ("A7", Verdict.UNKNOWN, 0, 3, 4)
    for _ in range(2):
        assert short in told(reconcile(story.services()).findings)
    assert not land_feed(story.services(), None, OWNER).errors
    assert told(reconcile(story.services()).findings) == set()
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
