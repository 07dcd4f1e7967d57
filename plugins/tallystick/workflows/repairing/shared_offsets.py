"""Finds the committed batches that hold offsets of the same rows, where a ledger allows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId, FeedName
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.publishing import CommittedBatch


def with_all_holders(
    ledger: Ledger,
    feed: FeedName,
    named: Mapping[BatchId, CommittedBatch],
    replaced: Collection[CommittedFile],
) -> dict[BatchId, CommittedBatch]:
    """The named batches, and all that share an offset with them, directly or through others."""
    found, waiting = dict(named), list(named.values())
    while waiting:
        batch = waiting.pop()
        for file in batch.manifest.files:
            if CommittedFile(batch.plan.batch_id, file.name) in replaced:
                continue
            for held in file.slices:
                bounds = (held.partition, held.first_offset, held.last_offset + 1)
                for other in ledger.batches_holding(feed, batch.plan.ordinal, *bounds):
                    holder = None if other in found else ledger.committed_batch(other)
                    if holder:
                        found[other] = holder
                        waiting.append(holder)
    return found
