"""A plan makes values of every partition without the cycle collector, and leaves it as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import BrokerUnavailable
from tallystick.workflows.planning.looking import collector_paused
from tallystick.workflows.planning.plan import plan_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story


def test_the_collector_is_as_it_was_before() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_plan_that_fails_leaves_the_collector_at_work(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    story.broker.logs[0].append(Kind.RECORD, 3)
    seen: list[bool] = []

    def noted(topic: str) -> BrokerSnapshot:
        seen.append(gc.isenabled())
        raise BrokerUnavailable("scripted", "no answer")

    story.broker.snapshot = noted  # type: ignore[method-assign]
    with pytest.raises(BrokerUnavailable):
        plan_feed(story.services(), None, Owner("run"))
    assert seen == [False]
    assert gc.isenabled()
