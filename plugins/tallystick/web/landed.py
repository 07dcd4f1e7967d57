"""Reads the ledger for the answers about batches: a page of them, and one with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.overview import BatchHead
from tallystick.report.batch_parts import batch_part, file_parts, read_commands
from tallystick.report.documents import RangePart, range_part
from tallystick.web.answers import BatchAnswer, BatchesAnswer

MOST_RANGES: Final = 3
"""A batch of a list is shown with its ranges where it has no more of them."""


def batches_of(ledger: Ledger, feed: FeedName, before: int | None, limit: int) -> BatchesAnswer:
    """A page of batches."""
    found = ledger.batch_heads(feed, before=before, most=limit + 1)
    has_more = len(found) > limit
    return BatchesAnswer(
        feed=feed,
        batches=found[:limit],
        ranges=ranges_of(ledger, found[:limit]),
        before=found[limit - 1].number if has_more else None,
    )


def ranges_of(ledger: Ledger, heads: Sequence[BatchHead]) -> Mapping[str, Sequence[RangePart]]:
    """The ranges of those of the batches that have few."""
    few = [each.batch_id for each in heads if each.partitions <= MOST_RANGES]
    found = ledger.ranges_of(few)
    return {each: [range_part(offsets) for offsets in found[each]] for each in found}


def batch_of(ledger: Ledger, batch_id: BatchId, feed: FeedName) -> BatchAnswer:
    """One batch of the feed, with its files."""
    [record] = ledger.batches(batch_id=batch_id)
    batch = batch_part(record)
    is_read = batch.state == BatchState.PUBLISHED and not batch.is_replaced
    return BatchAnswer(
        feed=feed,
        batch=batch,
        files=[part for each in ledger.files(batch_id=batch_id) for part in file_parts(each)],
        commands=read_commands(feed, batch) if is_read else (),
    )
