"""A published directory whose `_tally.json` somebody has deleted or changed: told, written anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.identities import Owner
from tallystick.domain.repair.finishing import NOT_WRITTEN
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.errors import FileMissing, StorageRefused
from tallystick.ledger import ledger
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.local_directory import LocalFileStore
from tests.support.refusals import refuse
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("test")
N3, A8 = FindingCode.UNFINISHED_BATCH, FindingCode.COMMITTED_FILE_MISSING
STRAY, U1 = FindingCode.STRAY_FILE, FindingCode.COULD_NOT_TELL


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch and one file."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def manifest_of(story: Story) -> Path:
    [found] = (story.directory / "landing" / FEED).rglob(MANIFEST_NAME)
    return found


def look(story: Story, level: Level = Level.L2) -> list[Finding]:
    return list(reconcile(story.services(), level).findings)


def recorded(story: Story) -> Sequence[StoredFinding]:
    return story.services().ledger.findings(FEED)


def test_a_manifest_that_is_gone_is_told_and_written_anew_byte_for_byte(story: Story) -> None:
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    assert look(story) == []
    manifest.unlink()

    [found] = look(story)

    assert (found.code, found.verdict, found.level) == (N3, Verdict.UNKNOWN, Level.L2)
    place = f"/{manifest.relative_to(story.directory)}"
    assert found.evidence == {"manifest": place, "length_bytes": None, "sha256": None}
    [planned] = dry_repair(story.services(), ()).plan.write_manifests
    assert planned.path == found.evidence["manifest"]
    assert not manifest.exists(), "a dry run changes nothing"
    report = repair_feed(story.services(), (), OWNER)
    assert (report.errors, report.not_mended) == ((), ())
    assert list(report.closed) == [planned.finding_id]
    assert manifest.read_bytes() == committed
    assert look(story) == []


@pytest.fixture
def old_story(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """The same, and the ledger has forgotten the hashes of its last records."""
    monkeypatch.setattr(ledger, "KEPT_FOR", timedelta(days=-2))
    assert look(story) == []
    story.services().ledger.fold(FEED)
    [record] = story.services().ledger.batches(FEED)
    batch = story.services().ledger.committed_batch(record.status.plan.batch_id)
    assert batch
    assert (batch.manifest_text, len(batch.manifest.unhashed)) == (None, 2)
    return story


def test_the_manifest_of_an_old_batch_is_written_with_what_the_rows_say(old_story: Story) -> None:
    manifest = manifest_of(old_story)
    committed = manifest.read_bytes()
    assert look(old_story) == []
    manifest.write_bytes(committed[:10])
    assert [each.code for each in look(old_story)] == [N3]
    repair_feed(old_story.services(), (), OWNER)
    assert manifest.read_bytes() == committed
    assert look(old_story) == []


def test_the_manifest_of_an_old_batch_is_not_guessed_where_a_row_is_not_as_it_was(
    old_story: Story,
) -> None:
    manifest = manifest_of(old_story)
    manifest.unlink()
    [path] = manifest.parent.glob("*.parquet")
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("value")
    others = pa.array([b"another"] * len(table), pa.binary())
    pq.write_table(table.set_column(place, "value", others), path)

    assert N3 in {each.code for each in look(old_story)}
    [number] = [each.finding_id for each in recorded(old_story) if each.finding.code is N3]
    report = repair_feed(old_story.services(), (number,), OWNER)

    assert report.errors
    assert not manifest.exists()
    assert N3 in {each.code for each in look(old_story)}


def test_a_look_that_lists_nothing_does_not_end_it_and_one_that_does_ends_it(story: Story) -> None:
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    manifest.unlink()
    look(story)
    manifest.write_bytes(committed)
    assert [each.code for each in look(story, Level.L1)] == [N3]
    assert look(story) == []


@pytest.mark.parametrize("left", [0, 10])
def test_a_manifest_that_is_cut_short_is_told_too(story: Story, left: int) -> None:
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    manifest.write_bytes(committed[:left])
    [found] = look(story)
    assert (found.code, f"has {left} bytes" in found.cause) == (N3, True)
    repair_feed(story.services(), (), OWNER)
    assert manifest.read_bytes() == committed
    assert look(story) == []


def test_a_manifest_that_is_changed_with_its_length_kept_is_told_too(story: Story) -> None:
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    changed = committed.replace(b'"until_offset":10', b'"until_offset":99')
    assert (len(changed), changed == committed) == (len(committed), False)
    manifest.write_bytes(changed)

    [found] = look(story)

    assert (found.code, found.verdict, found.level) == (N3, Verdict.UNKNOWN, Level.L2)
    assert found.evidence["sha256"] == sha256(changed).hexdigest()
    report = repair_feed(story.services(), (), OWNER)
    assert (report.errors, report.not_mended) == ((), ())
    assert manifest.read_bytes() == committed
    assert look(story) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_manifest_that_is_just_being_written_is_not_told(story: Story, is_there: bool) -> None:
    services = story.services()
    name, asked = f"/{manifest_of(story).relative_to(story.directory)}", list[str]()

    class Writing:
        def __getattr__(self, question: str) -> Any:
            return getattr(services.store, question)

        def read(self, path: str) -> bytes:
            asked.append(path)
            found = services.store.read(path)
            if asked.count(name) > 1 or path != name:
                return found
            if is_there:
                return found[: len(found) // 2]
            raise FileMissing(path)

    store: Any = Writing()
    assert reconcile(replace(services, store=store)).findings == ()
    assert asked.count(name) > 1


def test_a_manifest_that_can_not_be_read_is_unknown_and_ends_nothing_of_itself(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    manifest.write_bytes(committed[:-1])
    stray = manifest.with_name("a.parquet")
    stray.write_bytes(b"no rows")
    assert {each.code for each in look(story)} == {N3, STRAY}
    stray.unlink()
    manifest.write_bytes(committed)
    with monkeypatch.context() as patch:
        refuse(patch, "read", MANIFEST_NAME)
        found = {each.code: each for each in look(story)}
    assert set(found) == {U1, N3}, "the stray's finding has ended, the manifest's stands"
    assert (found[U1].verdict, found[U1].level) == (Verdict.UNKNOWN, Level.L2)
    assert found[U1].subject == found[N3].subject
    assert look(story) == []
    assert recorded(story) == []


def test_a_write_that_can_not_be_done_is_an_error_and_the_finding_stands(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_of(story)
    manifest.unlink()
    look(story)

    def refused(store: LocalFileStore, path: str, content: bytes) -> None:
        raise StorageRefused(path, "no permission")

    monkeypatch.setattr(LocalFileStore, "write", refused)
    report = repair_feed(story.services(), (), OWNER)
    assert [type(each) for each in report.errors] == [StorageRefused]
    assert [each.reason for each in report.not_mended] == [NOT_WRITTEN]
    assert [each.finding.code for each in recorded(story)] == [N3]


def test_a_look_at_a_manifest_that_is_refused_hides_no_missing_file(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_of(story)
    for each in manifest.parent.iterdir():
        each.unlink()
    status = LocalFileStore.status

    def refused(store: LocalFileStore, path: str) -> StoredEntry | None:
        if path.endswith(MANIFEST_NAME):
            raise StorageRefused(path, "no permission")
        return status(store, path)

    monkeypatch.setattr(LocalFileStore, "status", refused)
    assert {each.code for each in look(story)} == {A8, N3}


def test_a_directory_that_held_nothing_but_its_manifest_is_missed(story: Story) -> None:
    """All its rows were landed again by a repair, which says so by this batch's name."""
    manifest = manifest_of(story)
    committed = manifest.read_bytes()
    for each in manifest.parent.glob("*.parquet"):
        each.unlink()
    look(story)
    repair_feed(story.services(), story.named(), OWNER)
    assert look(story) == []
    shutil.rmtree(manifest.parent)

    assert [each.code for each in look(story)] == [N3]

    report = repair_feed(story.services(), (), OWNER)
    assert (report.errors, report.not_mended) == ((), ())
    assert manifest.read_bytes() == committed
    assert look(story) == []


def test_an_old_batch_whose_rows_a_repair_has_landed_again_has_its_account_for_a_manifest(
    old_story: Story,
) -> None:
    manifest = manifest_of(old_story)
    for each in manifest.parent.glob("*.parquet"):
        each.unlink()
    assert look(old_story)
    repair_feed(old_story.services(), old_story.named(), OWNER)
    assert look(old_story) == []
    shutil.rmtree(manifest.parent)
    assert [each.code for each in look(old_story)] == [N3]

    report = repair_feed(old_story.services(), (), OWNER)

    assert (report.errors, report.not_mended) == ((), ())
    written = Manifest.from_json(manifest.read_text())
    assert [each.anchor and each.anchor.content_hash for each in written.ranges] == [None, None]
    assert look(old_story) == []


def test_without_its_directory_there_is_nothing_to_write(story: Story) -> None:
    manifest = manifest_of(story)
    manifest.unlink()
    look(story)
    shutil.rmtree(manifest.parent)
    [number] = [each.finding_id for each in recorded(story)]

    report = repair_feed(story.services(), (number,), OWNER)

    assert [each.finding_id for each in report.not_mended] == [number]
    assert not manifest.parent.exists()
    assert {each.code for each in look(story)} == {A8}, "its files are missed, one by one"


def test_a_manifest_is_no_word_for_batches_that_somebody_left_behind(story: Story) -> None:
    manifest_of(story).unlink()
    look(story)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    plan_feed(story.services(), None, Owner("killed"))
    report = repair_feed(story.services(), (), OWNER)
    assert len(report.closed) == 1
    assert list(report.batches) == []
