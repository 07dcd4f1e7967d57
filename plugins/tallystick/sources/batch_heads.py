"""Single batches of many partitions, in few requests: their headers, their records' size, a record.

What headers say of retention, purges and open transactions, and records of tail anchors, is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.snapshot import BatchHead, RecordEvidence
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.rows.record_hash import record_hash
from tallystick.sources.hole_walk import FetchAnswer
from tallystick.sources.leader_reads import LeaderReads, Place
from tallystick.sources.message_sets import StoredRecord
from tallystick.sources.record_batches import (
    RecordBatch,
    batch_reaching,
    bytes_of_first_batch,
    bytes_per_record,
    read_at,
    record_in,
)

# A broker leaves out a batch that does not fit, but for the first partition of a request. Producers
# fill batches of 16 kB unless told otherwise, so most fit; the others are asked for again.
_FIRST_BYTES: Final = 16 * 1024 + 512
_LENGTH_IS_AFTER: Final = 12
_MOST_SAMPLED_BYTES: Final = 16 << 20
_REQUEST_BYTES: Final = 16 * 1024 * 1024


class BatchSearch:
    """The search for one batch in each of some partitions of a topic: the one that holds the offset
    of the partition, or else the next one.
    """

    def __init__(self, reads: LeaderReads, topic: str, offsets: Mapping[int, int]) -> None:
        self._reads = reads
        self._topic = topic
        places = [Place(each, offset, _FIRST_BYTES) for each, offset in offsets.items()]
        self._wanted = {each.partition: each for each in reads.by_leader(topic, places)}

    def heads(self) -> dict[int, BatchHead]:
        """The headers by partition; a partition without a batch there is absent."""
        return {place.partition: _head(batch) for place, batch in self._batches()}

    def bytes_per_record(self) -> dict[int, float]:
        """Estimates what a record takes unpacked, likewise; by so many batches as cost little."""
        found: dict[int, float] = {}
        read_bytes = 0
        for place, batch in self._batches():
            found[place.partition] = bytes_per_record(batch)
            read_bytes += batch.length
            if read_bytes > _MOST_SAMPLED_BYTES:
                break
        return found

    def records(self) -> dict[int, RecordEvidence]:
        """The records at exactly these offsets, never the next ones; one that is gone is absent."""
        found: dict[int, RecordEvidence] = {}
        for place, batch in self._batches():
            with read_at(f"the record of {self._topic}-{place.partition} at {place.offset}"):
                record = record_in(batch, place.offset)
            if record is not None:
                found[place.partition] = _evidence(place, batch, record)
        return found

    def _batches(self) -> Iterator[tuple[Place, RecordBatch]]:
        while self._wanted:
            places = list(_first_of(self._wanted.values()))
            for partition, answer in self._reads.fetch_some(self._topic, places).items():
                place = self._wanted.pop(partition)
                batch = self._batch(place, answer)
                if batch is not None:
                    yield place, batch

    def _batch(self, place: Place, answer: FetchAnswer | None) -> RecordBatch | None:
        """The batch if the answer has it; a partition that must be asked again stays wanted."""
        if answer is None or place.offset >= answer.readable_until:
            return None
        needed = bytes_of_first_batch(answer.records)
        if needed is not None and needed > max(place.max_bytes, len(answer.records)):
            self._wanted[place.partition] = place._replace(max_bytes=needed)
            return None
        if needed is None or needed > len(answer.records):
            # Nothing, or cut off although there was room: alone a batch comes whole, if any does.
            partition = TopicPartition(self._topic, place.partition)
            answer = self._reads.fetch(
                partition, place.offset, Isolation.READ_UNCOMMITTED, max_bytes=place.max_bytes
            )
        with read_at(f"the batch of {self._topic}-{place.partition} at {place.offset}"):
            return batch_reaching(answer.records, place.offset) if answer else None


def _head(batch: RecordBatch) -> BatchHead:
    return BatchHead(
        base_offset=batch.base_offset,
        until_offset=batch.until_offset,
        max_timestamp_ms=batch.max_timestamp if batch.max_timestamp >= 0 else None,
        byte_count=batch.length + _LENGTH_IS_AFTER,
        producer_id=batch.producer_id if batch.producer_id >= 0 else None,
    )


def _evidence(place: Place, batch: RecordBatch, record: StoredRecord) -> RecordEvidence:
    return RecordEvidence(
        offset=place.offset,
        leader_epoch=batch.leader_epoch if batch.leader_epoch >= 0 else None,
        content_hash=record_hash(
            partition=place.partition,
            offset=place.offset,
            timestamp_ms=record.timestamp_ms,
            key=record.key,
            value=record.value,
            headers=record.headers,
        ),
    )


def _first_of(places: Iterable[Place]) -> Iterable[Place]:
    """Takes as many places as one request may hold, at least one."""
    room = _REQUEST_BYTES
    for each in places:
        if room < each.max_bytes and room < _REQUEST_BYTES:
            return
        room -= each.max_bytes
        yield each
