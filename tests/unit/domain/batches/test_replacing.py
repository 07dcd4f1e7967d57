"""Which rows a repair would take from readers: not claimed, or cleaned; an aborted one is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from tallystick.domain.batches.batch import Attempt, BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.replacing import RowsGivenUp, rows_given_up
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import (
    AttemptId,
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
)
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.ledger_story import manifest_of

PARTITION = TopicPartition("orders", 0)
OLD, NEW = BatchId("old"), BatchId("new")
Holes = Mapping[HoleClass, OffsetRuns]


def landed(batch_id: BatchId, start: int, until: int, holes: Holes) -> Manifest:
    plan = BatchPlan(
        batch_id=batch_id,
        feed=FeedName("orders"),
        root="/landing",
        topic="orders",
        cluster_id="cluster",
        topic_id="topic",
        ordinal=1,
        label=datetime(2026, 11, 1, tzinfo=UTC),
        window=None,
        ranges=(PlannedRange(GenerationId(1), OffsetRange(PARTITION, start, until)),),
    )
    attempt = Attempt(AttemptId("a"), batch_id, FencingToken(1), Owner("one"))
    return manifest_of(plan, attempt, holes={0: holes})


def given_up(old_holes: Holes, start: int, new_holes: Holes) -> tuple[RowsGivenUp, ...]:
    """A repair from an offset on, of a file that holds [0, 10)."""
    old, new = landed(OLD, 0, 10, old_holes), landed(NEW, start, 10, new_holes)
    file = CommittedFile(OLD, old.files[0].name)
    return rows_given_up(replace(new, plan=replace(new.plan, replaces=(file,))), {OLD: old})


def runs(start: int, until: int) -> OffsetRuns:
    return OffsetRuns.of([(start, until)])


def test_a_file_that_is_landed_again_as_it_was_gives_nothing_up() -> None:
    assert given_up({}, 0, {}) == ()
    holes = {HoleClass.ABORTED: runs(3, 5)}
    assert given_up(holes, 0, holes) == ()


def test_rows_that_are_not_claimed_are_given_up_and_holes_are_not() -> None:
    [found] = given_up({HoleClass.CONTROL: runs(1, 2)}, 4, {})
    assert found.unclaimed == OffsetRuns.of([(0, 1), (2, 4)])
    assert not found.cleaned


def test_rows_that_the_cleaner_removed_are_given_up_and_holes_are_not() -> None:
    [found] = given_up({HoleClass.ABORTED: runs(3, 5)}, 0, {HoleClass.COMPACTED: runs(2, 6)})
    assert found.cleaned == OffsetRuns.of([(2, 3), (5, 6)])
    assert not found.unclaimed


def test_rows_of_an_aborted_transaction_are_nobodys() -> None:
    assert given_up({}, 0, {HoleClass.ABORTED: runs(2, 6)}) == ()
