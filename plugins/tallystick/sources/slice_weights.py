"""What a slice unpacks to, before a library that unpacks all that it fetches reads it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.sources.leader_reads import LeaderReads
from tallystick.sources.record_batches import BatchUnreadable, batches_in, unpacked_bytes

FETCH_BYTES: Final = 64 * 1024
"""Of the log, in one answer; one batch at least comes with each, however large it is."""


class Weight(NamedTuple):
    """In bytes, unpacked; what can't be read weighs nothing."""

    fetch: int = 0
    """The heaviest answer of this size in which records of the slice come."""
    batch: int = 0
    """The heaviest single batch that comes where each answer holds one."""


Weigh = Callable[[OffsetRange, Isolation, int], Weight]
"""Of one slice; of a batch no more is unpacked than the number says, and a little."""


def weight_of(
    reads: LeaderReads,
    log_start: Callable[[TopicPartition], int],
    asked: OffsetRange,
    isolation: Isolation,
    most: int,
) -> Weight:
    """Of all that is fetched for the slice, and of what lies right behind it: it may come, too.

    Raises BrokerUnavailable, SourceRefused, TopicUnknown.
    """
    offset, found = asked.from_offset, Weight()
    while offset <= asked.until_offset and found.batch <= most:
        answer = reads.fetch(asked.partition, offset, isolation, max_bytes=FETCH_BYTES)
        fetched, before = 0, offset
        if answer is None:
            offset = max(offset, log_start(asked.partition))
        else:
            with suppress(BatchUnreadable):  # whoever reads it says so
                for batch in batches_in(answer.records):
                    size = unpacked_bytes(batch, most)
                    fetched, offset = fetched + size, batch.until_offset
                    alone = size if batch.base_offset <= asked.until_offset else 0
                    found = Weight(max(found.fetch, fetched), max(found.batch, alone))
                    if size > most:
                        break
        if offset == before:
            break
    return found
