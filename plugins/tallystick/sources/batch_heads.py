"""Single record batches of many partitions, in few requests: their headers, or their records' size.

What headers say of retention, purges and open transactions is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.snapshot import BatchHead
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import LogUnreadable
from tallystick.sources.hole_walk import FetchAnswer
from tallystick.sources.leader_reads import LeaderReads, Place
from tallystick.sources.record_batches import (
    BatchUnreadable,
    RecordBatch,
    batch_reaching,
    bytes_per_record,
)

# A broker leaves out a batch that does not fit, but for the first partition of a request. Most
# batches of a quiet topic fit; the others are asked for one by one.
_FIRST_BYTES: Final = 16 * 1024 + 512
_PLACES_PER_REQUEST: Final = 1000
_LENGTH_IS_AFTER: Final = 12
# Large batches come one by one, whole.
_MOST_SAMPLED_BYTES: Final = 16 << 20


class HeadSearch:
    """The search for one batch header in each of some partitions of a topic."""

    def __init__(self, reads: LeaderReads, topic: str, offsets: Mapping[int, int]) -> None:
        self._reads = reads
        self._topic = topic
        places = [Place(each, offset, _FIRST_BYTES) for each, offset in offsets.items()]
        self._wanted = {each.partition: each for each in reads.by_leader(topic, places)}

    def found(self) -> dict[int, BatchHead]:
        """The heads by partition; a partition without a batch there is absent."""
        return {partition: _head(batch) for partition, batch in self._batches()}

    def bytes_per_record(self) -> dict[int, float]:
        """Estimates what a record takes unpacked, likewise; by so many batches as cost little."""
        found: dict[int, float] = {}
        read_bytes = 0
        for partition, batch in self._batches():
            found[partition] = bytes_per_record(batch)
            read_bytes += batch.length
            if read_bytes > _MOST_SAMPLED_BYTES:
                break
        return found

    def _batches(self) -> Iterator[tuple[int, RecordBatch]]:
        while self._wanted:
            places = list(islice(self._wanted.values(), _PLACES_PER_REQUEST))
            for partition, answer in self._reads.fetch_some(self._topic, places).items():
                batch = self._batch(self._wanted.pop(partition), answer)
                if batch is not None:
                    yield partition, batch

    def _batch(self, place: Place, answer: FetchAnswer | None) -> RecordBatch | None:
        if answer is None or place.offset >= answer.readable_until:
            return None
        batch = self._first_of(place, answer)
        if batch is None:
            alone = self._reads.fetch(
                TopicPartition(self._topic, place.partition),
                place.offset,
                Isolation.READ_UNCOMMITTED,
                max_bytes=1,
            )
            batch = self._first_of(place, alone) if alone else None
        return batch

    def _first_of(self, place: Place, answer: FetchAnswer) -> RecordBatch | None:
        """The first whole batch that reaches past the place."""
        try:
            return batch_reaching(answer.records, place.offset)
        except BatchUnreadable as failure:
            what = f"the batch of {self._topic}-{place.partition} at {place.offset}"
            raise LogUnreadable(what, str(failure)) from failure


def _head(batch: RecordBatch) -> BatchHead:
    return BatchHead(
        base_offset=batch.base_offset,
        until_offset=batch.until_offset,
        max_timestamp_ms=batch.max_timestamp if batch.max_timestamp >= 0 else None,
        byte_count=batch.length + _LENGTH_IS_AFTER,
        producer_id=batch.producer_id if batch.producer_id >= 0 else None,
    )
