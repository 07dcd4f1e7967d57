"""A slice is weighed before a library reads it that unpacks all that it fetches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.sources.batch_codecs import TooLarge
from tallystick.sources.hole_walk import FetchAnswer
from tallystick.sources.leader_reads import LeaderReads, Place
from tallystick.sources.record_batches import BatchUnreadable, batches_in, unpacked_bytes

FETCH_BYTES: Final = 64 * 1024
"""Of the log, in one answer; one batch at least comes with each, however large it is."""
_PLACES_PER_REQUEST: Final = 100


class Weight(NamedTuple):
    """Weights are bytes, unpacked; what can't be read weighs nothing."""

    fetch: int = 0
    """The heaviest answer of this size in which records of the slice come."""
    batch: int = 0
    """The heaviest single batch that comes where each answer holds one."""


Weigh = Callable[[Sequence[OffsetRange], int], Mapping[OffsetRange, Weight]]
"""By slice; of a batch no more is unpacked than the number says, and a little."""


def weights_of(
    reads: LeaderReads,
    log_start: Callable[[TopicPartition], int],
    slices: Sequence[OffsetRange],
    most: int,
) -> Mapping[OffsetRange, Weight]:
    """Weighs all that is fetched for each slice, and what lies right behind it: it may come, too.

    All partitions are asked together. Raises BrokerUnavailable, SourceRefused, TopicUnknown.
    """
    found = dict.fromkeys(slices, Weight())
    left = {each: each.from_offset for each in slices}
    while left:
        asked = {each.partition.partition: each for each in left}
        places = [Place(number, left[each], FETCH_BYTES) for number, each in asked.items()]
        topic = slices[0].partition.topic
        answers = reads.fetch_some(topic, places[:_PLACES_PER_REQUEST])
        for each, answer in ((asked[number], answer) for number, answer in answers.items()):
            offset = left.pop(each)
            if answer is None:
                reached = max(offset, log_start(each.partition))
            else:
                if not answer.records and offset < answer.readable_until:  # it does not fit
                    answer = reads.fetch(
                        each.partition, offset, Isolation.READ_UNCOMMITTED, max_bytes=1
                    )
                weight, reached = _weight(answer, each, most)
                found[each] = Weight(*map(max, found[each], weight))
                if answer is None or reached >= answer.readable_until:
                    continue
            if offset < reached <= each.until_offset and found[each].batch <= most:
                left[each] = reached
    return found


def _weight(answer: FetchAnswer | None, asked: OffsetRange, most: int) -> tuple[Weight, int]:
    """Weighs one answer; returns one past what it holds, too, or 0."""
    fetched = alone = reached = 0
    try:
        for batch in batches_in(answer.records if answer else b""):
            size = unpacked_bytes(batch, most)
            fetched, reached = fetched + size, batch.until_offset
            if batch.base_offset <= asked.until_offset:
                alone = max(alone, size)
            if size > most:
                break
    except BatchUnreadable as failure:  # what is damaged tells whoever reads it
        if isinstance(failure.__cause__, TooLarge):
            fetched = alone = most + 1
    return Weight(fetched, alone), reached
