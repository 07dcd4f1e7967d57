"""A committed file that is missing or changed holds nothing, whether or not a look has told: what
attempts have beside it may be the only copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageRefused
from tallystick.ports.file_store import FileStore, StoredEntry
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.builders import a_finding
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.unreadable_store import LISTS, unreadable

OWNER = Owner("one")
FIRST, SECOND = AttemptId("1" * 16), AttemptId("2" * 16)


@dataclass
class Twice:
    """Offsets 10 to 20 of one partition: read by a first attempt, committed by a second one, whose
    run died before its sweep. The broker has them no more.
    """

    story: Story
    batch_id: BatchId

    @property
    def committed(self) -> Path:
        [file] = (self.story.directory / "landing" / FEED).rglob(f"*{SECOND}*.parquet")
        return file

    @property
    def copies(self) -> list[Path]:
        """The files of the first attempt, wherever they are."""
        return sorted((self.story.directory / "landing").rglob(f"*{FIRST}*.parquet"))

    @property
    def quarantined(self) -> str:
        return f"/landing/_quarantine/{FEED}/unproven/batch={self.batch_id}/attempt={FIRST}"

    @property
    def numbers(self) -> list[int]:
        return [each.finding_id for each in self.story.services().ledger.findings(FEED)]


class Listing:
    """A file store that notes which directories are listed."""

    def __init__(self, store: FileStore) -> None:
        self._store = store
        self.listed: list[str] = []

    def entries(self, path: str) -> Sequence[StoredEntry]:
        self.listed.append(path)
        return self._store.entries(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Closed(Listing):
    """One that refuses to list one directory."""

    def __init__(self, store: FileStore, directory: str) -> None:
        super().__init__(store)
        self._directory = directory

    def entries(self, path: str) -> Sequence[StoredEntry]:
        if path == self._directory:
            raise StorageRefused(path, "permission denied")
        return super().entries(path)


@pytest.fixture
def twice(ledger_databases: Callable[[], str], tmp_path: Path) -> Twice:
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, 10, broker=broker)
    log = broker.logs[0]
    log.append(Kind.RECORD, 10)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).all_batches
    assert land_batch(services, batch.batch_id, FIRST, OWNER)
    second = land_batch(services, batch.batch_id, SECOND, OWNER)
    assert second
    verify_and_commit(services, second)
    publish(services, batch.batch_id)
    log.append(Kind.RECORD, 5)
    log.log_start_offset = 20
    return Twice(story, batch.batch_id)


def known_to_be_missing(twice: Twice) -> bytes:
    """The committed file's bytes; it is gone, and a reconcile has said so."""
    file = twice.committed
    content = file.read_bytes()
    file.unlink()
    assert reconcile(twice.story.services()).verdict is Verdict.PROVEN_LOSS
    return content


def test_a_copy_of_a_file_that_is_missing_is_kept_until_the_file_is_back(twice: Twice) -> None:
    file = twice.committed
    content = known_to_be_missing(twice)
    land_feed(twice.story.services(), None, OWNER)
    assert len(twice.copies) == 1
    file.write_bytes(content)
    reconcile(twice.story.services())
    land_feed(twice.story.services(), None, OWNER)
    assert twice.copies == []
    assert twice.story.staged() == []
    assert twice.story.published_offsets() == {0: list(range(25))}


def test_a_copy_of_a_file_that_is_gone_is_kept_before_any_look_has_told(twice: Twice) -> None:
    content = twice.committed.read_bytes()
    twice.committed.unlink()
    for _ in range(2):
        sweep(twice.story.services())
        assert [each.read_bytes() for each in twice.copies] == [content]
    assert reconcile(twice.story.services()).verdict is Verdict.PROVEN_LOSS
    assert not repair_feed(twice.story.services(), twice.numbers, OWNER).errors
    [lost] = twice.story.services().ledger.findings(FEED)
    assert lost.finding.evidence["kept"] == [twice.quarantined]


def test_a_copy_of_a_directory_that_is_gone_or_refused_is_kept(twice: Twice) -> None:
    elsewhere = twice.story.directory / "elsewhere"
    directory = twice.committed.parent
    directory.rename(elsewhere)
    sweep(twice.story.services())
    assert len(twice.copies) == 1
    elsewhere.rename(directory)
    closed = f"/{directory.relative_to(twice.story.directory)}"
    services = twice.story.services()
    store: Any = Closed(services.store, closed)
    assert sweep(replace(services, store=store)) == 0
    assert len(twice.copies) == 1
    assert sweep(services)
    assert twice.copies == []


def test_a_copy_of_a_file_that_was_cut_short_is_kept_before_any_look_has_told(twice: Twice) -> None:
    content = twice.committed.read_bytes()
    twice.committed.write_bytes(content[:-1])
    sweep(twice.story.services())
    assert len(twice.copies) == 1
    twice.committed.write_bytes(content)
    assert sweep(twice.story.services())
    assert twice.copies == []


@pytest.mark.parametrize("is_told", [True, False])
def test_a_copy_of_a_file_that_lost_its_blocks_is_kept_until_they_are_back(
    twice: Twice, is_told: bool
) -> None:
    story, name = twice.story, twice.committed.name
    if is_told:
        reconcile(unreadable(story, name))
        [told] = story.services().ledger.findings(FEED)
        assert told.finding.code is FindingCode.COULD_NOT_TELL
    sweep(unreadable(story, name))
    assert len(twice.copies) == 1
    reconcile(story.services())
    assert sweep(story.services())
    assert twice.copies == []


def test_a_copy_of_a_file_that_changed_without_its_length_is_kept_before_any_look(
    twice: Twice,
) -> None:
    content = twice.committed.read_bytes()
    twice.committed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    sweep(twice.story.services())
    assert len(twice.copies) == 1


def test_a_copy_of_a_file_whose_rows_are_not_the_logs_is_kept(twice: Twice) -> None:
    story = twice.story
    services = story.services()
    [directory] = [
        each
        for each in services.ledger.committed_copies(twice.batch_id)
        if each.name == twice.committed.name
    ]
    differs = a_finding(
        "C3",
        from_offset=10,
        until_offset=20,
        evidence={"batch": twice.batch_id, "file": directory.name},
        subject=directory.name,
    )
    services.ledger.record_findings(FEED, [differs])
    sweep(services)
    assert len(twice.copies) == 1


def test_what_a_late_writer_left_beside_a_file_that_nobody_has_missed_is_kept(twice: Twice) -> None:
    [copy] = twice.copies
    content = copy.read_bytes()
    assert sweep(twice.story.services())
    copy.parent.mkdir(parents=True)
    copy.write_bytes(content)
    twice.committed.unlink()
    sweep(twice.story.services())
    assert len(twice.copies) == 1


def test_a_sweep_lists_each_directory_once_and_only_beside_rows(twice: Twice) -> None:
    services = twice.story.services()
    store = Listing(services.store)
    assert sweep(replace(services, store=store)) == 2  # type: ignore[arg-type]
    shown = twice.committed.parent
    assert store.listed.count(f"/{shown.relative_to(twice.story.directory)}") == 1
    land_feed(twice.story.services(), None, OWNER)
    store.listed.clear()
    assert sweep(replace(services, store=store)) == 0  # type: ignore[arg-type]
    assert store.listed == ["/landing/orders", "/landing/_staging"]


def test_a_copy_of_a_file_that_has_changed_is_kept(twice: Twice) -> None:
    twice.committed.write_bytes(b"PAR1")
    reconcile(twice.story.services())
    land_feed(twice.story.services(), None, OWNER)
    assert len(twice.copies) == 1


def test_a_copy_is_kept_although_the_ledger_has_folded_its_range(twice: Twice) -> None:
    known_to_be_missing(twice)
    ledger = twice.story.services().ledger
    assert ledger.offsets_at_risk([twice.batch_id])
    ledger.fold(FEED)
    land_feed(twice.story.services(), None, OWNER)
    assert len(twice.copies) == 1


def test_what_a_late_writer_left_beside_a_file_that_is_missing_is_kept(twice: Twice) -> None:
    [copy] = twice.copies
    content = copy.read_bytes()
    assert sweep(twice.story.services())
    assert twice.copies == []
    copy.parent.mkdir(parents=True)
    copy.write_bytes(content)
    known_to_be_missing(twice)
    land_feed(twice.story.services(), None, OWNER)
    assert len(twice.copies) == 1


def test_no_row_is_given_up_while_a_copy_that_may_hold_it_can_not_be_read(twice: Twice) -> None:
    known_to_be_missing(twice)
    story = twice.story

    report = repair_feed(unreadable(story, FIRST, LISTS), twice.numbers, OWNER)

    assert any(FIRST in str(each) for each in report.errors)
    assert not story.services().ledger.lost(FEED)
    for _ in range(2):  # what nobody took over is given up first
        repair_feed(story.services(), twice.numbers, OWNER)
    [lost] = story.services().ledger.findings(FEED)
    assert lost.finding.evidence["kept"] == [twice.quarantined]


def test_a_copy_of_rows_that_are_given_up_is_quarantined_and_named(
    twice: Twice, ledger_databases: Callable[[], str]
) -> None:
    known_to_be_missing(twice)
    assert not repair_feed(twice.story.services(), twice.numbers, OWNER).errors
    for _ in range(2):
        [lost] = twice.story.services().ledger.findings(FEED)
        assert lost.finding.evidence["kept"] == [twice.quarantined]
        assert twice.quarantined in lost.finding.next_step
        assert [str(each.parent.parent) for each in twice.copies] == [
            f"{twice.story.directory}{twice.quarantined}"
        ]
        reconcile(twice.story.services())
    rebuilt = Story(ledger_databases(), twice.story.directory, twice.story.broker)
    rebuild(rebuilt.services())
    reconcile(rebuilt.services())
    [again] = rebuilt.services().ledger.findings(FEED)
    assert twice.quarantined in again.finding.next_step


def test_a_copy_of_rows_that_are_landed_again_is_deleted(twice: Twice) -> None:
    twice.story.broker.logs[0].log_start_offset = 0
    known_to_be_missing(twice)
    assert not repair_feed(twice.story.services(), twice.story.named(), OWNER).errors
    land_feed(twice.story.services(), None, OWNER)
    assert twice.copies == []
    assert twice.story.published_offsets() == {0: list(range(25))}
