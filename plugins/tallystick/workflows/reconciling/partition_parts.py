"""The partitions of a report: three witnesses' accounts of each, side by side. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import offset_range, subtract
from tallystick.domain.report.completeness import Completeness, PartitionCompleteness
from tallystick.domain.report.document import MOST_GAPS, GapPart, PartitionPart
from tallystick.domain.rules.findings import Level
from tallystick.ledger.reports import LandedTotals, LogTotals, ShownBounds
from tallystick.workflows.reconciling.reconcile_report import PartitionAccount, ReconcileReport

_NOTHING = LogTotals(rows=0, holes={}, lost=0, missing_below=0)


def partition_parts(
    reconciled: ReconcileReport,
    generations: Mapping[int, Sequence[GenerationAccount]],
    complete: Completeness,
    totals: LandedTotals,
    bounds: ShownBounds | None,
) -> tuple[PartitionPart, ...]:
    """One part for each partition that the ledger knows, in their order."""
    proven = {each.partition: each for each in complete.partitions}
    # A look of an earlier day says nothing about today.
    seen = bounds if bounds and bounds.looked_at >= reconciled.taken_at else None
    checked = _checked_at(reconciled, totals)
    return tuple(
        _part(
            each,
            [
                totals.logs.get(life.generation_id, _NOTHING)
                for life in generations.get(each.account.partition.partition, (each.account,))
            ],
            proven.get(each.account.partition.partition),
            seen,
            reconciled.taken_at,
            checked,
        )
        for each in reconciled.partitions
    )


def _part(
    found: PartitionAccount,
    logs: Sequence[LogTotals],
    proven: PartitionCompleteness | None,
    seen: ShownBounds | None,
    now: datetime,
    checked: Mapping[str, datetime | None],
) -> PartitionPart:
    account = found.account
    partition = account.partition.partition
    is_heard = found.log_start_offset is not None
    is_seen = seen is not None and is_heard and seen.topic_id == account.topic_id
    gaps = _gaps(account)
    return PartitionPart(
        partition=partition,
        generation=account.ordinal,
        state=account.state.value,
        verdict=found.verdict,
        complete_up_to=proven.up_to if proven else None,
        first_offset=account.first_offset,
        frontier=account.frontier,
        log_start_offset=found.log_start_offset,
        last_stable_offset=seen.last_stable_offsets.get(partition) if seen and is_seen else None,
        high_watermark=seen.high_watermarks.get(partition) if seen and is_seen else None,
        lag=found.lag,
        seconds_to_loss=_seconds(found.time_to_loss),
        rows=sum(each.rows for each in logs),
        holes={kind.value: sum(each.holes.get(kind, 0) for each in logs) for kind in HoleClass},
        lost=sum(each.lost for each in logs),
        gap_offsets=sum(each.until_offset - each.from_offset for each in gaps)
        + sum(max(0, each.missing_below) for each in logs),
        gaps=tuple(gaps[:MOST_GAPS]),
        checked_at={Level.L1.value: now if is_heard else None, **checked},
    )


def _gaps(account: GenerationAccount) -> list[GapPart]:
    """Offsets beyond the frontier that nothing covers, below others that are covered."""
    wanted = offset_range(account.partition, account.frontier, account.accounted_until)
    if wanted is None:
        return []
    return [
        GapPart(each.from_offset, each.until_offset) for each in subtract(wanted, account.beyond)
    ]


def _seconds(left: timedelta | None) -> float | None:
    return None if left is None else left.total_seconds()


def _checked_at(reconciled: ReconcileReport, totals: LandedTotals) -> dict[str, datetime | None]:
    """Since when every batch of the feed was looked at: what holds for each partition in it."""
    deep = [each for each in totals.ages if each.level == "L3"]
    oldest = [each.oldest_at for each in deep if each.oldest_at is not None]
    is_whole = bool(deep) and all(each.stretch is not None for each in deep)
    heard_storage = reconciled.is_complete and Level.L2 in reconciled.levels
    # What has not changed was asked by an earlier look.
    asked_at = min(reconciled.taken_at, totals.directories_at or reconciled.taken_at)
    return {
        Level.L2.value: asked_at if heard_storage else None,
        "L3": min(oldest) if is_whole and oldest else None,
    }
