"""Strays and a repair: moved out of the readers' way wherever they lie, or told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.errors import StorageRefused
from tallystick.workflows.committing.retiring import quarantine_stray
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
ALL = {0: list(range(10)), 1: list(range(10))}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def top_of(story: Story) -> Path:
    return story.directory / "landing" / FEED


def a_file_of(story: Story) -> Path:
    return next(iter(sorted(top_of(story).rglob("*.parquet"))))


def recorded(story: Story) -> Sequence[StoredFinding]:
    return story.services().ledger.findings(FEED)


def standing(story: Story) -> list[FindingCode]:
    return [each.finding.code for each in recorded(story)]


def test_a_stray_above_the_generations_is_moved_out_of_the_feeds_directory(story: Story) -> None:
    file = a_file_of(story)
    top, inner = top_of(story) / "copy.parquet", file.parent / "copy.parquet"
    for each in (top, inner):
        each.write_bytes(file.read_bytes())
    reconcile(story.services())
    dry = dry_repair(story.services(), ())
    report = repair_feed(story.services(), (), OWNER)
    assert not report.errors
    assert list(report.quarantined) == list(dry.plan.quarantined)
    assert all(each.quarantine.startswith("/landing/_quarantine/") for each in report.quarantined)
    assert not top.exists()
    assert not inner.exists()
    assert story.published_offsets() == ALL
    reconcile(story.services())
    assert standing(story) == []


def test_rows_twice_end_with_their_stray_and_count_as_mended(story: Story) -> None:
    file = a_file_of(story)
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    reconcile(story.services())
    assert FindingCode.LANDED_TWICE in standing(story)
    report = repair_feed(story.services(), (), OWNER)
    assert report.not_mended == ()
    assert standing(story) == []


def test_a_dry_run_tells_rows_twice_as_mended_with_the_finding_of_their_stray(
    story: Story,
) -> None:
    file = a_file_of(story)
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    reconcile(story.services())
    numbers = {each.finding.code: each.finding_id for each in recorded(story)}
    twice = [each for each in recorded(story) if each.finding.code is FindingCode.LANDED_TWICE]
    dry = dry_repair(story.services(), ())
    assert dry.not_mended == ()
    assert {(each.finding_id, each.stray_id) for each in dry.plan.end_with_strays} == {
        (each.finding_id, numbers[FindingCode.STRAY_FILE]) for each in twice
    }
    report = repair_feed(story.services(), (), OWNER)
    assert set(report.closed) >= {each.finding_id for each in dry.plan.end_with_strays}


def test_rows_twice_are_left_where_the_finding_of_their_stray_is_not_named(story: Story) -> None:
    file = a_file_of(story)
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    reconcile(story.services())
    twice = [each for each in recorded(story) if each.finding.code is FindingCode.LANDED_TWICE]
    for repair in (
        dry_repair(story.services(), [twice[0].finding_id]),
        repair_feed(story.services(), [twice[0].finding_id], OWNER),
    ):
        assert [each.finding_id for each in repair.not_mended] == [twice[0].finding_id]
        assert repair.plan.end_with_strays == ()


def test_rows_twice_are_left_where_their_stray_cannot_be_moved(story: Story) -> None:
    file = a_file_of(story)
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    reconcile(story.services())
    services = story.services()
    refusing: Any = Refusing(services.store, "copy.parquet")
    report = repair_feed(replace(services, store=refusing), (), OWNER)
    assert set(standing(story)) == {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}
    assert {each.finding_id for each in report.not_mended} == {
        each.finding_id for each in recorded(story)
    }


class Refusing:
    """A store that may not move one file."""

    def __init__(self, store: Any, name: str) -> None:
        self._store, self._name = store, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def rename_exclusive(self, source: str, target: str) -> None:
        if source.endswith(self._name):
            raise StorageRefused(source, "permission denied")
        self._store.rename_exclusive(source, target)


def test_a_stray_that_cannot_be_moved_holds_up_nothing_else(story: Story) -> None:
    file = a_file_of(story)
    for name in ("a.csv", "b.csv"):
        (file.parent / name).write_bytes(b"hello")
    file.unlink()
    reconcile(story.services())
    services = story.services()
    refusing: Any = Refusing(services.store, "a.csv")
    services = replace(services, store=refusing)
    report = repair_feed(services, story.named(), OWNER)
    assert [type(each) for each in report.errors] == [StorageRefused]
    assert [each.path.rpartition("/")[2] for each in report.quarantined] == ["b.csv"]
    assert standing(story) == [FindingCode.STRAY_FILE]
    assert story.published_offsets() == ALL


def test_a_stray_that_comes_again_is_moved_beside_the_first(story: Story) -> None:
    """The first repair is killed after the move; the stray is written again with other content."""
    stray = a_file_of(story).parent / "notes.csv"
    stray.write_bytes(b"one")
    reconcile(story.services())
    [planned] = dry_repair(story.services(), ()).plan.quarantined
    first = quarantine_stray(story.services(), planned)
    stray.write_bytes(b"two")
    report = repair_feed(story.services(), (), OWNER)
    assert not report.errors
    [moved] = report.quarantined
    kept = [story.directory / str(each).lstrip("/") for each in (first, moved.quarantine)]
    assert [each.read_bytes() for each in kept] == [b"one", b"two"]
    assert not stray.exists()
    assert standing(story) == []
