"""A ledger from an older backup lands nothing by a repair either: rows would be landed twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import LedgerBehind
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, dry_repair, repair_feed
from tests.support.landed_feed import OWNER, files, land
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


@pytest.fixture
def behind(story: Story, backup: Callable[[Story], Callable[[], Story]]) -> Story:
    """A file was missing and is landed again; the ledger knows of neither."""
    land(story)
    restored = backup(story)
    files(story)[0].unlink()
    reconcile(story.services())
    assert repair_feed(story.services(), story.named(), OWNER).closed
    old = restored()
    reconcile(old.services())
    return old


def test_what_was_landed_again_is_not_landed_a_third_time(behind: Story) -> None:
    before = behind.published_offsets()
    with pytest.raises(LedgerBehind, match="HDFS holds 1 batch that the ledger does not know"):
        repair_feed(behind.services(), behind.named(), OWNER)
    assert behind.published_offsets() == before
    assert behind.services().ledger.accounts(FEED).unfinished == []


def test_a_dry_run_says_so_too(behind: Story) -> None:
    with pytest.raises(LedgerBehind):
        dry_repair(behind.services(), behind.named())


def test_a_repair_left_behind_is_not_taken_over(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    """The backup holds a repair's claim; afterwards others carried out more than that."""
    land(story)
    files(story)[0].unlink()
    reconcile(story.services())
    [begun] = begin_repair(story.services(), story.named(), OWNER).batches
    restored = backup(story)
    land(story)
    story.broker.logs[0].append(Kind.RECORD, 5)
    land(story)
    old = restored()
    before = old.published_offsets()
    with pytest.raises(LedgerBehind):
        repair_feed(old.services(), old.named(), OWNER)
    assert old.published_offsets() == before
    assert old.services().ledger.batch(begun.batch_id).newest_token == 0


def test_rows_that_a_forgotten_batch_may_hold_are_not_called_lost(behind: Story) -> None:
    missing = [
        each
        for each in reconcile(behind.services()).findings
        if each.code is FindingCode.COMMITTED_FILE_MISSING
    ]
    assert {each.verdict for each in missing} == {Verdict.UNKNOWN}
    standing = behind.services().ledger.findings(FEED)
    assert Verdict.PROVEN_LOSS not in {each.finding.verdict for each in standing}
    assert rebuild(behind.services()).is_whole
    assert reconcile(behind.services()).verdict is Verdict.PROVEN_OK
    assert behind.services().ledger.findings(FEED) == []


def test_no_missing_rows_are_lost_while_a_batch_is_forgotten(behind: Story) -> None:
    known = {each.file.name for each in behind.services().ledger.files(FEED)}
    next(each for each in files(behind) if each.name in known).unlink()
    found = reconcile(behind.services()).findings
    verdicts = {each.verdict for each in found if each.code is FindingCode.COMMITTED_FILE_MISSING}
    assert verdicts == {Verdict.UNKNOWN}


def the_stray(story: Story) -> int:
    [number] = [
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.STRAY_FILE
    ]
    return number


def test_no_stray_is_moved_until_the_ledger_has_caught_up(behind: Story) -> None:
    """Nobody can say of a file whose batch it is, while batches are unknown."""
    known = {each.file.name for each in behind.services().ledger.files(FEED)}
    file = next(each for each in files(behind) if each.name in known)
    stray = file.with_name("copy.parquet")
    stray.write_bytes(file.read_bytes())
    reconcile(behind.services())
    number = the_stray(behind)
    dry = dry_repair(behind.services(), (number,))
    report = repair_feed(behind.services(), (number,), OWNER)
    assert stray.exists()
    assert [*dry.plan.quarantined, *report.plan.quarantined, *report.quarantined] == []
    [[told], [left]] = dry.not_mended, report.not_mended
    assert told == left
    assert (left.finding_id, "A10" in left.reason) == (number, True)
    assert rebuild(behind.services()).is_whole
    repair_feed(behind.services(), (number,), OWNER)
    assert not stray.exists()


def test_the_only_file_of_a_forgotten_batch_is_not_moved_as_a_stray(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    """It has lost its manifest: this ledger can only say that it does not know the rows."""
    land(story)
    [bare, *_] = files(story)
    (bare.parent / "_tally.json").unlink()
    after = lose(story)
    found = reconcile(after.services()).findings
    assert str(bare.parent.relative_to(after.directory)) in {each.subject[1:] for each in found}
    repair_feed(after.services(), (), OWNER)
    assert bare.exists()
