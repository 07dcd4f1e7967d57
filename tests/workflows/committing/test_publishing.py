"""Publishing looks at what it renames, and sweeping at what comes back after it was swept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.errors import ManifestMismatch, PublishedDataMissing, TargetOccupied
from tallystick.workflows.committing.publishing import finish, publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.services import Services
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind, Log, ScriptedBroker
from tests.support.story import FEED, Story

OWNER, OTHER = Owner("one"), Owner("other")
FIRST = AttemptId("1" * 16)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def committed(services: Services, attempt_id: AttemptId = FIRST) -> BatchId:
    """A batch that is committed and lies in staging."""
    batch_id = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch_id, attempt_id, OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    return batch_id


def staged(story: Story, batch_id: BatchId) -> Path:
    return story.directory / "landing" / "_staging" / batch_id / FIRST / "data"


def target_of(story: Story, batch_id: BatchId) -> Path:
    parent = story.directory / "landing" / FEED / "gen=1" / "dt=2026-11-01" / "hour=12"
    return parent / f"batch={batch_id}"


def moved_before_a_crash(story: Story, batch_id: BatchId) -> Path:
    """The target, as a publisher leaves it that dies before the mark."""
    target = target_of(story, batch_id)
    target.parent.mkdir(parents=True)
    staged(story, batch_id).rename(target)
    return target


def assert_published(story: Story, batch_id: BatchId) -> None:
    """Readers see every row once, beside the very manifest that was proven."""
    ledger = story.services().ledger
    batch = ledger.committed_batch(batch_id)
    assert batch
    assert batch.state is BatchState.PUBLISHED
    manifest = target_of(story, batch_id) / MANIFEST_NAME
    assert sha256(manifest.read_bytes()).digest() == batch.manifest_sha256
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def assert_not_published(story: Story, batch_id: BatchId) -> None:
    assert story.services().ledger.batch(batch_id).state is BatchState.COMMITTED


# The manifest -------------------------------------------------------------------------------------


def another(manifest: Path) -> None:
    """What a second verification of the same attempt writes when the broker answers otherwise."""
    other = manifest.read_text().replace('"leader_epoch":0', '"leader_epoch":null')
    assert other != manifest.read_text()
    manifest.write_text(other)


def torn(manifest: Path) -> None:
    manifest.write_bytes(manifest.read_bytes()[:100])


@pytest.mark.parametrize("spoil", [another, torn, Path.unlink])
@pytest.mark.parametrize("is_moved", [False, True], ids=["in staging", "at the target"])
def test_a_manifest_that_is_not_the_committed_one_is_written_anew(
    story: Story, spoil: Callable[[Path], object], is_moved: bool
) -> None:
    services = story.services()
    batch_id = committed(services)
    directory = moved_before_a_crash(story, batch_id) if is_moved else staged(story, batch_id)
    spoil(directory / MANIFEST_NAME)
    publish(services, batch_id)
    assert_published(story, batch_id)


def test_a_manifest_that_changes_between_the_look_and_the_rename_is_mended(story: Story) -> None:
    services = story.services()
    batch_id = committed(services)
    manifest = staged(story, batch_id) / MANIFEST_NAME
    store = Meanwhile(services.store, lambda: torn(manifest), method="read")
    publish(replace(services, store=store), batch_id)  # type: ignore[arg-type]
    assert_published(story, batch_id)


# Files --------------------------------------------------------------------------------------------


def test_a_foreign_file_is_not_published_but_named(story: Story) -> None:
    services = story.services()
    batch_id = committed(services)
    (staged(story, batch_id) / "late.parquet").write_bytes(b"x")
    with pytest.raises(ManifestMismatch, match=r"late\.parquet: expected nothing"):
        publish(services, batch_id)
    assert_not_published(story, batch_id)
    assert story.published_offsets() == {}
    (staged(story, batch_id) / "late.parquet").unlink()
    publish(services, batch_id)
    assert_published(story, batch_id)


def test_files_that_readers_skip_are_no_foreign_files(story: Story) -> None:
    services = story.services()
    batch_id = committed(services)
    for name in ("_SUCCESS", "_started", ".part.crc"):
        (staged(story, batch_id) / name).write_bytes(b"")
    publish(services, batch_id)
    assert_published(story, batch_id)


@pytest.mark.parametrize("is_moved", [False, True], ids=["in staging", "at the target"])
@pytest.mark.parametrize("is_gone", [False, True], ids=["shorter", "gone"])
def test_a_committed_file_that_is_not_as_it_was_is_not_published(
    story: Story, is_moved: bool, is_gone: bool
) -> None:
    services = story.services()
    batch_id = committed(services)
    directory = moved_before_a_crash(story, batch_id) if is_moved else staged(story, batch_id)
    [file] = directory.glob("*.parquet")
    if is_gone:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])
    found = "found no such file" if is_gone else r"found \d+ bytes"
    with pytest.raises(
        ManifestMismatch, match=rf"c000\.zstd\.parquet: expected \d+ bytes, {found}"
    ):
        publish(services, batch_id)
    assert_not_published(story, batch_id)


def test_what_a_late_writer_leaves_in_staging_after_the_rename_counts_for_nothing(
    story: Story,
) -> None:
    services = story.services()
    batch_id = committed(services)
    moved_before_a_crash(story, batch_id)
    staged(story, batch_id).mkdir()
    (staged(story, batch_id) / "late.parquet").write_bytes(b"x")
    publish(services, batch_id)
    assert_published(story, batch_id)
    sweep(services)
    assert story.staged() == []


def test_a_foreign_directory_at_the_target_is_left_alone(story: Story) -> None:
    services = story.services()
    batch_id = committed(services)
    target = target_of(story, batch_id)
    target.mkdir(parents=True)
    (target / "foreign.parquet").write_bytes(b"x")
    with pytest.raises(TargetOccupied):
        publish(services, batch_id)
    assert_not_published(story, batch_id)
    assert [each.name for each in target.iterdir()] == ["foreign.parquet"]
    shutil.rmtree(target)
    publish(services, batch_id)
    assert_published(story, batch_id)


# Data that is gone --------------------------------------------------------------------------------


def test_a_batch_that_is_nowhere_holds_up_no_other(story: Story) -> None:
    services = story.services(max_records_per_batch=10)
    first, second = plan_feed(services, None, OWNER).batches
    for batch in (first, second):
        attempt = land_batch(services, batch.batch_id, AttemptId(batch.batch_id), OWNER)
        assert attempt
        verify_and_commit(services, attempt)
    shutil.rmtree(story.directory / "landing" / "_staging" / first.batch_id)
    with pytest.raises(PublishedDataMissing, match=first.batch_id):
        finish(services)
    assert story.published_offsets() == {1: list(range(10))}


def test_what_a_try_has_published_before_it_failed_is_known_to_be_its_runs(story: Story) -> None:
    first = committed(story.services())
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    second = committed(story.services(), AttemptId("2" * 16))
    data = story.directory / f"landing/_staging/{second}"
    away = data.with_name("away")
    data.rename(away)
    with pytest.raises(PublishedDataMissing):
        finish(story.services(), OWNER)
    away.rename(data)

    finish(story.services(), OWNER)

    assert story.services().ledger.published_by(FEED, OWNER) == [first, second]
    assert story.services().ledger.published_by(FEED, OTHER) == []


def test_a_batch_without_a_row_needs_nothing_but_its_manifest(story: Story) -> None:
    story.broker.logs = {0: Log(), 1: Log()}
    story.broker.logs[0].append(Kind.CONTROL, 3)
    services = story.services()
    batch_id = committed(services)
    shutil.rmtree(story.directory / "landing" / "_staging")
    publish(services, batch_id)
    assert services.ledger.batch(batch_id).state is BatchState.PUBLISHED
    assert (target_of(story, batch_id) / MANIFEST_NAME).exists()


# What comes back after a sweep --------------------------------------------------------------------


def late_file(story: Story, root: str, batch_id: str, attempt_id: str = FIRST) -> Path:
    """What the executors of an application write that nobody waits for any more."""
    directory = story.directory / root / "_staging" / batch_id / attempt_id / "data"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "part.parquet").write_text("x")
    return directory


def test_a_late_writer_leaves_nothing_for_ever(story: Story) -> None:
    services = story.services()
    batch_id = plan_feed(services, None, OWNER).batches[0].batch_id
    land_batch(services, batch_id, FIRST, OWNER)
    land_feed(story.services(), None, OTHER)
    assert story.staged() == []
    late_file(story, "landing", batch_id)
    assert sweep(story.services()) == 1
    assert story.staged() == []


def test_an_abandoned_batch_is_swept_again(story: Story) -> None:
    services = story.services()
    batch_id = plan_feed(services, None, OWNER).batches[0].batch_id
    land_batch(services, batch_id, FIRST, OWNER)
    story.broker.recreate()
    land_feed(story.services(), None, OTHER)
    assert services.ledger.batch(batch_id).state is BatchState.ABANDONED
    late_file(story, "landing", batch_id)
    assert sweep(story.services()) == 1
    assert story.staged() == []


def test_what_lives_or_is_not_known_is_not_swept(story: Story) -> None:
    services = story.services()
    batch_id = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch_id, FIRST, OWNER)
    assert attempt
    kept = [
        staged(story, batch_id),
        late_file(story, "landing", "e" * 16),
        late_file(story, "landing", "notes of somebody"),
    ]
    assert sweep(story.services()) == 0
    verify_and_commit(services, attempt)
    assert sweep(story.services()) == 0
    assert all(each.exists() for each in kept)


def test_another_feeds_batches_are_left_to_its_own_sweeper(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    [batch] = story.services().ledger.batches(FEED)
    directory = late_file(story, "landing", batch.status.plan.batch_id)
    services = story.services()
    other = replace(services, feed=services.feed.model_copy(update={"name": FeedName("other")}))
    assert sweep(other) == 0
    assert directory.exists()


def test_a_late_writer_below_a_root_that_was_moved_is_swept_too(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    [batch] = story.services().ledger.batches(FEED)
    late_file(story, "landing", batch.status.plan.batch_id)
    services = story.services()
    target = services.feed.target.model_copy(update={"root": "/elsewhere"})
    moved = replace(services, feed=services.feed.model_copy(update={"target": target}))
    assert sweep(moved) == 1
    assert story.staged() == []
