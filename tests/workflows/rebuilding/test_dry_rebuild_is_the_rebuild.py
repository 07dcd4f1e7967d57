"""What a dry rebuild says of proven batches in staging is what the rebuild does with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import AttemptId
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.rebuilding.rebuild_report import RebuildReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, repair_feed
from tests.support.dying_attempts import record_proof
from tests.support.landed_feed import OWNER, files, land
from tests.support.scripted_broker import Kind
from tests.support.story import Story

Backup = Callable[[Story], Callable[[], Story]]


def told(report: RebuildReport) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    return (
        [each.batch.directory for each in report.entered],
        [f"{each.directory}: {'; '.join(each.reasons)}" for each in report.left_out],
        report.staged,
    )


def shown_and_done(story: Story) -> RebuildReport:
    """The rebuild's report, which is the dry run's; another one after it says the same again."""
    dry, done = rebuild(story.services(), dry_run=True), rebuild(story.services())
    assert told(dry) == told(done)
    assert told(rebuild(story.services(), dry_run=True)) == told(done)
    return done


def repair_in_staging(story: Story) -> str:
    """The directory of a repair that died when its proof was on record."""
    services = story.services()
    [batch] = begin_repair(services, story.named(), OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("c" * 16), OWNER)
    assert attempt
    record_proof(services, attempt)
    services.ledger.close()
    return f"/landing/_staging/{batch.batch_id}/{attempt.attempt_id}"


def offsets_in(file: Path) -> Sequence[int]:
    table = pq.read_table(file, columns=["offset"], partitioning=None)
    offsets: list[int] = table["offset"].to_pylist()
    return offsets


@pytest.fixture
def missing(story: Story) -> Story:
    """A file is missing, and the ledger has it on record."""
    land(story)
    files(story)[0].unlink()
    assert reconcile(story.services()).verdict is Verdict.PROVEN_LOSS
    return story


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_repair_that_gives_rows_up_which_were_put_back(
    story: Story, backup: Backup, is_restored: bool
) -> None:
    land(story)
    # Names are drawn: only the first offsets are gone below, so the file must hold them.
    file = next(each for each in files(story) if 0 in offsets_in(each))
    whole = file.read_bytes()
    file.unlink()
    reconcile(story.services())
    for log in story.broker.logs.values():
        log.log_start_offset = 4
        log.append(Kind.RECORD, 1)
    restored = backup(story) if is_restored else lambda: story
    staged = repair_in_staging(story)
    file.write_bytes(whole)

    report = shown_and_done(restored())

    assert [each.directory for each in report.left_out] == [staged]
    assert "is there, and holds rows that the log has no more" in report.left_out[0].reasons[0]


def test_a_repair_whose_file_another_one_has_replaced_since(missing: Story, backup: Backup) -> None:
    restored = backup(missing)
    staged = repair_in_staging(missing)
    after = restored()
    assert repair_feed(after.services(), after.named(), OWNER).closed

    report = shown_and_done(after)

    assert (report.entered, report.left_out, report.staged) == ([], [], [staged])
