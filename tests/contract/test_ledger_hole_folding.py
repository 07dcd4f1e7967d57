"""Folding holes: fewer rows, the same answers, and a repair gets its batches' own rows back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.ledger import hole_rows
from tests.support.ledger_story import FEED, NOON, LedgerStory, manifest_of

Holes = dict[int, dict[HoleClass, OffsetRuns]]
IN_TWO_WEEKS = timedelta(days=-14)
"""What was committed just now is old for a fold that keeps for so long."""


@pytest.fixture
def all_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold takes what was committed just now."""
    monkeypatch.setattr(hole_rows, "_KEPT_FOR", IN_TWO_WEEKS)


def holes_of(batch: int) -> Holes:
    """Of a batch over two partitions and ten offsets each."""
    start = 10 * batch
    return {
        0: {HoleClass.CONTROL: OffsetRuns.of([(start + 9, start + 10)])},
        1: {
            HoleClass.CONTROL: OffsetRuns.of([(start + 9, start + 10)]),
            HoleClass.ABORTED: OffsetRuns.of([(start + 2, start + 4), (start + 6, start + 7)]),
        },
    }


COUNTS = (("aborted", 3), ("control", 2))
"""Of such a batch."""


def land(story: LedgerStory, batches: int = 4) -> list[BatchId]:
    """Published batches of ten offsets in each of two partitions, oldest first."""
    story.open({0: (0, 100), 1: (0, 100)})
    return [
        land_one(story, ((0, 10 * n, 10 * n + 10), (1, 10 * n, 10 * n + 10)), holes_of(n))
        for n in range(batches)
    ]


def land_one(story: LedgerStory, ranges: Sequence[tuple[int, int, int]], holes: Holes) -> BatchId:
    attempt = story.begin(story.planned(*ranges))
    story.verify(attempt, holes=holes)
    story.ledger.commit(attempt)
    story.ledger.mark_published(attempt.batch_id)
    return attempt.batch_id


def repair(story: LedgerStory, old: BatchId, partition: int, holes: Holes) -> BatchId:
    """The file of one partition of an old batch is landed again, with these holes."""
    [file] = [
        each.file
        for each in story.ledger.files(FEED)
        if each.batch_id == old and each.file.slices[0].partition == partition
    ]
    [start, until] = next(
        (each.planned.offsets.from_offset, each.planned.offsets.until_offset)
        for record in story.ledger.batches(FEED)
        if record.status.plan.batch_id == old
        for each in record.ranges
        if each.planned.offsets.partition.partition == partition
    )
    plan = replace(
        story.batch_of((partition, start, until)), replaces=(CommittedFile(old, file.name),)
    )
    story.freeze(plan)
    attempt = story.begin(plan.batch_id)
    story.ledger.record_verified(
        attempt, manifest_of(story.status(plan.batch_id).plan, attempt, holes=holes)
    )
    story.ledger.commit(attempt)
    story.ledger.mark_published(plan.batch_id)
    return plan.batch_id


def answers(story: LedgerStory) -> list[object]:
    """All that is asked about holes, however they are kept."""
    totals = story.ledger.landed_totals(
        FEED, edges=[NOON], looks_at=[NOON], instants=[NOON], ages_seconds=[3600]
    )
    standing = story.ask(
        "SELECT g.partition, h.class, range_agg(h.runs)::text, sum(h.hole_count)"
        "  FROM hole h JOIN generation g USING (generation_id) WHERE h.retracted_by IS NULL"
        " GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return [standing, totals.logs, totals.window_holes, story.ledger.landed_counts(FEED)]


def rows(story: LedgerStory, where: str = "true") -> int:
    return int(story.ask(f"SELECT count(*) FROM hole WHERE {where}")[0][0])


@pytest.mark.usefixtures("all_is_old")
def test_folding_holes_leaves_fewer_rows_and_the_same_answers(story: LedgerStory) -> None:
    batches = land(story)
    before = answers(story)
    assert rows(story) == 12
    story.ledger.fold(FEED)
    assert answers(story) == before
    assert rows(story) == rows(story, "batch_id IS NULL") == 3
    kept = story.ask("SELECT batch_id, class::text, hole_count FROM folded_holes ORDER BY 2, 1")
    assert sorted(kept) == sorted((each, *counted) for each in batches for counted in COUNTS)
    story.ledger.fold(FEED)
    assert (answers(story), rows(story)) == (before, 3)


@pytest.mark.usefixtures("all_is_old")
def test_holes_are_folded_a_part_at_a_time(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(story)
    before, left = answers(story), [12]
    monkeypatch.setattr(hole_rows, "_LOGS_AT_ONCE", 1)
    for _ in range(3):
        story.ledger.fold(FEED)
        assert answers(story) == before
        left.append(rows(story))
    assert left == [12, 9, 6, 3]


@pytest.mark.parametrize(("short", "left"), [(100, 3), (3, 4), (1, 6)])
@pytest.mark.usefixtures("all_is_old")
def test_the_newest_folded_row_takes_more_in_while_it_is_short(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch, short: int, left: int
) -> None:
    """Of two batches each control row has two runs, and the aborted one four."""
    batches = land(story, 2)
    story.ledger.fold(FEED)
    batches += [
        land_one(story, ((0, 10 * n, 10 * n + 10), (1, 10 * n, 10 * n + 10)), holes_of(n))
        for n in (2, 3)
    ]
    before = answers(story)
    monkeypatch.setattr(hole_rows, "_RUNS_OF_SHORT", short)
    story.ledger.fold(FEED)
    assert answers(story) == before
    assert rows(story) == rows(story, "batch_id IS NULL") == left
    kept = story.ask("SELECT batch_id, class::text, hole_count FROM folded_holes")
    assert sorted(kept) == sorted((each, *counted) for each in batches for counted in COUNTS)


@pytest.mark.usefixtures("all_is_old")
def test_a_folded_row_is_bounded(story: LedgerStory, monkeypatch: pytest.MonkeyPatch) -> None:
    land(story)
    before = answers(story)
    monkeypatch.setattr(hole_rows, "RUNS_PER_PIECE", 3)
    story.ledger.fold(FEED)
    sizes = story.ask("SELECT max((SELECT count(*) FROM unnest(runs))) FROM hole")
    assert answers(story) == before
    assert sizes[0][0] <= 4


@pytest.mark.usefixtures("all_is_old")
def test_batches_of_holes_alone_and_unpublished_ones_keep_their_own_rows(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 100)})
    for start in (0, 10):
        land_one(
            story,
            [(0, start, start + 10)],
            {0: {HoleClass.CONTROL: OffsetRuns.of([(start, start + 10)])}},
        )
    for start in (20, 30):
        attempt = story.begin(story.planned((0, start, start + 10)))
        story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(start, start + 1)])}})
        story.ledger.commit(attempt)
    story.ledger.fold(FEED)
    assert (rows(story), rows(story, "batch_id IS NULL")) == (4, 0)


def test_young_batches_keep_their_own_rows(story: LedgerStory) -> None:
    land(story)
    story.ledger.fold(FEED)
    assert (rows(story), rows(story, "batch_id IS NULL")) == (12, 0)


@pytest.mark.parametrize("folded", [False, True], ids=["not folded", "folded"])
@pytest.mark.usefixtures("all_is_old")
def test_a_repair_of_an_old_batch_does_what_it_does_to_a_young_one(
    story: LedgerStory, folded: bool
) -> None:
    """It lands the second batch's partition 1 again: a row where a hole was, and a hole less."""
    batches = land(story)
    if folded:
        story.ledger.fold(FEED)
    again = {1: {HoleClass.ABORTED: OffsetRuns.of([(12, 14)])}}
    new = repair(story, batches[1], 1, again)
    totals = story.ledger.landed_totals(
        FEED, edges=[], looks_at=[], instants=[NOON], ages_seconds=[3600]
    )
    counts = {each: count.holes for each, count in totals.logs.items()}
    assert sorted(map(sorted_counts, counts.values())) == [
        [("aborted", 11), ("control", 3)],
        [("control", 4)],
    ]
    [of_windows] = totals.window_holes.values()
    assert sorted_counts(of_windows) == [("aborted", 11), ("control", 7)]
    retracted = "SELECT batch_id, class::text, runs::text FROM hole WHERE retracted_by = '{}'"
    assert sorted(story.ask(retracted.format(new))) == [
        (batches[1], "aborted", "{[12,14),[16,17)}"),
        (batches[1], "control", "{[19,20)}"),
    ]
    own = f"batch_id = '{batches[1]}' AND retracted_by IS NULL"
    of_partition_0 = "SELECT class::text, runs::text FROM hole WHERE {}"
    assert story.ask(of_partition_0.format(own)) == [("control", "{[19,20)}")]
    before = answers(story)
    story.ledger.fold(FEED)
    assert answers(story) == before
    counted = story.ask("SELECT sum(hole_count) FROM folded_holes")
    assert counted == story.ask("SELECT sum(hole_count) FROM hole WHERE batch_id IS NULL")


@pytest.mark.parametrize("folded", [False, True], ids=["not folded", "folded"])
@pytest.mark.usefixtures("all_is_old")
def test_a_second_repair_of_a_batch_takes_no_holes_from_the_first(
    story: LedgerStory, folded: bool
) -> None:
    """Both partitions of the second batch are landed again, one after the other, as they were."""
    batches, was = land(story), holes_of(1)
    first = repair(story, batches[1], 1, {1: was[1]})
    if folded:
        story.ledger.fold(FEED)
        assert rows(story, "batch_id IS NULL") == 3
    second = repair(story, batches[1], 0, {0: was[0]})
    before = answers(story)
    story.ledger.fold(FEED)
    assert answers(story) == before
    counts = story.ask(
        "SELECT batch_id, class::text, sum(hole_count)"
        "  FROM (SELECT batch_id, class, hole_count FROM hole WHERE retracted_by IS NULL"
        "         UNION ALL SELECT batch_id, class, hole_count FROM folded_holes) own"
        " WHERE batch_id IS NOT NULL AND hole_count > 0 GROUP BY 1, 2"
    )
    whole = {(each, *of) for each in batches if each != batches[1] for of in COUNTS}
    assert set(counts) == whole | {(first, "aborted", 3), (first, "control", 1)} | {
        (second, "control", 1)
    }


def sorted_counts(counts: Any) -> list[tuple[str, int]]:
    return sorted((kind.value, count) for kind, count in counts.items() if count)


@pytest.mark.usefixtures("all_is_old")
def test_what_a_repair_could_not_land_is_told_without_the_holes_of_folded_batches(
    story: LedgerStory,
) -> None:
    """All of an old file has expired: its rows are lost, and its holes were nothing to lose."""
    batches = land(story)
    story.ledger.fold(FEED)
    [file] = [
        each.file
        for each in story.ledger.files(FEED)
        if each.batch_id == batches[1] and each.file.slices[0].partition == 1
    ]
    plan = replace(story.batch_of((1, 18, 20)), replaces=(CommittedFile(batches[1], file.name),))
    story.freeze(plan)
    attempt = story.begin(plan.batch_id)
    story.verify(attempt, holes={1: {HoleClass.CONTROL: OffsetRuns.of([(19, 20)])}})
    story.ledger.commit(attempt)
    lost = story.ask("SELECT offsets::text FROM offset_range WHERE state = 'lost' ORDER BY 1")
    assert [each for (each,) in lost] == ["[10,12)", "[14,16)", "[17,18)"]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM hole WHERE batch_id IS NULL", "DELETE refused: "),
        ("DELETE FROM hole WHERE retracted_by IS NOT NULL", "DELETE refused: "),
        (
            "WITH gone AS (DELETE FROM hole WHERE retracted_by IS NULL AND class = 'aborted'"
            " RETURNING generation_id, runs, hole_count)"
            " INSERT INTO hole (generation_id, class, position, runs, hole_count)"
            " SELECT generation_id, 'control', 5, runs, hole_count FROM gone",
            "DELETE refused: ",
        ),
        ("DELETE FROM folded_holes", "DELETE refused"),
    ],
    ids=["folded", "retracted", "another class", "counts"],
)
@pytest.mark.usefixtures("all_is_old")
def test_the_schema_refuses_to_forget_holes(story: LedgerStory, statement: str, said: str) -> None:
    batches = land(story)
    story.ledger.fold(FEED)
    repair(story, batches[1], 1, holes_of(1))
    with story.raw() as hand, pytest.raises(psycopg.Error, match=said):
        hand.execute(statement.encode())
