"""A ledger that was lost, or is behind, becomes what it was: from manifests and files alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.findings import FindingCode
from tallystick.domain.identities import Owner
from tallystick.domain.states import Verdict
from tallystick.workflows.rebuilding import rebuild
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.run import RunReport, land_feed
from tests.support.ledger_account import account_of
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("test")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[0].append(Kind.ABORTED, 4)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[1].append(Kind.RECORD, 7)
    return Story(ledger_databases(), tmp_path, broker)


@pytest.fixture
def lose(ledger_databases: Callable[[], str]) -> Callable[[Story], Story]:
    """The same storage and broker, with an empty ledger."""
    return lambda story: replace(story, dsn=ledger_databases())


def land(story: Story) -> RunReport:
    report = land_feed(story.services(max_records_per_batch=8), None, OWNER)
    assert not report.errors
    return report


def directories(story: Story) -> list[Path]:
    """Where the batches are published."""
    return sorted((story.directory / "landing" / FEED).rglob("batch=*"))


def test_an_empty_ledger_becomes_what_it_was(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    story.broker.logs[1].append(Kind.RECORD, 5)
    land(story)
    before = account_of(story.services())
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert not report.findings
    assert len(report.entered) == len(directories(story))
    assert account_of(after.services()) == before
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK
    assert land(after).plan.all_batches == ()
    assert rebuild(after.services()).entered == []
