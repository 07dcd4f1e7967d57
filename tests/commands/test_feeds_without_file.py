"""What the ledger has of a feed whose file is gone can still be read; a mistyped name is told."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import pytest

from tallystick.ledger.postgres import PostgresLedger
from tests.support.command_line import CommandLine
from tests.support.scripted_broker import Kind
from tests.support.story import Story


@pytest.fixture
def retired(landing: CommandLine, story: Story) -> CommandLine:
    """The topic was deleted with unread records, and then the feed's file."""

    @contextmanager
    def ledger_of(environ: Any) -> Any:
        yield PostgresLedger(environ["LEDGER_DSN"])

    assert landing("land", "orders").code == 0
    story.broker.logs[1].append(Kind.RECORD, 3)
    landing("reconcile", "orders")
    story.broker.topic = "another"
    landing("reconcile", "orders")
    (landing.folder / "orders.yaml").unlink()
    return landing.with_stage(ledger_of=ledger_of)


def test_its_findings_and_completeness_are_readable(retired: CommandLine) -> None:
    told = retired("findings", "orders", "--json")
    assert told.code == 1
    [finding] = [each for each in told.json["findings"] if each["from_offset"] is not None]
    assert (finding["code"], finding["from_offset"], finding["until_offset"]) == ("A5", 7, 10)
    told = retired("complete", "orders", "--at", "2026-11-01T13:00:00Z")
    assert told.code == 1
    assert "orders-1" in told.out
    assert retired("report", "orders").code == 1
    assert retired("batches", "orders").code == 0
    assert retired("files", "orders").code == 0


def test_a_name_that_nobody_ever_landed_is_told(retired: CommandLine) -> None:
    for command in ("findings", "complete", "report", "batches", "files"):
        told = retired(command, "order")
        assert (told.code, "there is no feed 'order'" in told.err) == (2, True)
