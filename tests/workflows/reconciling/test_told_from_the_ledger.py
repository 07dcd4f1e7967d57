"""What a guarded table says is told in each reconcile; its finding only numbers it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.ledger_server import RUNNER_ROLE
from tests.support.scripted_broker import Kind, Log, ScriptedBroker
from tests.support.story import Story


def expire(broker: ScriptedBroker) -> None:
    broker.logs[0].log_start_offset = 20


def cut(broker: ScriptedBroker) -> None:
    broker.logs[0].cut(15)


def cut_and_grow(broker: ScriptedBroker) -> None:
    broker.logs[0].cut(5)
    broker.logs[0].append(Kind.RECORD, 30, value=b"other")


def recreate(broker: ScriptedBroker) -> None:
    broker.recreate()


def add_partition(broker: ScriptedBroker) -> None:
    broker.logs[2] = Log()
    broker.logs[2].append(Kind.RECORD, 5)
    broker.logs[2].log_start_offset = 3


@pytest.mark.parametrize("happens", [expire, cut, cut_and_grow, recreate, add_partition])
def test_it_is_told_again_when_somebody_has_closed_the_finding(
    ledger_databases: Callable[[], str], tmp_path: Path, happens: Callable[[ScriptedBroker], None]
) -> None:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, Owner("one"))
    broker.logs[0].append(Kind.RECORD, 10)
    reconcile(story.services())
    happens(broker)
    land_feed(story.services(), None, Owner("two"))
    told = {
        (each.code, each.partition, each.verdict) for each in reconcile(story.services()).findings
    }
    assert told

    with psycopg.connect(story.dsn, user=RUNNER_ROLE, autocommit=True) as hand:
        hand.execute(
            "UPDATE finding SET state = 'remedied', closed_at = now(), closed_by = 'me'"
            " WHERE state = 'open'"
        )

    for _ in range(2):  # as it is told, and as it is on record then
        found = reconcile(story.services()).findings
        assert {(each.code, each.partition, each.verdict) for each in found} == told
