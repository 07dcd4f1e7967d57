"""What a look does not show is unknown, never in order: a broker that lags may list too little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of
from tests.support.scripted_broker import Kind, Log, MinuteByMinute
from tests.support.story import FEED, Story

OWNER = Owner("one")
Told = tuple[str, Verdict, int | None, int | None, int | None]


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions, landed up to 10; then 5 more records in each, which a reconcile has seen."""
    story = Story(ledger_databases(), tmp_path, MinuteByMinute("orders"))
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(story.services(), None, OWNER)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    reconcile(story.services())
    return story


def hide(story: Story, partition: int = 1) -> Log:
    """The broker does not list the partition any more; its log."""
    return story.broker.logs.pop(partition)


def told(finding: Finding) -> Told:
    return (
        finding.code.value,
        finding.verdict,
        finding.partition,
        finding.from_offset,
        finding.until_offset,
    )


UNKNOWN: Told = ("U1", Verdict.UNKNOWN, 1, 10, 15)


def test_a_partition_that_a_look_does_not_show_is_unknown(story: Story) -> None:
    hide(story)
    found = reconcile(story.services())
    assert [told(each) for each in found.findings] == [UNKNOWN]
    assert "does not list this partition" in found.findings[0].cause
    assert found.verdict is Verdict.UNKNOWN
    assert not found.is_complete
    verdicts = {each.account.partition.partition: each.verdict for each in found.partitions}
    assert verdicts == {0: Verdict.PROVEN_OK, 1: Verdict.UNKNOWN}


def test_a_run_and_its_dry_run_say_it_too(story: Story) -> None:
    hide(story)
    assert [told(each) for each in dry_run(story.services(), None).findings] == [UNKNOWN]
    assert [told(each) for each in land_feed(story.services(), None, OWNER).findings] == [UNKNOWN]
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(10))}


def test_a_stopped_partition_that_is_not_shown_is_unknown_too(story: Story) -> None:
    story.broker.logs[1].cut(12)
    land_feed(story.services(), None, OWNER)
    hide(story)
    found = {told(each)[:3] for each in reconcile(story.services()).findings}
    assert found == {("A3", Verdict.PROVEN_LOSS, 1), ("U1", Verdict.UNKNOWN, 1)}


def test_a_short_lag_of_a_broker_is_no_finding(story: Story) -> None:
    log, snapshot = hide(story), story.broker.snapshot

    def lagging_once(topic: str) -> object:
        seen = snapshot(topic)
        story.broker.logs[1] = log
        return seen

    story.broker.snapshot = lagging_once  # type: ignore[method-assign, assignment]
    assert reconcile(story.services()).findings == ()


def test_a_look_that_does_not_show_a_partition_proves_nothing_of_it(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    shown_at = reconcile(story.services()).taken_at
    proven = feed_completeness(story.services().ledger, FEED).proven
    assert proven.newest_look_at == proven.up_to
    hide(story)
    report = report_of(story.services(), reconcile(story.services()))
    later = feed_completeness(story.services().ledger, FEED).proven
    assert later.up_to is None or later.up_to <= (proven.newest_look_at or shown_at)
    assert report.complete_up_to is None or report.complete_up_to <= (proven.up_to or shown_at)
    assert [each.is_whole for each in report.band][-1] is False
    assert report.columns[-1].produced in (None, 0)


def all_of(report: ReconcileReport) -> set[FindingCode]:
    return {each.code for each in report.findings}


def test_such_a_look_ends_no_finding_about_the_partition(story: Story) -> None:
    story.broker.leaderless = {1}
    assert all_of(reconcile(story.services())) == {FindingCode.COULD_NOT_TELL}
    [leaderless] = story.services().ledger.findings(FEED)
    story.broker.leaderless = set()
    log = hide(story)
    reconcile(story.services())
    ids = {each.finding_id for each in story.services().ledger.findings(FEED)}
    assert leaderless.finding_id in ids
    story.broker.logs[1] = log
    assert reconcile(story.services()).findings == ()
    assert list(story.services().ledger.findings(FEED)) == []


def test_a_partition_that_no_plan_has_seen_is_missed_since_a_look_has_shown_it(
    story: Story,
) -> None:
    story.broker.logs[2] = Log()
    story.broker.logs[2].append(Kind.RECORD, 3)
    assert reconcile(story.services()).findings == ()
    log = hide(story, 2)
    assert all_of(reconcile(story.services())) == {FindingCode.COULD_NOT_TELL}
    story.broker.logs[2] = log
    land_feed(story.services(), None, OWNER)
    assert reconcile(story.services()).findings == ()


def test_a_partition_that_a_new_topic_lacks_is_over_with_the_old_one(story: Story) -> None:
    story.broker.logs[2] = Log()
    story.broker.logs[2].append(Kind.RECORD, 3)
    hide(story)
    assert all_of(reconcile(story.services())) == {FindingCode.COULD_NOT_TELL}
    story.broker.recreate(partitions=1)
    land_feed(story.services(), None, OWNER)
    assert all_of(reconcile(story.services())) == {FindingCode.TOPIC_RECREATED}
