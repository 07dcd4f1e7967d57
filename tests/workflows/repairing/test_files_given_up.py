"""A committed file that is gone, with offsets that the broker has no more: it can be settled."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import PublishedDataMissing, VerificationFailed
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, dry_repair, repair_feed
from tallystick.workflows.stored.current_files import current_paths
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept

OWNER = Owner("one")


@pytest.fixture
def published(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of two partitions, then five more; the first batch's files are gone, and the
    broker has nothing below offset 15 any more.
    """
    story = a_landed_story(ledger_databases(), tmp_path, 10, 5)
    first = story.services().ledger.batches(FEED)[0].status.plan.batch_id
    for each in (story.directory / "landing" / FEED).rglob(f"batch={first}/*.parquet"):
        each.unlink()
    expire(story, 15)
    return story


@pytest.fixture
def unpublished(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records are published; five more were committed, and their staging directory is gone."""
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    shutil.rmtree(story.directory / "landing" / "_staging")
    expire(story, 15)
    return story


def expire(story: Story, until_offset: int) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
        log.log_start_offset = until_offset


def losses(story: Story) -> dict[int, tuple[int | None, int | None, int | None]]:
    """The open findings about lost rows, by number."""
    return {
        each.finding_id: (
            each.finding.partition,
            each.finding.from_offset,
            each.finding.until_offset,
        )
        for each in story.services().ledger.findings(FEED)
        if each.finding.verdict is Verdict.PROVEN_LOSS
    }


def paths_that_exist(story: Story) -> list[bool]:
    ledger = story.services().ledger
    return [
        (story.directory / path.removeprefix("/")).exists() for path in current_paths(ledger, FEED)
    ]


def accept_all(story: Story) -> None:
    ledger = story.services().ledger
    for number in losses(story):
        accept(ledger, number)


def test_a_published_file_that_is_gone_for_good_is_given_up(published: Story) -> None:
    assert FindingCode.COMMITTED_FILE_MISSING in {
        each.code for each in reconcile(published.services()).findings
    }
    report = repair_feed(published.services(), list(losses(published)), OWNER)
    assert not report.errors
    assert sorted(losses(published).values()) == [(0, 0, 10), (1, 0, 10)]
    assert all(paths_that_exist(published))
    lost = published.services().ledger.lost(FEED)
    assert [(each.partition.partition, each.span) for _, each, _ in lost] == [(0, 10), (1, 10)]


def test_after_it_was_given_up_runs_are_green_and_two_people_may_accept_it(
    unpublished: Story,
) -> None:
    [error] = land_feed(unpublished.services(), None, OWNER).errors
    assert isinstance(error, PublishedDataMissing)
    reconcile(unpublished.services())
    assert not repair_feed(unpublished.services(), list(losses(unpublished)), OWNER).errors
    report = land_feed(unpublished.services(), None, Owner("two"))
    assert report.errors == ()
    assert all(paths_that_exist(unpublished))
    assert unpublished.services().ledger.unpublished(FEED) == []
    assert sorted(losses(unpublished).values()) == [(0, 10, 15), (1, 10, 15)]
    accept_all(unpublished)
    assert reconcile(unpublished.services()).verdict is Verdict.WAIVED


def test_nothing_is_given_up_without_the_operators_word(published: Story) -> None:
    reconcile(published.services())
    report = repair_feed(published.services(), (), OWNER)
    assert report.batches == []
    assert all("put it back" in each.reason for each in report.not_mended)
    assert published.services().ledger.lost(FEED) == []


def test_a_dry_repair_names_what_would_be_lost(published: Story) -> None:
    reconcile(published.services())
    plan = dry_repair(published.services(), list(losses(published))).plan
    gone = [each for again in plan.land_again for each in again.gone]
    assert {(each.partition.partition, each.from_offset, each.until_offset) for each in gone} == {
        (0, 0, 10),
        (1, 0, 10),
    }


def test_a_file_that_was_put_back_is_not_given_up(published: Story) -> None:
    reconcile(published.services())
    first = published.services().ledger.files(FEED)[0]
    begun = begin_repair(published.services(), list(losses(published)), OWNER)
    [directory] = (published.directory / "landing" / FEED).rglob(f"batch={first.batch_id}")
    (directory / first.file.name).write_bytes(b"it came back")
    [outcome] = [carry_out(published.services(), each.batch_id, OWNER) for each in begun.batches]
    assert isinstance(outcome.error, VerificationFailed)
    assert "is there, and holds rows" in str(outcome.error)
    assert published.services().ledger.lost(FEED) == []


def test_a_give_up_that_its_repair_did_not_finish_is_dropped_and_never_acts_on_a_stale_word(
    published: Story,
) -> None:
    reconcile(published.services())
    numbers = list(losses(published))
    [begun] = begin_repair(published.services(), numbers, OWNER).batches  # and dies here
    foreseen = dry_run(published.services(), None)
    report = land_feed(published.services(), None, Owner("two"))  # the files are out of sight still
    assert (foreseen.adopted, foreseen.held, report.errors) == ([], [], ())
    ledger = published.services().ledger
    assert ledger.batch(begun.batch_id).state is BatchState.ABANDONED
    assert ledger.lost(FEED) == []
    assert not repair_feed(published.services(), numbers, Owner("three")).errors
    assert len(published.services().ledger.lost(FEED)) == 2


def test_a_repair_drops_the_give_up_of_another_that_died(published: Story) -> None:
    reconcile(published.services())
    [begun] = begin_repair(published.services(), list(losses(published)), OWNER).batches
    assert repair_feed(published.services(), (), Owner("two")).batches == []
    ledger = published.services().ledger
    assert ledger.batch(begun.batch_id).state is BatchState.ABANDONED
    assert ledger.lost(FEED) == []


def test_a_file_of_a_log_that_was_re_created_is_given_up(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for each in (story.directory / "landing" / FEED).rglob("*.parquet"):
        each.unlink()
    story.broker.recreate()
    land_feed(story.services(), None, OWNER)
    reconcile(story.services())
    assert not repair_feed(story.services(), list(losses(story)), OWNER).errors
    assert sorted(losses(story).values()) == [(0, 0, 10), (1, 0, 10)]
    assert all(paths_that_exist(story))


def test_what_was_given_up_stays_given_up_in_a_rebuilt_ledger(
    published: Story, ledger_databases: Callable[[], str]
) -> None:
    reconcile(published.services())
    repair_feed(published.services(), list(losses(published)), OWNER)
    rebuilt = Story(ledger_databases(), published.directory, published.broker)
    report = rebuild(rebuilt.services())
    assert report.is_whole
    assert all(paths_that_exist(rebuilt))
    lost = [offsets for _, offsets, _ in rebuilt.services().ledger.lost(FEED)]
    assert {(each.partition.partition, each.from_offset, each.until_offset) for each in lost} == {
        (0, 0, 10),
        (1, 0, 10),
    }


def test_the_old_batch_is_published_without_its_rows(unpublished: Story) -> None:
    [old] = unpublished.services().ledger.unpublished(FEED)
    reconcile(unpublished.services())
    repair_feed(unpublished.services(), list(losses(unpublished)), OWNER)
    assert unpublished.services().ledger.batch(old.plan.batch_id).state is BatchState.PUBLISHED


@pytest.mark.parametrize("name", ["", "renamed.parquet"])
def test_a_file_that_was_found_elsewhere_since_is_not_given_up(published: Story, name: str) -> None:
    reconcile(published.services())
    first = published.services().ledger.files(FEED)[0]
    begun = begin_repair(published.services(), list(losses(published)), OWNER)
    [directory] = (published.directory / "landing" / FEED).rglob(f"batch={first.batch_id}")
    found = directory.parent / (name or first.file.name)
    newer = next(each for each in (published.directory / "landing" / FEED).rglob("*.parquet"))
    table = pq.read_table(newer, partitioning=None)
    place = table.schema.get_field_index("offset")
    pq.write_table(table.set_column(place, "offset", pc.subtract(table["offset"], 10)), found)
    [outcome] = [carry_out(published.services(), each.batch_id, OWNER) for each in begun.batches]
    assert isinstance(outcome.error, VerificationFailed)
    assert f"{found.name} is unexplained, and may hold rows" in str(outcome.error)
    assert published.services().ledger.lost(FEED) == []


@pytest.mark.parametrize("first_offset", [4, 12])
@pytest.mark.parametrize("where", ["another hour", "another name", "written anew beside"])
def test_what_is_found_while_a_repair_goes_on_is_not_lost(
    ledger_databases: Callable[[], str], tmp_path: Path, where: str, first_offset: int
) -> None:
    """The file was gone at the claim, and is found before the commit, which may be hours later."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)
    first = story.services().ledger.files(FEED)[0]
    [file] = (story.directory / "landing" / FEED).rglob(first.file.name)
    aside = file.rename(story.directory / "aside.parquet")
    reconcile(story.services())
    broker.logs[0].log_start_offset = first_offset
    [begun] = begin_repair(story.services(), list(losses(story)), OWNER).batches
    if where == "another hour":
        hour = file.parent.parent.with_name("hour=13") / file.parent.name
        hour.mkdir(parents=True)
        aside.rename(hour / file.name)
    elif where == "another name":
        aside.rename(file.parent.parent / file.name)
    else:
        table = pq.read_table(aside, partitioning=None)
        pq.write_table(table, file.with_name("again.parquet"), compression="gzip")
        aside.unlink()
    assert isinstance(carry_out(story.services(), begun.batch_id, OWNER).error, VerificationFailed)
    land_feed(story.services(), None, OWNER)
    assert Verdict.PROVEN_LOSS not in {
        each.verdict for each in reconcile(story.services()).findings
    }
    assert story.services().ledger.lost(FEED) == []
