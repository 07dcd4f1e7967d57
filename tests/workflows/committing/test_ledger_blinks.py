"""The ledger is away for a moment while Spark works: a finished landing is not thrown away."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.errors import AttemptFenced, LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning.plan import plan_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story

ONE = Owner("one")
FIRST, SECOND = AttemptId("1" * 16), AttemptId("2" * 16)
LONG = timedelta(seconds=60)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


@pytest.fixture
def batch_id(story: Story) -> BatchId:
    return plan_feed(story.services(lease=LONG), None, ONE).batches[0].batch_id


def instead(
    monkeypatch: pytest.MonkeyPatch, verb: str, happens: Callable[[], object], *, when: str = ""
) -> list[str]:
    """Something happens before a question to the ledger; the list grows with each time it does.

    `when` is "after Spark" for a renewal of more than one lease.
    """
    really, times = getattr(Ledger, verb), list[str]()

    def asked(ledger: Ledger, attempt: Any, given: Any) -> None:
        if not when or given > LONG:
            times.append(verb)
            happens()
        really(ledger, attempt, given)

    monkeypatch.setattr(Ledger, verb, asked)
    return times


def away() -> None:
    raise LedgerUnavailable("the database system is starting up")


@pytest.mark.parametrize(
    ("verb", "when", "words"),
    [
        ("record_application", "", "The application's id could not be noted"),
        ("renew_lease", "after Spark", "The batch could not be held for the task that verifies it"),
    ],
)
def test_a_ledger_that_is_away_for_a_moment_costs_no_landing(
    story: Story,
    batch_id: BatchId,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    verb: str,
    when: str,
    words: str,
) -> None:
    times = instead(monkeypatch, verb, away, when=when)
    attempt = land_batch(story.services(lease=LONG), batch_id, FIRST, ONE)
    assert attempt
    assert times == [verb]
    assert f"{words} (continuing without it): the ledger can't be reached" in caplog.text
    verify_and_commit(story.services(lease=LONG), attempt)
    publish(story.services(), batch_id)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


@pytest.mark.parametrize(
    ("verb", "when"), [("record_application", ""), ("renew_lease", "after Spark")]
)
def test_an_attempt_that_was_taken_over_meanwhile_still_ends(
    story: Story, batch_id: BatchId, monkeypatch: pytest.MonkeyPatch, verb: str, when: str
) -> None:
    def take_over() -> None:
        with closing(Ledger(story.dsn)) as ledger:
            ledger.begin_attempt(batch_id, attempt_id=SECOND, owner=ONE, lease=LONG)

    times = instead(monkeypatch, verb, take_over, when=when)
    with pytest.raises(AttemptFenced, match="attempt number 2 has taken over"):
        land_batch(story.services(lease=LONG), batch_id, FIRST, ONE)
    assert times == [verb]
