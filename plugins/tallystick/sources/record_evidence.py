"""Single records of many partitions, in few requests: what tail anchors are held against.

Takes the record at an exact offset or says that it is gone; never the next one instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.snapshot import RecordEvidence
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import LogUnreadable
from tallystick.sources.hole_walk import FetchAnswer
from tallystick.sources.leader_reads import LeaderReads, Place
from tallystick.sources.record_batches import (
    BatchUnreadable,
    batch_reaching,
    bytes_of_first_batch,
    record_in,
)

# Producers fill batches of 16 kB unless told otherwise; a larger one is asked for by its size.
_FIRST_BYTES: Final = 16 * 1024 + 512
_REQUEST_BYTES: Final = 16 * 1024 * 1024


class RecordSearch:
    """The search for one record in each of some partitions of a topic."""

    def __init__(self, reads: LeaderReads, topic: str, offsets: Mapping[int, int]) -> None:
        self._reads = reads
        self._topic = topic
        places = [Place(each, offset, _FIRST_BYTES) for each, offset in offsets.items()]
        self._wanted = {each.partition: each for each in reads.by_leader(topic, places)}

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
        alone = self._reads.fetch(
            TopicPartition(self._topic, partition),
            offset,
            Isolation.READ_UNCOMMITTED,
            max_bytes=place.max_bytes,
        )
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
