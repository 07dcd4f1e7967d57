"""Offsets without a record are no work: what a cleaner has left behind fits into one batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
BUDGETS = {"max_records_per_run": 100, "max_records_per_batch": 50}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Of 1,020 offsets in one partition the cleaner has left the last 20."""
    broker = ScriptedBroker("orders", partitions=1)
    broker.is_compacted = True
    broker.logs[0].append(Kind.COMPACTED, 1_000)
    broker.logs[0].append(Kind.RECORD, 20)
    return Story(ledger_databases(), tmp_path, broker)


def test_a_stretch_that_the_cleaner_left_is_landed_with_the_records_behind_it(
    story: Story,
) -> None:
    services = story.services(**BUDGETS)
    shown = dry_run(services, None)
    report = land_feed(services, None, OWNER)

    assert (shown.warnings, report.errors) == ((), ())
    [batch] = story.services().ledger.batches(FEED)
    assert [str(each.planned.offsets) for each in batch.ranges] == ["orders-0 [0, 1020)"]
    assert [(each.record_count, each.hole_count) for each in batch.ranges] == [(20, 1_000)]
    assert story.published_offsets() == {0: list(range(1_000, 1_020))}
    assert reconcile(services).verdict is Verdict.PROVEN_OK


def test_records_behind_it_are_cut_to_the_budgets(story: Story) -> None:
    story.broker.logs[0].append(Kind.RECORD, 230)
    rows = []
    while report := land_feed(story.services(**BUDGETS), None, OWNER):
        assert not report.errors
        done = [each.commit.record_count for each in report.batches if each.commit]
        if not done:
            break
        rows.append(done)

    assert rows == [[50, 50], [50, 50], [50]]
    assert story.published_offsets() == {0: list(range(1_000, 1_250))}
