"""Report documents for tests and benches: of any size, and with any text in every place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.coverage_map import MOST_BLOCKS, CoverageBlock, CoverageMap
from tallystick.domain.report.document import (
    AgePart,
    BandPart,
    ColumnPart,
    GapPart,
    PartitionPart,
    ReportDocument,
)
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.rules.findings import Level
from tallystick.domain.rules.waivers import shown_digest
from tallystick.domain.verdicts import FindingState, Verdict

TAKEN_AT = datetime(2026, 11, 8, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_finding(number: int = 1, **changes: object) -> FindingPart:
    """A lost interval."""
    evidence = {"log_start_offset": 1_500, "frontier": 1_000, "retention_ms": 604_800_000}
    finding = FindingPart(
        number=number,
        code="A1",
        name="expired",
        verdict=Verdict.PROVEN_LOSS,
        level=Level.L1,
        feed="orders",
        topic="orders",
        generation=1,
        partition=number,
        from_offset=1_000,
        until_offset=1_500,
        subject="",
        trouble=f"trouble {number}",
        cause="the log start passed these offsets before they were read.",
        next_step="Nothing can bring them back from this topic: tallystick explain 17",
        evidence=evidence,
        evidence_digest=shown_digest(evidence),
        state=FindingState.OPEN,
        first_seen_at=TAKEN_AT - HOUR,
        last_confirmed_at=TAKEN_AT,
        closed_at=None,
        closed_by=None,
        closed_in=None,
        waiver=None,
    )
    return replace(finding, **changes)  # type: ignore[arg-type]


def a_partition(number: int = 0, **changes: object) -> PartitionPart:
    """A partition in order, a little behind."""
    part = PartitionPart(
        partition=number,
        generation=1,
        state="open",
        verdict=Verdict.PROVEN_OK,
        complete_up_to=TAKEN_AT - timedelta(minutes=30),
        first_offset=0,
        frontier=1_200_000 + number,
        log_start_offset=400_000,
        last_stable_offset=1_200_500 + number,
        high_watermark=1_200_500 + number,
        lag=500,
        seconds_to_loss=6 * 86_400.0 + 7_200,
        rows=1_190_000,
        holes={kind.value: 5_000 // (place + 1) for place, kind in enumerate(HoleClass)},
        lost=0,
        gap_offsets=0,
        gaps=(),
        checked_at={"L1": TAKEN_AT, "L2": TAKEN_AT, "L3": TAKEN_AT - timedelta(days=3)},
    )
    return replace(part, **changes)  # type: ignore[arg-type]


def a_document(
    *,
    partitions: int = 12,
    columns: int = 48,
    findings: Sequence[FindingPart] | None = None,
    width: timedelta = HOUR,
    seed: int = 7,
) -> ReportDocument:
    """A feed with some trouble: a loss, an unfinished tail, a partition that nobody could ask."""
    chance = Random(seed)
    edges = tuple(TAKEN_AT - width * (columns - each) for each in range(columns + 1))
    size = -(-partitions // MOST_BLOCKS)
    blocks = [
        _block(first, min(first + size, partitions) - 1, columns, chance)
        for first in range(0, partitions, size)
    ]
    found = [a_finding(each) for each in (3, 7)] if findings is None else findings
    wave = [int(partitions * 3_000 * (1.2 + chance.random() * 0.4)) for _ in range(columns)]
    reach = [sum(wave[: each + 1]) for each in range(columns)]
    return ReportDocument(
        feed="orders",
        topic="orders",
        taken_at=TAKEN_AT,
        verdict=max((each.verdict for each in found), key=list(Verdict).index,
                    default=Verdict.PROVEN_OK),
        complete_up_to=TAKEN_AT - 20 * width,
        complete_window_end=TAKEN_AT.replace(minute=0) - 20 * width,
        complete_by=CompleteBy.READABLE,
        held_back_by=("orders-3 [1 000, 1 500) A1 PROVEN_LOSS: the log start passed them.",),
        levels=("L0", "L1", "L2"),
        deepest="L2",
        silent=(),
        is_complete=True,
        unheard=(),
        findings=tuple(found),
        partitions=tuple(_partition(each, chance) for each in range(partitions)),
        coverage=CoverageMap(edges, tuple(blocks)),
        columns=tuple(
            ColumnPart(
                produced=None if place == 0 else made,
                landed_rows=int(made * 0.97) if place < columns - 2 else 0,
                landed_offsets=made if place < columns - 2 else 0,
                holes={"control": made // 90, "aborted": made // 200,
                       "compacted": int(made // 400 * chance.random())},
                batches=4,
            )
            for place, made in enumerate(wave)
        ),
        band=tuple(
            BandPart(
                looked_at=edges[place + 1],
                log_start=reach[max(0, place - columns // 3)],
                frontier=reach[max(0, place - 1)],
                last_stable=reach[place] - 400,
                high_watermark=reach[place],
                is_whole=place != columns // 4,
            )
            for place in range(columns)
        ),
        ages=(
            AgePart("L2", 0, 3_600, 4, 4_000_000),
            AgePart("L2", 86_400, 172_800, 80, 91_000_000),
            AgePart("L3", 0, 3_600, 2, 2_000_000),
            AgePart("L3", 86_400, 172_800, 30, 41_000_000),
            AgePart("L3", 345_600, 604_800, 50, 44_000_000),
            AgePart("L3", None, None, 2, 8_000_000),
        ),
    )  # fmt: skip


def _partition(number: int, chance: Random) -> PartitionPart:
    if number in (3, 7):
        gaps = (GapPart(1_300_000, 1_300_250),)
        return a_partition(
            number, verdict=Verdict.PROVEN_LOSS, lost=500, gaps=gaps, gap_offsets=250,
            seconds_to_loss=-3.0, complete_up_to=None,
        )  # fmt: skip
    if number == 5:
        return a_partition(
            number, verdict=Verdict.UNKNOWN, lag=None, log_start_offset=None, high_watermark=None,
            last_stable_offset=None, seconds_to_loss=None,
        )  # fmt: skip
    return a_partition(number, lag=chance.randrange(1_000), rows=chance.randrange(1 << 40))


def _block(first: int, last: int, columns: int, chance: Random) -> CoverageBlock:
    verdicts = [Verdict.PROVEN_OK] * columns
    counts = [last - first + 1] * columns
    lost_at = chance.randrange(columns)
    for place in range(columns):
        if place >= columns - 1 - chance.randrange(2):
            verdicts[place] = Verdict.UNKNOWN
        if first <= 3 <= last and lost_at <= place < lost_at + 3:
            verdicts[place], counts[place] = Verdict.PROVEN_LOSS, 1
        if first <= 5 <= last and place > columns * 2 // 3:
            verdicts[place], counts[place] = Verdict.UNKNOWN, 1
        if first <= 9 <= last and place % 17 == 4:
            verdicts[place], counts[place] = Verdict.SUSPECTED, 1
        if first <= 10 <= last and place in (5, 6):
            verdicts[place], counts[place] = Verdict.WAIVED, 1
    return CoverageBlock(first, last, tuple(verdicts), tuple(counts))
