"""Single batches of many partitions, in few requests: their headers, their records' size, a record.

What headers say of retention, purges and open transactions, and records of tail anchors, is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.snapshot import BatchHead, RecordEvidence
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import LogUnreadable
from tallystick.sources.hole_walk import FetchAnswer
from tallystick.sources.leader_reads import LeaderReads, Place
from tallystick.sources.record_batches import (
    BatchUnreadable,
    RecordBatch,
    batch_reaching,
    bytes_of_first_batch,
    bytes_per_record,
    record_in,
)

# A broker leaves out a batch that does not fit, but for the first partition of a request. Producers
# fill batches of 16 kB unless told otherwise, so most fit; the others are asked for one by one.
_FIRST_BYTES: Final = 16 * 1024 + 512
_PLACES_PER_REQUEST: Final = 1000
_LENGTH_IS_AFTER: Final = 12
# Large batches come one by one, whole.
_MOST_SAMPLED_BYTES: Final = 16 << 20
_REQUEST_BYTES: Final = 16 * 1024 * 1024


class _Search:
    """A search in some partitions of a topic."""

    def __init__(self, reads: LeaderReads, topic: str, offsets: Mapping[int, int]) -> None:
        self._reads = reads
        self._topic = topic
        places = [Place(each, offset, _FIRST_BYTES) for each, offset in offsets.items()]
        self._wanted = {each.partition: each for each in reads.by_leader(topic, places)}

    def _alone(self, place: Place, max_bytes: int) -> FetchAnswer | None:
        partition = TopicPartition(self._topic, place.partition)
        return self._reads.fetch(
            partition, place.offset, Isolation.READ_UNCOMMITTED, max_bytes=max_bytes
        )


class HeadSearch(_Search):
    """The search for one batch header in each of some partitions of a topic."""

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
            alone = self._alone(place, 1)
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


class RecordSearch(_Search):
    """The search for one record in each of some partitions of a topic.

    It takes the record at an exact offset or says that it is gone; never the next one instead.
    """

    def found(self) -> dict[int, RecordEvidence]:
        """The evidence by partition; a partition whose record is gone is absent."""
        found: dict[int, RecordEvidence] = {}
        while self._wanted:
            places = list(_first_of(self._wanted.values()))
            for partition, answer in self._reads.fetch_some(self._topic, places).items():
                evidence = self._settled(partition, answer)
                if evidence is not None:
                    found[partition] = evidence
        return found

    def _settled(self, partition: int, answer: FetchAnswer | None) -> RecordEvidence | None:
        """The evidence if the answer has it; a partition that must be asked again stays wanted."""
        place = self._wanted.pop(partition)
        offset = place.offset
        if answer is None or offset >= answer.readable_until:
            return None
        needed = bytes_of_first_batch(answer.records)
        if needed is not None and needed <= len(answer.records):
            return self._evidence(partition, offset, answer)
        if needed is not None and needed > place.max_bytes:
            self._wanted[partition] = place._replace(max_bytes=needed)
            return None
        # Nothing, or cut off although there was room: alone a batch comes whole if there is one.
        alone = self._alone(place, place.max_bytes)
        return self._evidence(partition, offset, alone) if alone else None

    def _evidence(self, partition: int, offset: int, answer: FetchAnswer) -> RecordEvidence | None:
        try:
            batch = batch_reaching(answer.records, offset)
            record = record_in(batch, offset) if batch else None
        except BatchUnreadable as failure:
            place = f"the record of {self._topic}-{partition} at {offset}"
            raise LogUnreadable(place, str(failure)) from failure
        if batch is None or record is None:
            return None
        return RecordEvidence(
            offset=offset,
            leader_epoch=batch.leader_epoch if batch.leader_epoch >= 0 else None,
            content_hash=record_hash(
                partition=partition,
                offset=offset,
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
