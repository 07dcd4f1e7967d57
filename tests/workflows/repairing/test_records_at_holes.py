"""The second reader sees records where a batch has proven holes: they are told, and landed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.verdicts import Verdict
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import Kind, Log
from tests.support.story import FEED, Story
from tests.workflows.comparing.test_second_reader import (
    LOSS,
    OWNER,
    differing,
    land,
    log,
    looked,
    recorded,
    samples,
    story,
)

__all__ = ["log", "story"]


def records_after_all(log: Log, *offsets: int) -> None:
    """What Spark's client, and ours, took for markers are records to another client."""
    for each in offsets:
        log.entries[each] = replace(log.entries[each], kind=Kind.RECORD, producer_id=None)


def numbers(story: Story) -> list[int]:
    return [each.finding_id for each in story.services().ledger.findings(FEED)]


def test_a_batch_of_holes_alone_is_read_in_its_turn(story: Story, log: Log) -> None:
    log.append(Kind.CONTROL, 5)
    land(story)

    report = looked(story)

    assert report.verdict is Verdict.PROVEN_OK
    assert report.second_read is not None
    assert report.second_read.batches == 1
    assert [each["turn"] for each in samples(story)] == [0, 1]


@pytest.mark.parametrize("rows", [0, 5], ids=["holes alone", "after rows"])
def test_records_where_no_file_has_a_row_are_named_and_landed(
    story: Story, log: Log, rows: int
) -> None:
    log.append(Kind.RECORD, rows)
    log.append(Kind.CONTROL, 5)
    land(story)
    records_after_all(log, *range(rows, rows + 5))

    report = looked(story)

    assert differing(report.findings) == [(LOSS, 1, 0, 0, rows + 5)]
    mended = repair_feed(story.services(), numbers(story), OWNER)
    assert not mended.errors
    assert not mended.not_mended
    assert story.published_offsets() == {0: list(range(rows + 5))}
    healed = looked(story)
    assert (healed.verdict, recorded(story)) == (Verdict.PROVEN_OK, [])
    assert [each.account.frontier for each in healed.partitions] == [rows + 5]


def test_a_hole_between_two_files_is_landed_with_the_one_before_it(story: Story, log: Log) -> None:
    """Other partitions' files of the batch stay as they are."""
    story.broker.logs[1] = Log()
    story.broker.logs[1].append(Kind.RECORD, 5)
    log.append(Kind.RECORD, 3)
    log.append(Kind.CONTROL, 1)
    log.append(Kind.RECORD, 3)
    land(story)
    records_after_all(log, 3)

    assert differing(looked(story).findings) == [(LOSS, 1, 0, 0, 7)]
    repair_feed(story.services(), numbers(story), OWNER)

    assert story.published_offsets() == {0: list(range(7)), 1: list(range(5))}
    assert looked(story).verdict is Verdict.PROVEN_OK


def test_a_repair_of_rows_alone_lands_no_holes_again(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 5)
    log.append(Kind.CONTROL, 5)
    land(story)
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    file.unlink()
    reconcile(story.services())

    report = repair_feed(story.services(), story.named(), OWNER)

    [again] = report.plan.land_again
    assert [str(each.offsets) for each in again.ranges] == ["orders-0 [0, 5)"]
    assert looked(story).verdict is Verdict.PROVEN_OK
