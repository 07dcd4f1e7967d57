"""How often a landing asks the ledger: each time it waits, and the ledger may be away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId, Owner
from tallystick.ledger.connection import LedgerConnection
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out
from tallystick.workflows.planning.plan import plan_feed
from tests.support.scripted_broker import Kind
from tests.support.story import Story, a_landed_story

OWNER = Owner("run")


@pytest.fixture
def story(ledger_dsn: str, tmp_path: Path) -> Story:
    return a_landed_story(ledger_dsn, tmp_path, 10)


def planned(story: Story) -> BatchPlan:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    [batch] = plan_feed(story.services(), None, OWNER).batches
    return batch


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every transaction's first statement."""
    really, found = LedgerConnection._begun, list[str]()

    def counted(connection: LedgerConnection, begin: str) -> Any:
        found.append(begin)
        return really(connection, begin)

    monkeypatch.setattr(LedgerConnection, "_begun", counted)
    return found


def test_a_batch_takes_nine_transactions_in_one_process(story: Story, begun: list[str]) -> None:
    batch = planned(story)
    begun.clear()
    assert carry_out(story.services(), batch.batch_id, OWNER).directory
    assert len(begun) == 9


def test_a_batch_takes_ten_transactions_in_two_tasks(story: Story, begun: list[str]) -> None:
    batch = planned(story)
    begun.clear()
    attempt = land_batch(story.services(), batch.batch_id, AttemptId("a" * 16), OWNER)
    assert attempt
    services = story.services()
    assert verify_and_commit(services, attempt)
    assert publish(services, batch.batch_id, OWNER)
    assert len(begun) == 10
