"""Only the holes of the batch that holds the offsets now count: rows + holes + lost = span."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.exporting import exported
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")


def under(story: Story, isolation: Isolation) -> Services:
    """The services of the same feed, after its owner has set the isolation."""
    services = story.services()
    source = services.feed.source.model_copy(update={"isolation": isolation.value})
    return replace(services, feed=services.feed.model_copy(update={"source": source}))


def lose_a_file(story: Story) -> None:
    """The first of the published files is gone."""
    sorted((story.directory / "landing" / FEED).rglob("*.parquet"))[0].unlink()


def read_again(story: Story) -> ReconcileReport:
    """The feed after its file was lost, and landed again from a leader that has not cleaned yet."""
    lose_a_file(story)
    for entry in story.broker.logs[0].entries:
        entry.kind = Kind.RECORD
    reconcile(story.services())
    assert not repair_feed(story.services(), story.named(), OWNER).errors
    return reconcile(story.services())


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition of thirteen offsets, landed after the cleaner had removed three records."""
    broker = ScriptedBroker("orders", partitions=1)
    broker.is_compacted = True
    log = broker.logs[0]
    log.append(Kind.RECORD, 5)
    log.append(Kind.COMPACTED, 3)
    log.append(Kind.RECORD, 5)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, OWNER)
    return story


def test_holes_that_a_repair_has_landed_as_rows_count_no_more(story: Story) -> None:
    found = read_again(story)
    assert found.verdict is Verdict.PROVEN_OK
    [part] = found.partitions
    assert (part.record_count, sum(part.holes.values()), part.lost_count) == (13, 0, 0)


@pytest.mark.parametrize("isolation", Isolation)
def test_a_repair_reads_as_what_it_replaces_was_read(
    ledger_databases: Callable[[], str], tmp_path: Path, isolation: Isolation
) -> None:
    """Whatever the feed's file says by then: no row goes, and none comes that nobody was to see."""
    [switched] = set(Isolation) - {isolation}
    broker = ScriptedBroker("orders", partitions=1)
    for kind, count in ((Kind.RECORD, 5), (Kind.ABORTED, 3), (Kind.CONTROL, 1), (Kind.RECORD, 5)):
        broker.logs[0].append(kind, count)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(under(story, isolation), None, OWNER)
    landed = story.published_offsets()
    lose_a_file(story)
    reconcile(under(story, switched))
    assert not repair_feed(under(story, switched), story.named(), OWNER).errors
    assert story.published_offsets() == landed
    [part] = reconcile(under(story, switched), Level.L3).partitions
    aborted = 3 if isolation is Isolation.READ_COMMITTED else 0
    assert part.record_count == 13 - aborted
    assert part.holes == {HoleClass.CONTROL: 1, HoleClass.ABORTED: aborted, HoleClass.COMPACTED: 0}


def test_a_report_after_a_repair_adds_up_to_the_span(story: Story) -> None:
    found = report_of(story.services(), read_again(story))
    [part] = found.partitions
    assert part.rows + sum(part.holes.values()) + part.lost == part.frontier == 13
    assert sum(each.landed_rows for each in found.columns) == 13
    assert sum(each.landed_offsets for each in found.columns) == 13
    assert [sum(each.holes.values()) for each in found.columns if each.landed_rows] == [0]


def test_an_export_after_a_repair_adds_up_to_the_span(story: Story) -> None:
    read_again(story)
    lines = [json.loads(each.line) for each in exported(story.dsn, None)]
    [held] = [
        each for each in lines if each["table"] == "offset_range" and each["state"] == "committed"
    ]
    holes = [each for each in lines if each["table"] == "hole"]
    assert (held["record_count"], held["hole_count"]) == (13, 0)
    assert [each["hole_count"] for each in holes] == [3]
    assert [each for each in holes if each["retracted_by"] is None] == []


def test_rows_of_a_repair_that_are_lost_are_named_where_holes_were_before(story: Story) -> None:
    read_again(story)
    lose_a_file(story)
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 3)
    log.log_start_offset = 9
    reconcile(story.services())
    assert not repair_feed(story.services(), story.named(), OWNER).errors
    found = reconcile(story.services())
    assert named(found.findings) == set(range(9))
    [part] = found.partitions
    assert (part.record_count, sum(part.holes.values()), part.lost_count) == (4, 0, 9)
    assert part.account.frontier == 13


def named(findings: Sequence[Finding]) -> set[int]:
    """The offsets that findings call lost."""
    return {
        offset
        for each in findings
        if each.verdict is Verdict.PROVEN_LOSS and each.from_offset is not None
        for offset in range(each.from_offset, each.until_offset or each.from_offset)
    }
