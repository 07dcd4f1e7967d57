"""The first record at or after an instant, read in the log itself where the time index can't tell.

A broker looks in the first segment that ever held a record as late, and in no other: where that
record was deleted and its segment is still there, it answers that there is none
(UnifiedLog.searchOffsetInLocalLog).
"""

from __future__ import annotations

import time
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import BrokerUnavailable, LogUnreadable
from tallystick.sources.leader_reads import LeaderReads
from tallystick.sources.record_batches import BatchUnreadable, batches_in, records_in
from tallystick.sources.topic_bounds import TopicBounds

_FETCH_BYTES: Final = 8 * 1024 * 1024
# Well below the time for which the ledger lets a transaction stand idle (`session.sql`).
_LONGEST_SECONDS: Final = 300.0


class TimeSearch:
    """The search for one instant in one partition, batch by batch."""

    def __init__(
        self,
        topics: TopicBounds,
        reads: LeaderReads,
        partition: TopicPartition,
        timestamp_ms: int,
        *,
        servers: str,
    ) -> None:
        self._servers = servers
        self._topics = topics
        self._reads = reads
        self._partition = partition
        self._timestamp_ms = timestamp_ms

    def found(self) -> int | None:
        """The first offset of the log with a timestamp at or after the instant; None without one.

        Raises LogUnreadable for a batch that is damaged, and BrokerUnavailable for a log that is
        cut meanwhile, or too long to be read in time: the ledger's transaction waits for it.
        """
        deadline = time.monotonic() + _LONGEST_SECONDS
        position = self._topics.log_start_offset(self._partition)
        while True:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    self._servers,
                    f"its time index can't tell where records of {self._partition} are as late, and"
                    f" {_LONGEST_SECONDS:.0f} s of reading came to offset {position}",
                )
            answer = self._reads.fetch(
                self._partition, position, Isolation.READ_UNCOMMITTED, max_bytes=_FETCH_BYTES
            )
            if answer is None:
                start = self._topics.log_start_offset(self._partition)
                if start <= position:
                    # An answer now would let a feed begin where the log ends.
                    raise BrokerUnavailable(
                        self._servers, f"{self._partition} was cut while its records were read"
                    )
                position = start
                continue
            if position >= answer.readable_until:
                return None
            try:
                found, following = self._first_in(answer.records, position)
            except BatchUnreadable as failure:
                place = f"batches of {self._partition} at {position}"
                raise LogUnreadable(place, str(failure)) from failure
            if found is not None or following == position:
                return found
            position = following

    def _first_in(self, records: bytes | memoryview, position: int) -> tuple[int | None, int]:
        """The offset if these batches have it, and where the next ones begin."""
        following = position
        for batch in batches_in(records):
            if batch.max_timestamp >= self._timestamp_ms:
                for each in records_in(batch):
                    if each.offset >= position and each.timestamp_ms >= self._timestamp_ms:
                        return each.offset, following
            following = max(following, batch.until_offset)
        return None, following
