"""An asset event names the ranges that a run landed, bounded in size.

A notification only: the ledger is the truth, and what is left out here is found there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from airflow.sdk import Asset

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.offsets.ranges import OffsetRange, union_of

MOST_RANGES: Final = 80


def asset_of(feed: str) -> Asset:
    """The asset that stands for the feed's landed data."""
    return Asset(f"tallystick://{feed}")


def landed_extra(batches: Sequence[BatchPlan], most_ranges: int = MOST_RANGES) -> dict[str, Any]:
    """Landed ranges by generation and partition, adjacent ones joined, `most_ranges` at most."""
    by_generation: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    for batch in batches:
        by_generation[batch.ordinal] += [each.offsets for each in batch.ranges]
    ranges = [
        {
            "generation": ordinal,
            "partition": each.partition.partition,
            "from_offset": each.from_offset,
            "until_offset": each.until_offset,
        }
        for ordinal, landed in sorted(by_generation.items())
        for each in union_of(landed)
    ]
    return {
        "batches": len(batches),
        "offsets": sum(batch.span for batch in batches),
        "ranges": ranges[:most_ranges],
        "ranges_left_out": max(0, len(ranges) - most_ranges),
    }
