"""Rows are counted again: what lengths and checksums can't tell is told to the offset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import StorageRefused
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling import storage_look
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.storage_look import look_at_offsets
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")


@pytest.fixture
def story(
    ledger_databases: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Story:
    """Ten records in each of two partitions are landed; the file system's checksums say nothing."""
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    monkeypatch.setattr(LocalFileStore, "checksum", lambda store, path: "none:00")
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, OWNER)
    return story


def rewrite(story: Story, change: Callable[[pa.Table], pa.Table]) -> None:
    """The landed file with other rows, under the very same length as far as the ledger knows."""
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    pq.write_table(change(pq.read_table(file, partitioning=None)), file)
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE file DISABLE TRIGGER file_append_only")
        hand.execute("UPDATE file SET length_bytes = %s", [file.stat().st_size])


def told(story: Story) -> set[tuple[object, ...]]:
    return {
        (each.code.value, each.partition, each.from_offset, each.until_offset)
        for each in reconcile(story.services()).findings
    }


def test_rows_that_are_missing_doubled_or_too_many_are_told_to_the_offset(story: Story) -> None:
    def change(rows: pa.Table) -> pa.Table:
        offsets = rows["offset"].to_pylist()
        partitions = rows["partition"].to_pylist()
        kept = [
            number
            for number in range(rows.num_rows)
            if (partitions[number], offsets[number]) not in {(0, 3), (0, 4), (0, 7)}
        ]
        twice = [n for n in kept if (partitions[n], offsets[n]) == (1, 5)]
        return rows.take([*kept, *twice])

    rewrite(story, change)
    expected = {("A8", 0, 3, 5), ("A8", 0, 7, 8), ("B2", 1, 5, 6)}
    assert told(story) == expected
    # What was not clean is read again each time, so it stands while it lasts.
    assert told(story) == expected
    assert len(story.services().ledger.findings(FEED)) == 3


def test_a_clean_batch_is_read_once_until_it_is_due(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(story) == set()
    asked: list[str] = []
    really = LocalFileStore.read_back

    def read_back(store: LocalFileStore, directory: str) -> object:
        asked.append(directory)
        return really(store, directory)

    monkeypatch.setattr(LocalFileStore, "read_back", read_back)
    assert told(story) == set()
    assert asked == []
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE batch_check DISABLE TRIGGER batch_check_append_only")
        hand.execute("UPDATE batch_check SET checked_at = checked_at - interval '8 days'")
    assert told(story) == set()
    assert len(asked) == 1


def test_a_repair_mends_the_rows_and_closes_the_findings(story: Story) -> None:
    rewrite(story, lambda rows: rows.slice(2))
    assert told(story)
    assert not repair_feed(story.services(), (), OWNER).errors
    assert told(story) == set()
    assert story.services().ledger.findings(FEED) == []
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_a_file_that_lacks_rows_is_there_and_may_hold_the_only_others(story: Story) -> None:
    """Its first rows are gone; of the others the broker has a part only."""
    rewrite(story, lambda rows: rows.slice(2))
    assert told(story)
    story.broker.logs[0].log_start_offset = 5
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert all("it is left as it is" in each.reason for each in report.plan.not_mended)
    assert story.published_offsets() == {0: list(range(2, 10)), 1: list(range(10))}
    assert story.services().ledger.lost(FEED) == []


def test_a_batch_that_can_never_be_read_keeps_no_other_from_its_turn(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    [sick] = (story.directory / "landing" / FEED).rglob("*.parquet")
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(story.services(), None, OWNER)
    really = LocalFileStore.read_back

    def read_back(store: LocalFileStore, directory: str) -> object:
        if directory.endswith(sick.parent.name):
            raise StorageRefused(directory, "no DataNode has a block")
        return really(store, directory)

    monkeypatch.setattr(LocalFileStore, "read_back", read_back)
    monkeypatch.setattr(storage_look, "_MOST_BATCHES", 1)
    first, second = (look_at_offsets(story.services()) for _ in range(2))
    assert (first.read, len(first.unheard)) == ({}, 1)
    assert (list(second.read.values()), list(second.unheard)) == ([True], [])


def test_a_batch_that_is_told_already_keeps_no_other_from_its_turn(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    [sick] = [each.batch_id for each in story.services().ledger.directories(FEED)]
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(story.services(), None, OWNER)
    monkeypatch.setattr(storage_look, "_MOST_BATCHES", 1)
    first, second = (look_at_offsets(story.services(), {sick}) for _ in range(2))
    assert first.read == {}
    assert list(second.read.values()) == [True]


def test_a_file_that_changes_just_before_its_rows_are_read_is_not_read_as_committed(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows say nothing about the batch: the next look asks the file."""
    monkeypatch.setattr(LocalFileStore, "checksum", lambda store, path: "other:00")
    assert look_at_offsets(story.services()).read == {}
    monkeypatch.setattr(LocalFileStore, "checksum", lambda store, path: "none:00")
    assert list(look_at_offsets(story.services()).read.values()) == [True]
