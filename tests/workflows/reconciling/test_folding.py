"""Folding the ledger's ranges after a reconcile: it stands in nobody's way, and nobody in its."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import LedgerUnavailable
from tallystick.ledger import commits
from tallystick.ledger.evidence import SettledRanges
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.reconciling import reporting
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("test")
DEADLINE_SECONDS = 20
WAITING = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions, landed in two batches that nobody has folded yet."""
    return a_landed_story(ledger_databases(), tmp_path, 10, 5)


def files(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def committed_ranges(story: Story) -> int:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as connection:
        rows = connection.execute("SELECT FROM offset_range WHERE state = 'committed'")
        return len(rows.fetchall())


def until_somebody_waits(story: Story) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(WAITING).fetchone()
            if row and row[0]:
                return
            time.sleep(0.005)
    raise AssertionError("nobody waited for a lock")


def test_ranges_are_folded_beside_the_commit_of_a_repair(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that it would fold are being retracted: it waits, and folds what is there then."""
    files(story)[0].unlink()
    reconcile(story.services())
    is_inside, may_end, go_on = Event(), Event(), commits._commit_files

    def slow(transaction: Any, manifest: Any) -> None:
        go_on(transaction, manifest)
        is_inside.set()
        assert may_end.wait(DEADLINE_SECONDS)

    monkeypatch.setattr(commits, "_commit_files", slow)
    with ThreadPoolExecutor(2) as pool:
        repair = pool.submit(repair_feed, story.services(), story.named(), OWNER)
        assert is_inside.wait(DEADLINE_SECONDS)
        fold = pool.submit(Ledger(story.dsn).fold, FEED)
        until_somebody_waits(story)
        may_end.set()
        fold.result(DEADLINE_SECONDS)
        assert not repair.result(DEADLINE_SECONDS).errors
    assert reconcile(story.services()).findings == ()
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}


def test_a_report_is_kept_before_ranges_are_folded(story: Story) -> None:
    services = story.services()
    document = reporting.report_of(services, reconcile(services))
    assert committed_ranges(story) == 4
    reporting.store_report(services, document)
    assert committed_ranges(story) == 2


def test_a_report_is_kept_though_the_ledger_dies_before_the_folding(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(self: Ledger, feed: str) -> int:
        raise LedgerUnavailable("the server closed the connection")

    monkeypatch.setattr(Ledger, "fold", dead)
    services = story.services()
    document = reporting.report_of(services, reconcile(services))
    number = reporting.store_report(services, document)
    assert number
    assert story.services().ledger.report_at(FEED, None) == document


def test_nothing_is_folded_where_the_ledger_contradicts_itself(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = story.services()
    document = reporting.report_of(services, reconcile(services))
    [account, *_] = services.ledger.accounts(FEED).generations.values()
    unsound = [SettledRanges(account, ())]
    monkeypatch.setattr(Ledger, "unsound", lambda self, feed: unsound)
    reporting.store_report(services, document)
    assert committed_ranges(story) == 4
