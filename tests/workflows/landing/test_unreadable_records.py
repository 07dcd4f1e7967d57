"""One record that Spark can't read holds up nothing but itself, and is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import ApplicationFailed, RecordsUnreadable
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, FixedClock, Story
from tests.support.waivers import accept

OWNER = Owner("one")
WHY = "ArithmeticException: long overflow"


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 100)
    return Story(ledger_databases(), tmp_path, broker)


def blind_to(story: Story, *places: tuple[int, int], **plan: int) -> Services:
    """Services whose Spark can't read the records at these places."""
    services = story.services(**plan)
    spark = ScriptedSpark(story.broker, services.store)
    spark.unreadable = dict.fromkeys(places, WHY)
    return replace(services, spark=spark)


def landed(services: Services, runs: int = 1) -> RunReport:
    return [land_feed(services, None, OWNER) for _ in range(runs)][-1]


def told(report: RunReport) -> list[str]:
    return [type(each).__name__ for each in report.errors]


def all_but(*missing: int, until: int = 100) -> list[int]:
    return [each for each in range(until) if each not in missing]


def unreadable(services: Services) -> dict[int, Finding]:
    return {
        each.finding_id: each.finding
        for each in services.ledger.findings(FEED)
        if each.finding.code.value == "A11"
    }


def test_all_around_an_unreadable_record_is_landed_by_the_first_run_after_two_failures(
    story: Story,
) -> None:
    services = blind_to(story, (0, 77))

    first, second, third = (land_feed(services, None, OWNER) for _ in range(3))

    assert [told(each) for each in (first, second, third)] == [
        ["ApplicationFailed"],
        ["RecordsUnreadable"],
        [],
    ]
    assert story.published_offsets() == {0: all_but(77), 1: all_but()}
    assert str(second.errors[0]).endswith(
        f"Spark can't read orders-0 [77, 78): {WHY}. The next run lands the other offsets of the"
        " batch. docs/runbook.md, A11, says what to do about these."
    )


class Chained(ScriptedSpark):
    """Notes the error that whatever a search raises would be chained to."""

    while_handled: BaseException | None = None

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        self.while_handled = sys.exception()
        super().search(order, noted=noted)


def test_a_search_begins_when_the_landing_s_error_is_not_handled_any_more(story: Story) -> None:
    services = story.services()
    spark = Chained(story.broker, services.store)
    spark.unreadable = {(0, 77): WHY}

    report = landed(replace(services, spark=spark), 2)

    assert told(report) == ["RecordsUnreadable"]
    assert spark.while_handled is None


def test_the_one_offset_is_a_finding_of_the_run_with_sparks_reason(story: Story) -> None:
    report = landed(blind_to(story, (0, 77)), 2)

    [found] = report.findings
    assert (found.code.value, found.verdict, found.partition) == ("A11", Verdict.UNKNOWN, 0)
    assert (found.from_offset, found.until_offset) == (77, 78)
    assert found.evidence["reason"] == WHY
    assert f"Spark can't read the record at offset 77, and reads what is beside it: {WHY}" in str(
        found
    )


def test_a_partition_with_an_unreadable_record_is_never_ok(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)

    report = reconcile(services)

    assert report.verdict is Verdict.UNKNOWN
    assert [(each.account.frontier, each.verdict) for each in report.partitions] == [
        (77, Verdict.UNKNOWN),
        (100, Verdict.PROVEN_OK),
    ]
    assert len(unreadable(services)) == 1


def test_neighbours_first_and_last_offsets_can_be_unreadable_too(story: Story) -> None:
    services = blind_to(story, (0, 0), (0, 50), (0, 51), (0, 99), (1, 3))

    landed(services, 3)

    assert story.published_offsets() == {0: all_but(0, 50, 51, 99), 1: all_but(3)}
    assert len(unreadable(services)) == 5


def test_what_comes_after_it_is_landed_by_every_run(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    story.broker.logs[0].append(Kind.RECORD, 10)

    assert told(landed(services)) == []
    assert story.published_offsets()[0] == all_but(77, until=110)


def test_a_partition_of_which_nothing_can_be_read_names_no_record(story: Story) -> None:
    """Its leader may be away: no single record is to blame."""
    services = blind_to(story, *((0, each) for each in range(100)))

    reports = [land_feed(services, None, OWNER) for _ in range(6)]

    assert not any("RecordsUnreadable" in told(each) for each in reports)
    assert unreadable(services) == {}
    assert story.published_offsets() == {1: all_but()}


def test_a_record_that_ends_every_application_which_reads_it_is_named_too(story: Story) -> None:
    """Too big for the memory: where driver and executors are one process, nothing survives it."""
    services = blind_to(story)
    services.spark.deadly = {(0, 77)}  # type: ignore[attr-defined]

    second = landed(services, 2)
    landed(services)

    assert told(second) == ["RecordsUnreadable"]
    [found] = unreadable(services).values()
    assert (found.from_offset, found.until_offset) == (77, 78)
    assert found.evidence["reason"] == "its application ended: exit code 52: OutOfMemoryError"
    assert story.published_offsets() == {0: all_but(77), 1: all_but()}


def test_what_is_polled_just_before_a_deadly_record_is_landed_and_not_named(story: Story) -> None:
    """A poll brings up to 20,000 records, also from behind the end of what is asked for."""
    services = blind_to(story)
    services.spark.deadly = {(0, 77)}  # type: ignore[attr-defined]
    story.broker.logs[0].append(Kind.RECORD, 2_900)

    reports = [land_feed(services, None, OWNER) for _ in range(3)]

    assert [told(each) for each in reports] == [["ApplicationFailed"], ["RecordsUnreadable"], []]
    assert [each.from_offset for each in unreadable(services).values()] == [77]
    assert story.published_offsets() == {0: all_but(77, until=3_000), 1: all_but()}


def test_a_batch_before_a_deadly_record_of_another_one_lands_at_its_second_try(
    story: Story,
) -> None:
    """No search of this batch could find the record."""
    services = blind_to(story, max_records_per_batch=50)
    services.spark.deadly = {(0, 77)}  # type: ignore[attr-defined]

    first = landed(services)
    assert told(first) == ["ApplicationFailed", "ApplicationFailed"]
    second = landed(services)
    assert told(second) == ["RecordsUnreadable"]
    assert story.published_offsets() == {0: all_but(until=50), 1: all_but()}

    landed(services)
    assert story.published_offsets() == {0: all_but(77), 1: all_but()}


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_repair_before_a_deadly_record_lands_its_rows_at_the_first_try(
    story: Story, is_given_up: bool
) -> None:
    services = blind_to(story)
    services.spark.deadly = {(0, 77)}  # type: ignore[attr-defined]
    landed(services, 3)
    assert story.published_offsets()[0] == all_but(77)
    if is_given_up:
        [number] = unreadable(services)
        accept(services.ledger, number)
    for file in (story.directory / "landing" / FEED).rglob("*.parquet"):
        file.unlink()
    reconcile(services)

    missing = [each for each in story.named() if each not in unreadable(services)]
    report = repair_feed(services, missing, OWNER)

    assert report.errors == ()
    assert story.published_offsets() == {0: all_but(77), 1: all_but()}


def test_many_deadly_records_are_named_a_few_by_each_search(story: Story) -> None:
    """A search may end forty applications, and what it has found by then counts."""
    services = blind_to(story)
    story.broker.logs[0].append(Kind.RECORD, 2_900)
    deadly = [100 * each for each in range(1, 21)]
    services.spark.deadly = {(0, each) for each in deadly}  # type: ignore[attr-defined]

    reports = [land_feed(services, None, OWNER) for _ in range(2)]

    assert "RecordsUnreadable" in told(reports[-1])
    named = [each.from_offset for each in unreadable(services).values()]
    assert named == deadly[: len(named)]
    assert len(named) >= 2


def test_what_a_search_has_written_is_gone_at_its_end(story: Story) -> None:
    services = blind_to(story)

    def fails(plan: LandingPlan) -> None:
        raise ApplicationFailed(plan.batch_id, "local", WHY)

    services.spark.before_write = fails

    landed(services, 2)

    # The search has named nothing, so the attempt's directory stays for a later plan to ask.
    assert any("search" in each for each in story.staged())
    assert not [each for each in story.staged() if "probe" in each]


def test_a_record_at_which_every_application_hangs_is_named_too(story: Story) -> None:
    services = blind_to(story)
    services.spark.hanging = {(0, 77)}  # type: ignore[attr-defined]

    first, second, third = (land_feed(services, None, OWNER) for _ in range(3))

    assert [told(each) for each in (first, second, third)] == [
        ["ApplicationOverdue"],
        ["RecordsUnreadable"],
        [],
    ]
    [found] = unreadable(services).values()
    assert (found.from_offset, found.until_offset) == (77, 78)
    assert found.evidence["reason"] == "its application hung, and was ended after 0:02:00"
    assert story.published_offsets() == {0: all_but(77), 1: all_but()}


class HourByHour(FixedClock):
    """Every question comes an hour after the one before."""

    def __init__(self) -> None:
        self._hours = 0

    def now(self) -> datetime:
        self._hours += 1
        return super().now() + timedelta(hours=self._hours)


def test_a_search_in_which_everything_hangs_ends_and_names_nothing(story: Story) -> None:
    services = replace(blind_to(story), clock=HourByHour())
    services.spark.hanging = {(p, each) for p in (0, 1) for each in range(100)}  # type: ignore[attr-defined]
    search, searches = services.spark.search, []

    def counted(order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        searches.append(order)
        search(order, noted=noted)

    services.spark.search = counted  # type: ignore[method-assign]

    report = landed(services, 2)

    assert told(report) == ["ApplicationOverdue"]
    assert "It reads none of a few single offsets" in str(report.errors[0])
    assert unreadable(services) == {}
    assert len(searches) == 4, "three places in the topic, and one to say it"


def test_a_search_that_fails_changes_nothing(story: Story) -> None:
    services = blind_to(story, (0, 77))

    def broken(order: object, **noted: object) -> None:
        raise ApplicationFailed("batch", "local", "no executors")

    services.spark.search = broken  # type: ignore[method-assign,assignment]

    assert told(landed(services, 2)) == ["ApplicationFailed"]
    assert unreadable(services) == {}


def test_a_repair_lands_a_record_that_can_be_read_again(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)

    report = repair_feed(story.services(), [number], OWNER)

    assert report.errors == ()
    assert list(report.closed) == [number]
    assert story.published_offsets() == {0: all_but(), 1: all_but()}
    healed = reconcile(story.services())
    assert (healed.verdict, healed.findings) == (Verdict.PROVEN_OK, ())


def test_a_dry_repair_says_what_it_would_try_and_changes_nothing(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)

    plan = dry_repair(services, [number]).plan

    assert [(each.finding_id, str(each.planned.offsets)) for each in plan.read_again] == [
        (number, "orders-0 [77, 78)")
    ]
    assert story.published_offsets()[0] == all_but(77)


def test_a_repair_of_everything_tries_no_unreadable_record(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)

    report = repair_feed(services, [], OWNER)

    assert (report.plan.read_again, len(report.not_mended)) == ((), 1)


def test_a_record_that_still_can_not_be_read_is_set_aside_again_at_once(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)

    report = repair_feed(services, [number], OWNER)

    assert [type(each) for each in report.errors] == [RecordsUnreadable]
    assert report.closed == {}
    assert list(unreadable(services)) == [number]
    assert told(landed(services)) == []


def test_two_people_may_give_it_up_and_the_frontier_goes_on(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)

    accept(services.ledger, number)

    report = reconcile(services)
    assert [each.account.frontier for each in report.partitions] == [100, 100]
    assert [(each.code.value, each.verdict) for each in report.findings] == [
        ("A11", Verdict.WAIVED)
    ]
    assert [(str(offsets), code) for _, offsets, code in services.ledger.lost(FEED)] == [
        ("orders-0 [77, 78)", "A11")
    ]
    [refused] = repair_feed(services, [number], OWNER).not_mended
    assert "given up" in refused.reason


def test_what_was_given_up_stays_lost_when_the_waiver_is_ended(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)
    accept(services.ledger, number)

    services.ledger.end_waivers([number], by="Eve", reason="it matters")

    report = reconcile(services)
    assert [each.account.frontier for each in report.partitions] == [100, 100]
    assert [(each.code.value, each.verdict) for each in report.findings] == [
        ("A11", Verdict.UNKNOWN)
    ]
    assert [str(offsets) for _, offsets, _ in services.ledger.lost(FEED)] == ["orders-0 [77, 78)"]


def test_what_was_accepted_before_it_was_tried_again_is_given_up(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    [number] = unreadable(services)
    spark, blind = services.spark.search, []

    def accepted_meanwhile(order: object, **noted: object) -> None:
        spark(order, **noted)  # type: ignore[arg-type]
        if not blind:
            blind.append(True)
            accept(services.ledger, number)

    services.spark.search = accepted_meanwhile  # type: ignore[method-assign,assignment]
    repair_feed(services, [number], OWNER)

    assert services.ledger.accounts(FEED).generations[0].frontier == 100
    [stored] = services.ledger.findings(FEED)
    assert stored.state is FindingState.WAIVED


def test_an_unreadable_record_that_expires_is_lost_with_the_cause(story: Story) -> None:
    services = blind_to(story, (0, 77))
    landed(services, 3)
    story.broker.logs[0].log_start_offset = 90

    report = landed(services)

    assert [(each.code.value, each.from_offset, each.until_offset) for each in report.findings] == [
        ("A1", 77, 78)
    ]
    reconcile(services)
    assert unreadable(services) == {}
