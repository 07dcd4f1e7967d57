"""What an older attempt still writes is ended: where it may write, as long as anybody answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import plan_feed
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import Story

OWNER = Owner("one")
DEAD = [AttemptId("a" * 16), AttemptId("b" * 16)]
COMMITTED = AttemptId("c" * 16)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One batch: two attempts that were overtaken, and the one that has landed it."""
    broker = ScriptedBroker("orders", partitions=1)
    broker.logs[0].append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).batches
    for each in (*DEAD, COMMITTED):
        attempt = land_batch(story.services(), batch.batch_id, each, Owner(each))
    assert attempt
    assert verify_and_commit(services, attempt)
    publish(services, batch.batch_id)
    return story


def swept(story: Story, *, is_heard: bool) -> tuple[int, set[str]]:
    """How many directories are gone, and which attempts were ended before."""
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    spark.is_heard = is_heard
    return sweep(replace(services, spark=spark)), set(spark.interrupted)


def test_a_silent_server_is_asked_once_before_a_landing(story: Story) -> None:
    story.broker.logs[0].append(Kind.RECORD, 10)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).batches
    for number in range(2):
        land_batch(services, batch.batch_id, AttemptId(f"{number}" * 16), Owner(f"{number}"))
    spark = ScriptedSpark(story.broker, services.store)
    spark.is_heard = False

    assert land_batch(replace(services, spark=spark), batch.batch_id, AttemptId("d" * 16), OWNER)

    assert len(spark.interrupted) == 1


def test_what_has_committed_has_ended_and_is_not_asked_for(story: Story) -> None:
    assert swept(story, is_heard=True) == (3, set(DEAD))
    assert story.staged() == []


def test_a_silent_server_is_asked_once_and_keeps_nothing_from_being_swept(story: Story) -> None:
    count, asked = swept(story, is_heard=False)

    assert (count, len(asked)) == (3, 1)
    assert story.staged() == []
