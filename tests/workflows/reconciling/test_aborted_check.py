"""Landed rows against the broker's aborted transactions, in a log that changes under us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("test")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Partition 0 has a transaction's marker at 10, and rows on both sides of it."""
    broker = ScriptedBroker("orders", partitions=1)
    for kind, count in ((Kind.RECORD, 10), (Kind.CONTROL, 1), (Kind.RECORD, 5)):
        broker.logs[0].append(kind, count)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, OWNER)
    return story


def aborted(story: Story) -> list[Finding]:
    found = reconcile(story.services()).findings
    return [each for each in found if each.code is FindingCode.ABORTED_LANDED]


def cut_and_regrown(story: Story) -> None:
    """The log ends within the landed rows, and goes on with another transaction, which fails."""
    log = story.broker.logs[0]
    log.cut(12)
    log.append(Kind.ABORTED, 8)
    log.append(Kind.CONTROL, 1)


def test_rows_that_the_log_says_were_aborted_are_found(story: Story) -> None:
    for offset in (12, 13):
        story.broker.logs[0].entries[offset].kind = Kind.ABORTED
    [found] = aborted(story)
    assert (found.verdict, found.from_offset, found.until_offset) == (Verdict.PROVEN_DUP, 12, 14)


def test_a_log_that_was_cut_since_the_last_plan_says_nothing_of_landed_rows(story: Story) -> None:
    cut_and_regrown(story)
    assert aborted(story) == []


def test_a_log_that_was_cut_and_stopped_says_nothing_of_landed_rows(story: Story) -> None:
    cut_and_regrown(story)
    land_feed(story.services(), None, OWNER)
    assert aborted(story) == []


def test_an_older_generation_is_not_compared_with_the_log_of_a_newer_one(story: Story) -> None:
    cut_and_regrown(story)
    land_feed(story.services(), None, OWNER)
    [stop] = [
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.LOG_CUT
    ]
    repair_feed(story.services(), (stop,), OWNER)
    land_feed(story.services(), None, OWNER)
    [*_, newest] = story.services().ledger.generations(FEED)[0]
    assert newest.ordinal == 2
    assert aborted(story) == []
