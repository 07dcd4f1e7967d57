"""A feed that has landed, a ledger that is lost, and one that comes from a backup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ledger_server import LedgerServer
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions; one has an aborted transaction and its marker."""
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[0].append(Kind.ABORTED, 4)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[1].append(Kind.RECORD, 7)
    return Story(ledger_databases(), tmp_path / "story", broker)


@pytest.fixture
def lose(ledger_databases: Callable[[], str]) -> Callable[[Story], Story]:
    """The same storage and broker, with an empty ledger."""
    return lambda story: replace(story, dsn=ledger_databases())


@pytest.fixture
def backup(ledger_server: LedgerServer) -> Callable[[Story], Callable[[], Story]]:
    """A backup of the ledger as it is now: what it gives back has this ledger, and later files."""

    def of(story: Story) -> Callable[[], Story]:
        name = story.dsn.rpartition("/")[2]
        ledger_server.create(f"{name}_backup", template=name)
        return lambda: replace(story, dsn=ledger_server.dsn(f"{name}_backup"))

    return of
