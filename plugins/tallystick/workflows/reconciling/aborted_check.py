"""Level L1: landed rows against the broker's aborted transactions, where the log still holds them.

Newest batches first, within a budget: what is older was looked at when it was new. Logs without a
transaction cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.sameness import UNKNOWN, Sameness
from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.findings import Finding
from tallystick.ledger.proofs import BatchPlace
from tallystick.workflows.services import Services

# To look at an offset is to fetch its batch: this is some hundred megabytes at most, once an hour.
_OFFSETS_AT_MOST: Final = 1_000_000
_BATCHES_AT_MOST: Final = 24
_OF_TRANSACTIONS: Final = (HoleClass.CONTROL, HoleClass.ABORTED)


def aborted_findings(
    services: Services,
    places: Sequence[BatchPlace],
    accounts: Accounts,
    seen: Observation,
) -> list[Finding]:
    """Rows that read_committed batches hold, and that the broker says were aborted.

    `places` are in the order of their commits. Raises SourceError.
    """
    logs = _logs_as_read(accounts, seen)
    manifests = [
        batch.manifest
        for each in places[-_BATCHES_AT_MOST:]
        if (batch := services.ledger.committed_batch(each.batch_id))
    ]
    transactional = {
        part.planned.offsets.partition.partition
        for manifest in manifests
        for part in manifest.ranges
        if any(part.holes.get(kind) for kind in _OF_TRANSACTIONS)
    }
    found: list[Finding] = []
    budget = _OFFSETS_AT_MOST
    for manifest in reversed(manifests):
        if manifest.isolation is not Isolation.READ_COMMITTED:
            continue
        for part in manifest.ranges:
            partition = part.planned.offsets.partition.partition
            landed = _retained(part, logs.get((manifest.plan.ordinal, partition)))
            if partition not in transactional or not landed:
                continue
            budget -= landed.count
            if budget < 0:
                return found
            found += _aborted(services, manifest, part, landed)
    return found


def _logs_as_read(
    accounts: Accounts, seen: Observation
) -> Mapping[tuple[int, int], PartitionBounds]:
    """The logs that still are what was landed, by generation and partition.

    One that was cut or re-created has other records at the same offsets: its transactions say
    nothing of the rows that were landed before.
    """
    return {
        (account.ordinal, partition): bounds
        for partition, account in accounts.generations.items()
        if (bounds := seen.snapshot.partitions.get(partition))
        and account.state is GenerationState.OPEN
        and seen.logs.get(partition, UNKNOWN).sameness is Sameness.SAME
    }


def _retained(part: AccountedRange, bounds: PartitionBounds | None) -> OffsetRuns:
    """The rows of a range that the log still holds; none where there are no bounds."""
    if bounds is None:
        return OffsetRuns()
    offsets = part.planned.offsets
    holes = reduce(OffsetRuns.union, part.holes.values(), OffsetRuns())
    rows = holes.complement(offsets.from_offset, offsets.until_offset)
    return rows.clipped(bounds.log_start_offset, bounds.high_watermark)


def _aborted(
    services: Services, manifest: Manifest, part: AccountedRange, landed: OffsetRuns
) -> Iterator[Finding]:
    """What of the rows was aborted, file by file; those of replaced files don't count."""
    explained = services.broker.explain_holes(
        part.planned.offsets, landed, Isolation.READ_COMMITTED
    )
    aborted = explained.get(HoleClass.ABORTED)
    if not aborted:
        return
    partition = part.planned.offsets.partition.partition
    replaced = services.ledger.replacements(services.feed_name)
    for file in manifest.files:
        if CommittedFile(manifest.plan.batch_id, file.name) not in replaced:
            rows = landed.intersection(_reach(file, partition))
            yield from aborted_landed(manifest.plan, file.name, partition, rows, aborted)


def _reach(file: LandedFile, partition: int) -> OffsetRuns:
    """All that the file's slices of a partition span."""
    return OffsetRuns.of(each.run for each in file.slices if each.partition == partition)
