"""A directory that does not prove its manifest is named, and never guessed at."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair
from tests.support.landed_feed import assert_same, directories, files, land
from tests.support.ledger_account import account_of
from tests.support.story import FEED, Story


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
    assert {each.code for each in found} == {FindingCode.COMMITTED_FILE_MISSING}


def test_a_file_that_was_written_anew_with_its_rows_is_told_and_entered(
    story: Story, lose: Callable[[Story], Story]
) -> None:
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
    assert kept <= {each.batch.plan.batch_id for each in report.entered}
    recorded = {each.finding.key for each in after.services().ledger.findings(FEED)}
    assert {each.key for each in report.findings} <= recorded
    again = rebuild(after.services())
    assert [each.key for each in again.findings] == [each.key for each in report.findings]
    # As long as the directories lie there, they stand; the operator moves them, and keeps them.
    (story.directory / "aside").mkdir()
    reconcile(after.services())
    refused = {each.reason for each in dry_repair(after.services(), ()).plan.not_mended}
    assert {each.next_step for each in report.findings} <= refused
    standing = {each.finding.key for each in after.services().ledger.findings(FEED)}
    assert {each.key for each in report.findings} <= standing
    for number, left in enumerate(report.left_out):
        (story.directory / left.directory.lstrip("/")).rename(story.directory / f"aside/{number}")
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK
    assert after.services().ledger.findings(FEED) == []
    assert land(after).plan.all_batches == ()
