"""A ledger that was lost, or is behind, becomes what it was: from manifests and files alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.findings import FindingCode
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.states import BatchState, Verdict
from tallystick.errors import BatchBusy
from tallystick.workflows.landing import land_batch
from tallystick.workflows.planning import plan_feed
from tallystick.workflows.rebuilding import NOT_IN_MANIFESTS, rebuild
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.run import RunReport, land_feed
from tallystick.workflows.verification import verify_and_commit
from tests.support.effects import Countdown, Crash
from tests.support.ledger_account import account_of
from tests.support.ledger_server import LedgerServer
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("test")


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


def land(story: Story) -> RunReport:
    report = land_feed(story.services(max_records_per_batch=8), None, OWNER)
    assert not report.errors
    return report


def directories(story: Story) -> list[Path]:
    """Where the batches are published."""
    return sorted((story.directory / "landing" / FEED).rglob("batch=*"))


def files(story: Story) -> list[Path]:
    """What readers see."""
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def assert_same(story: Story, before: object) -> None:
    """The ledger is what it was, reconcile is content, and nothing is left to land."""
    assert account_of(story) == before
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK
    assert land(story).plan.all_batches == ()


# A lost ledger ---------------------------------------------------------------------------------


def test_an_empty_ledger_becomes_what_it_was(story: Story, lose: Callable[[Story], Story]) -> None:
    land(story)
    story.broker.logs[1].append(Kind.RECORD, 5)
    land(story)
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert not report.findings
    assert len(report.entered) == len(directories(story))
    assert report.not_known == NOT_IN_MANIFESTS
    assert_same(after, before)
    assert rebuild(after.services()).entered == []


def test_ids_and_texts_are_the_manifests_own(story: Story, lose: Callable[[Story], Story]) -> None:
    land(story)
    after = lose(story)
    rebuild(after.services())
    for record in after.services().ledger.batches(FEED):
        plan = record.status.plan
        committed = after.services().ledger.committed_batch(plan.batch_id)
        assert committed
        (directory,) = [each for each in directories(story) if each.name.endswith(plan.batch_id)]
        written = json.loads((directory / "_tally.json").read_text())
        kept = json.loads(committed.manifest_text)
        for document in (written, kept):
            document["token"] = 0
            for each in document["ranges"]:
                each["generation_id"] = 0
        assert kept == written
        assert record.status.state is BatchState.PUBLISHED


def test_an_empty_ledger_and_an_empty_directory_are_nothing_to_do(story: Story) -> None:
    report = rebuild(story.services())
    assert (report.entered, report.is_whole) == ([], True)


def test_a_dry_run_changes_nothing_and_says_the_same(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    after = lose(story)
    dry = rebuild(after.services(), dry_run=True)
    assert after.services().ledger.generations(FEED) == {}
    real = rebuild(after.services())
    assert [each.manifest for each in dry.entered] == [each.manifest for each in real.entered]
    assert (dry.opened, dry.left_out) == (real.opened, real.left_out)


def test_a_re_created_topic_keeps_its_lives_apart(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    story.broker.recreate(partitions=3)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 12)
    land(story)
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert {(each.partition.partition, each.ordinal) for each in report.opened} == {
        (0, 1), (1, 1), (0, 2), (1, 2), (2, 2),
    }  # fmt: skip
    assert_same(after, before)


def test_the_account_begins_at_the_oldest_manifest(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    story.broker.logs[0].log_start_offset = 4
    land(story)
    after = lose(story)
    rebuild(after.services())
    (account, *_) = after.services().ledger.generations(FEED)[0]
    assert (account.first_offset, account.frontier) == (4, 15)


def test_what_lies_between_manifests_is_landed_or_lost_by_the_next_plan(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    gone = next(each for each in directories(story) if "" in files_of(each, 0))
    ranges = json.loads((gone / "_tally.json").read_text())["ranges"]
    shutil.rmtree(gone)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert not after.services().ledger.lost(FEED)
    landed = land(after).plan.all_batches
    assert {
        (each.offsets.partition.partition, each.offsets.from_offset, each.offsets.until_offset)
        for batch in landed
        for each in batch.ranges
    } == {(each["partition"], each["from_offset"], each["until_offset"]) for each in ranges}
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def files_of(directory: Path, partition: int) -> list[str]:
    """Not empty when the batch has a range of the partition that is not its log's first."""
    ranges = json.loads((directory / "_tally.json").read_text())["ranges"]
    return ["" for each in ranges if each["partition"] == partition and each["from_offset"] > 0]


# Repairs ---------------------------------------------------------------------------------------


def test_repairs_come_after_what_they_replaced(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    for _ in range(3):
        oldest = services.ledger.files(FEED)[0]
        repaired(services, oldest)
    # A repair of a repair.
    repaired(services, services.ledger.files(FEED)[-1])
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert account_of(after) == before
    assert after.published_offsets() == {0: [*range(10)], 1: [*range(7)]}
    order = [each.manifest.plan for each in report.entered]
    for number, plan in enumerate(order):
        known = {each.batch_id for each in order[:number]}
        assert {each.batch_id for each in plan.replaces} <= known


def test_a_replaced_file_may_still_lie_there_whole_or_damaged(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    first = services.ledger.files(FEED)[0]
    old = next(each for each in files(story) if each.name == first.file.name)
    content = old.read_bytes()
    repaired(services, first)
    before = account_of(story)
    for left_behind in (content, content[:100]):
        old.write_bytes(left_behind)
        after = lose(story)
        assert rebuild(after.services()).is_whole
        assert account_of(after) == before


def test_a_repair_whose_batch_is_gone_is_a_batch_of_its_own(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    plan = repaired(services, services.ledger.files(FEED)[0])
    (old,) = [each for each in directories(story) if each.name.endswith(plan.replaces[0].batch_id)]
    shutil.rmtree(old)
    after = lose(story)
    report = rebuild(after.services())
    (entered,) = [each for each in report.entered if each.manifest.plan.batch_id == plan.batch_id]
    assert "what it repaired is not on record: entered as a batch of its own" in entered.notes
    assert report.is_whole


# Directories that prove nothing ----------------------------------------------------------------


def test_a_batch_whose_rows_are_missing_is_left_out_and_named(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    before = account_of(story)
    (file, *_) = files(story)
    content = file.read_bytes()
    file.unlink()
    after = lose(story)
    report = rebuild(after.services())
    (left,) = report.left_out
    assert left.directory == f"/{file.parent.relative_to(story.directory)}"
    assert left.reasons == (f"{file.name} is missing",)
    assert len(report.entered) == len(directories(story)) - 1
    file.write_bytes(content)
    assert rebuild(after.services()).is_whole
    assert_same(after, before)


def test_a_damaged_batch_is_entered_on_the_operators_word(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    before = account_of(story)
    (file, *_) = files(story)
    file.unlink()
    after = lose(story)
    report = rebuild(after.services(), damaged=True)
    assert report.is_whole
    assert [each.notes for each in report.entered if each.notes] == [(f"{file.name} is missing",)]
    assert account_of(after) == before
    found = reconcile(after.services()).findings
    assert {each.code for each in found} == {FindingCode.PHANTOM_COMMIT}


def test_a_file_that_was_written_anew_with_its_rows_is_told_and_entered(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    import pyarrow.parquet as pq

    land(story)
    (file, *_) = files(story)
    pq.write_table(pq.read_table(file, partitioning=None), file, compression="gzip")
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    (notes,) = [each.notes for each in report.entered if each.notes]
    assert "its offsets are as the manifest says" in notes[0]
    found = reconcile(after.services()).findings
    assert FindingCode.CONTENT_CHANGED in {each.code for each in found}


def test_a_row_less_is_not_proven(story: Story, lose: Callable[[Story], Story]) -> None:
    import pyarrow.parquet as pq

    land(story)
    (file, *_) = files(story)
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.slice(1), file)
    report = rebuild(lose(story).services())
    (left,) = report.left_out
    assert left.reasons == (f"{file.name} holds other offsets than the manifest says",)


def test_strays_are_told_and_do_not_keep_a_batch_out(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    before = account_of(story)
    (file, *_) = files(story)
    shutil.copy(file, file.with_name("copied.parquet"))
    (file.parent / "notes.txt").write_text("no Parquet")
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    (notes,) = [each.notes for each in report.entered if each.notes]
    assert notes == ("copied.parquet is in no manifest", "notes.txt is in no manifest")
    assert account_of(after) == before


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "can't be read"),
        ("[]", "can't be read"),
        ('{"format": "another"}', "can't be read"),
        (None, "says that the batch lies in"),
    ],
)
def test_a_manifest_that_can_not_be_used_is_named(
    story: Story, lose: Callable[[Story], Story], text: str | None, reason: str
) -> None:
    land(story)
    if text is None:
        source = directories(story)[0]
        copied = source.with_name(f"batch={'ab' * 8}")
        shutil.copytree(source, copied)
    else:
        copied = directories(story)[0]
        (copied / "_tally.json").write_text(text)
    report = rebuild(lose(story).services())
    (left,) = report.left_out
    assert left.directory == f"/{copied.relative_to(story.directory)}"
    assert reason in left.reasons[0]


def test_offsets_that_two_batches_hold_are_named_and_the_lowest_is_kept(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    """The ledger was lost, an empty one took its place, and all was landed again beside it."""
    land(story)
    twin = replace(story, dsn=lose(story).dsn, directory=story.directory.with_name("twin"))
    land(twin)
    for each in directories(twin):
        shutil.copytree(each, story.directory / each.relative_to(twin.directory))
    after = lose(story)
    report = rebuild(after.services())
    assert len(report.left_out) == len(report.entered)
    assert {each.code for each in report.findings} == {FindingCode.LANDED_TWICE}
    assert {each.verdict for each in report.findings} == {Verdict.PROVEN_DUP}
    doubled: dict[int | None, set[int]] = {}
    for each in report.findings:
        assert each.from_offset is not None
        assert each.until_offset is not None
        doubled.setdefault(each.partition, set()).update(range(each.from_offset, each.until_offset))
    assert doubled == {0: set(range(15)), 1: set(range(7))}
    kept = {str(each.evidence["kept_batch"]) for each in report.findings}
    assert kept <= {each.manifest.plan.batch_id for each in report.entered}
    recorded = {each.finding.key for each in after.services().ledger.findings(FEED)}
    assert {each.key for each in report.findings} <= recorded
    again = rebuild(after.services())
    assert [each.key for each in again.findings] == [each.key for each in report.findings]


# A ledger that is behind -----------------------------------------------------------------------


def test_a_ledger_from_an_older_backup_is_caught_up(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    land(story)
    restored = backup(story)
    repaired(story.services(), story.services().ledger.files(FEED)[0])
    story.broker.logs[0].append(Kind.RECORD, 9)
    land(story)
    story.broker.recreate()
    story.broker.logs[1].append(Kind.RECORD, 3)
    land(story)
    before = account_of(story)
    after = restored()
    known = {each.status.plan.batch_id for each in after.services().ledger.batches(FEED)}
    report = rebuild(after.services())
    assert report.is_whole
    assert not known & {each.manifest.plan.batch_id for each in report.entered}
    now = account_of(after)
    assert now["files"] == before["files"]
    assert now["committed"] == before["committed"]
    assert {key: logs for key, logs in before["logs"].items() if key[1] == 1} == {
        key: logs for key, logs in now["logs"].items() if key[1] == 1
    }
    assert land(after).plan.all_batches == ()


def test_an_unfinished_batch_that_is_published_is_finished(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    services = story.services()
    plan = plan_feed(services, None, OWNER)
    services.ledger.close()
    restored = backup(story)
    land(story)
    before = account_of(story)
    after = restored()
    report = rebuild(after.services())
    assert [each.manifest.plan.batch_id for each in report.entered] == [
        each.batch_id for each in plan.all_batches
    ]
    assert report.abandoned == ()
    assert_same(after, before)


def test_an_unfinished_batch_that_is_in_the_way_is_given_up(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    restored = backup(story)
    land(story)
    before = account_of(story)
    after = restored()
    stale = plan_feed(after.services(), None, Owner("restored"))
    report = rebuild(after.services())
    assert {each.plan.batch_id for each in report.abandoned} == {
        each.batch_id for each in stale.all_batches
    }
    assert account_of(after)["files"] == before["files"]
    assert land(after).plan.all_batches == ()


def test_nothing_is_changed_while_a_living_run_is_in_the_way(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    restored = backup(story)
    land(story)
    after = restored()
    alive = after.services(lease=timedelta(minutes=1))
    plan_feed(alive, None, Owner("alive"))
    with pytest.raises(BatchBusy, match="held by alive") as caught:
        rebuild(after.services())
    assert caught.value.retry
    assert after.services().ledger.files(FEED) == []


def test_a_loss_on_record_is_not_contradicted(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    land(story)
    story.broker.logs[1].append(Kind.RECORD, 5)
    restored = backup(story)
    land(story)
    story.broker.logs[1].log_start_offset = 10
    after = restored()
    hidden = story.directory / "hidden"
    readable = story.directory / "landing" / FEED
    readable.rename(hidden)
    land_feed(after.services(), None, OWNER)
    for each in hidden.rglob("batch=*"):
        target = readable / each.relative_to(hidden)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            each.rename(target)
    report = rebuild(after.services())
    reasons = [reason for each in report.left_out for reason in each.reasons]
    assert "orders-1 [7, 10) is recorded as lost" in reasons


# What nobody can tell --------------------------------------------------------------------------


def test_verified_batches_in_staging_are_named(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    services = story.services()
    (batch,) = plan_feed(services, None, OWNER).all_batches
    attempt = land_batch(services, batch.batch_id, AttemptId(services.new_id()), OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    assert rebuild(services).staged == [], "this ledger knows the batch"
    report = rebuild(lose(story).services())
    assert report.staged == [f"/landing/_staging/{batch.batch_id}/{attempt.attempt_id}"]
    assert report.entered == []


def test_other_roots_are_looked_at_when_they_are_given(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    before = account_of(story)
    after = lose(story)
    services = after.services()
    moved = services.feed.target.model_copy(update={"root": "/elsewhere"})
    elsewhere = replace(services, feed=services.feed.model_copy(update={"target": moved}))
    assert rebuild(elsewhere).entered == []
    assert rebuild(elsewhere, ["/landing"]).is_whole
    assert account_of(after) == before


# A rebuild that dies ---------------------------------------------------------------------------


@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
def test_a_rebuild_that_dies_anywhere_is_taken_up_by_the_next(
    story: Story, lose: Callable[[Story], Story], after_effect: bool
) -> None:
    land(story)
    repaired(story.services(), story.services().ledger.files(FEED)[0])
    before = account_of(story)
    clean = Countdown()
    rebuild(lose(story).services(clean))
    assert len(clean.seen) > 15
    for at in range(len(clean.seen)):
        dying = lose(story)
        with pytest.raises(Crash):
            rebuild(dying.services(Countdown(at, after=after_effect)))
        rebuild(dying.services())
        assert account_of(dying) == before, (at, clean.seen[at])


def test_a_rebuild_may_be_taken_up_at_once(story: Story, lose: Callable[[Story], Story]) -> None:
    """Its own claims are no other run's, however long their lease is."""
    land(story)
    before = account_of(story)
    clean = Countdown()
    rebuild(lose(story).services(clean, lease=timedelta(minutes=1)))
    for at in range(1, len(clean.seen), 2):
        dying = lose(story)
        with pytest.raises(Crash):
            rebuild(dying.services(Countdown(at, after=True), lease=timedelta(minutes=1)))
        rebuild(dying.services(lease=timedelta(minutes=1)))
        assert account_of(dying) == before
