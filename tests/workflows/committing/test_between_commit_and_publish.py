"""What is committed and not shown is not called complete, whoever holds it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reporting import feed_completeness
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


@pytest.mark.parametrize("lease", [timedelta(0), timedelta(minutes=1)])
def test_rows_that_readers_do_not_see_yet_are_not_complete(story: Story, lease: timedelta) -> None:
    services = story.services(lease=lease)
    [batch] = plan_feed(services, None, Owner("one")).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), Owner("one"))
    assert attempt
    verify_and_commit(services, attempt)  # and its process is stopped here
    assert story.published_offsets() == {}

    assert feed_completeness(story.services().ledger, FEED).proven.up_to is None
