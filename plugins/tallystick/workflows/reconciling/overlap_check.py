"""Level L2: where two ranges of the ledger overlap, are the rows there twice as well?

Verification proves that a batch holds each offset once, and the schema that two batches share none.
So only where the ledger contradicts its schema are the offset columns read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.domain.offsets.ranges import OffsetRange, overlaps_in
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.b2_landed_twice import HeldOffsets, shared_by_batches
from tallystick.domain.rules.findings import Finding
from tallystick.errors import FileMissing
from tallystick.ledger.evidence import SettledRanges
from tallystick.ledger.proofs import BatchPlace
from tallystick.workflows.services import Services


def doubled_findings(
    services: Services, unsound: Sequence[SettledRanges], places: Sequence[BatchPlace]
) -> list[Finding]:
    """Offsets of overlapping ranges that are in rows of two batches; raises StorageError."""
    return [
        finding
        for each in unsound
        for overlap in overlaps_in(each.ranges)
        for finding in shared_by_batches(
            services.feed_name,
            each.account,
            list(_held(services, each.account.ordinal, overlap, places)),
        )
    ]


def _held(
    services: Services,
    generation: int,
    overlap: OffsetRange,
    places: Sequence[BatchPlace],
) -> Iterator[HeldOffsets]:
    """What each batch's files really hold of the overlap."""
    partition, bounds = overlap.partition.partition, (overlap.from_offset, overlap.until_offset)
    holding = set(
        services.ledger.batches_holding(services.feed_name, generation, partition, *bounds)
    )
    for each in places:
        if each.batch_id not in holding:
            continue
        place = str(each.path) if each.is_published else each.staging
        try:
            read = services.store.read_back(place)
        except FileMissing:
            continue
        yield HeldOffsets(
            each.batch_id,
            place,
            read.landed.get(partition, OffsetRuns()).clipped(*bounds),
            read.doubled.get(partition, OffsetRuns()).clipped(*bounds),
        )
