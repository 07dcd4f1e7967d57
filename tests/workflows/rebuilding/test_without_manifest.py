"""A batch's directory that has lost its manifest: named, waited for, and entered from its rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import LedgerBehind
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, repair_feed
from tests.support.landed_feed import OWNER, directories, files, land
from tests.support.ledger_account import account_of
from tests.support.refusals import refuse
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

TWENTY = {0: list(range(20))}
Lose = Callable[[Story], Story]


@pytest.fixture
def simple(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, two batches of ten records."""
    broker = ScriptedBroker("orders", partitions=1)
    return a_landed_story(ledger_databases(), tmp_path, 10, 10, broker=broker)


def directory_with(story: Story, offset: int) -> Path:
    """The directory of the batch that holds this offset of partition 0."""
    batches = story.services().ledger.batches_holding(FEED, 1, 0, offset, offset + 1)
    return next(each for each in directories(story) if each.name == f"batch={batches[0]}")


def bare(story: Story, offset: int) -> Path:
    directory = directory_with(story, offset)
    (directory / "_tally.json").unlink()
    return directory


def stored(story: Story, path: Path) -> str:
    return f"/{path.relative_to(story.directory)}"


def standing(story: Story) -> dict[int, FindingCode]:
    found = story.services().ledger.findings(FEED)
    return {each.finding_id: each.finding.code for each in found}


@pytest.mark.parametrize("offset", [0, 10])
@pytest.mark.parametrize("is_expired", [False, True])
def test_it_is_named_and_nothing_is_landed_lost_or_moved_before_it_is_entered(
    simple: Story, lose: Lose, offset: int, is_expired: bool
) -> None:
    directory = bare(simple, offset)
    after = lose(simple)
    simple.broker.logs[0].append(Kind.RECORD, 5)
    if is_expired:
        simple.broker.logs[0].log_start_offset = 20
    for report in (rebuild(after.services(), dry_run=True), rebuild(after.services())):
        [left] = report.left_out
        assert (left.directory, report.is_whole) == (stored(after, directory), False)
        assert "--without-manifest" in left.reasons[0]
        assert f"[{offset}, {offset + 10})" in left.reasons[0]
    for attempt in (land_feed, lambda services, *_: dry_run(services, None)):
        with pytest.raises(LedgerBehind):
            attempt(after.services(), None, OWNER)
    found = reconcile(after.services()).findings
    assert FindingCode.LEDGER_BEHIND in {each.code for each in found}
    assert Verdict.PROVEN_LOSS not in {each.verdict for each in found}
    assert not repair_feed(after.services(), (), OWNER).quarantined
    assert after.published_offsets() == TWENTY
    report = rebuild(after.services(), without_manifest=True)
    assert report.is_whole
    [entered] = report.entered
    assert "from the offset columns" in entered.notes[0]
    assert not land_feed(after.services(), None, OWNER).errors
    assert reconcile(after.services()).findings == ()
    assert standing(after) == {}
    assert after.published_offsets() == {0: list(range(25))}
    assert after.services().ledger.lost(FEED) == []


def test_a_repair_without_its_manifest_is_known_by_the_files_that_it_replaced(
    simple: Story, lose: Lose
) -> None:
    old = directory_with(simple, 0)
    next(old.glob("*.parquet")).unlink()
    reconcile(simple.services())
    assert not repair_feed(simple.services(), simple.named(), OWNER).errors
    before = account_of(simple)["committed"]
    known = originals(simple)
    [repair] = [each for each in directories(simple) if each.name not in known]
    (repair / "_tally.json").unlink()
    after = lose(simple)
    simple.broker.logs[0].log_start_offset = 20
    report = rebuild(after.services(), without_manifest=True)
    assert report.is_whole
    assert account_of(after)["committed"] == before
    assert reconcile(after.services()).findings == ()
    assert not land_feed(after.services(), None, OWNER).errors
    assert after.published_offsets() == TWENTY


def originals(story: Story) -> list[str]:
    """Directories of the batches that are no repairs."""
    found = story.services().ledger.batches(FEED)
    plans = [each.status.plan for each in found]
    return [f"batch={each.batch_id}" for each in plans if not each.is_repair]


def test_a_dry_run_changes_nothing(simple: Story, lose: Lose) -> None:
    directory = bare(simple, 0)
    after = lose(simple)
    report = rebuild(after.services(), dry_run=True, without_manifest=True)
    assert report.is_whole
    assert len(report.entered) == 2
    assert not (directory / "_tally.json").exists()
    assert after.services().ledger.batches(FEED) == []


def test_holes_are_proven_by_a_log_that_has_them(story: Story, lose: Lose) -> None:
    """One partition has an aborted transaction and its marker between its rows."""
    story.broker.logs[0].append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    before = account_of(story)["committed"]
    for each in directories(story):
        (each / "_tally.json").unlink()
    after = lose(story)
    report = rebuild(after.services(), without_manifest=True)
    assert report.is_whole
    assert report.entered[0].batch.holes[HoleClass.ABORTED] == 4
    assert account_of(after)["committed"] == before
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def test_holes_that_nobody_can_prove_any_more_are_named(story: Story, lose: Lose) -> None:
    story.broker.logs[0].append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    directory = bare(story, 0)
    after = lose(story)
    story.broker.logs[0].log_start_offset = 18
    report = rebuild(after.services(), without_manifest=True)
    [left] = report.left_out
    assert left.directory == stored(after, directory)
    assert left.reasons == (
        "orders-0: 5 offsets between its rows have no row, and no cause is proven: [10, 15)",
    )
    with pytest.raises(LedgerBehind):
        land_feed(after.services(), None, OWNER)
    # What lies below the batches that could be entered is the feed's all the same.
    assert after.services().ledger.accounts(FEED).generations[0].first_offset == 0


def test_without_any_manifest_the_log_must_hold_the_last_rows(simple: Story, lose: Lose) -> None:
    for each in directories(simple):
        (each / "_tally.json").unlink()
    after = lose(simple)
    start = simple.broker.logs[0].log_start_offset
    simple.broker.logs[0].log_start_offset = 20
    report = rebuild(after.services(), without_manifest=True)
    assert len(report.left_out) == 2
    assert "which life of the topic" in report.left_out[0].reasons[0]
    simple.broker.logs[0].log_start_offset = start
    assert rebuild(after.services(), without_manifest=True).is_whole
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def test_rows_of_another_log_are_not_entered(simple: Story, lose: Lose) -> None:
    for each in directories(simple):
        (each / "_tally.json").unlink()
    after = lose(simple)
    simple.broker.recreate(partitions=1)
    simple.broker.logs[0].append(Kind.RECORD, 30, value=b"other")
    report = rebuild(after.services(), without_manifest=True)
    assert (len(report.left_out), report.entered) == (2, [])


def test_a_copy_of_committed_rows_is_a_stray_and_stops_nothing(simple: Story) -> None:
    source = directory_with(simple, 0)
    copied = source.with_name(f"batch={'ab' * 8}")
    shutil.copytree(source, copied)
    (copied / "_tally.json").unlink()
    simple.broker.logs[0].append(Kind.RECORD, 5)
    assert not land_feed(simple.services(), None, OWNER).errors
    found = {each.code for each in reconcile(simple.services()).findings}
    assert found == {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}
    assert not repair_feed(simple.services(), simple.named(), OWNER).not_mended
    assert simple.published_offsets() == {0: list(range(25))}
    assert rebuild(simple.services()).is_whole


def test_what_is_no_batch_is_moved_aside_by_its_number(simple: Story, lose: Lose) -> None:
    directory = bare(simple, 0)
    after = lose(simple)
    rebuild(after.services())
    with pytest.raises(LedgerBehind):
        land_feed(after.services(), None, OWNER)
    [number] = standing(after)
    assert [each.finding_id for each in repair_feed(after.services(), (), OWNER).not_mended] == [
        number
    ]
    report = repair_feed(after.services(), [number], OWNER)
    assert (list(report.errors), report.not_mended) == ([], ())
    assert not directory.exists()
    [moved] = report.quarantined
    assert (after.directory / moved.quarantine.lstrip("/")).is_dir()
    assert not land_feed(after.services(), None, OWNER).errors
    assert after.published_offsets() == TWENTY


def test_rows_that_another_batch_holds_too_are_named_and_not_entered(
    story: Story, lose: Lose
) -> None:
    land(story)
    source = next(each for each in directories(story))
    copied = source.with_name(f"batch={'f' * 16}")
    shutil.copytree(source, copied)
    (copied / "_tally.json").unlink()
    after = lose(story)
    report = rebuild(after.services(), without_manifest=True)
    [left] = report.left_out
    assert left.directory == stored(after, copied)
    assert {each.code for each in report.findings} == {FindingCode.LANDED_TWICE}
    assert land(after).plan.all_batches == ()
    assert len(files(after)) == len(files(story))


def test_it_is_moved_aside_beside_a_repair_that_somebody_has_left(simple: Story) -> None:
    """The repair waits for the ledger to catch up: it must not hold up what lets it catch up."""
    next(directory_with(simple, 0).glob("*.parquet")).unlink()
    reconcile(simple.services())
    assert begin_repair(simple.services(), simple.named(), OWNER).batches
    source = directory_with(simple, 10)
    foreign = source.with_name(f"batch={'ab' * 8}")
    foreign.mkdir()
    table = pq.read_table(next(source.glob("*.parquet")), partitioning=None)
    place = table.schema.get_field_index("offset")
    pq.write_table(
        table.set_column(place, "offset", pc.add(table["offset"], 50)), foreign / "f.parquet"
    )
    reconcile(simple.services())
    [number] = [key for key, code in standing(simple).items() if code is FindingCode.LEDGER_BEHIND]
    assert not repair_feed(simple.services(), [number], OWNER).errors
    assert not foreign.exists()
    assert not repair_feed(simple.services(), simple.named(), OWNER).errors
    assert simple.published_offsets() == TWENTY


def test_one_that_may_not_be_read_is_left_out_and_stops_no_other(
    simple: Story, lose: Lose, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, unreadable = bare(simple, 0), bare(simple, 10)
    story = lose(simple)
    refuse(monkeypatch, "read_back", unreadable.name)
    report = rebuild(story.services(), without_manifest=True)
    assert [each.directory for each in report.left_out] == [stored(story, unreadable)]
    assert (lost / "_tally.json").exists()
