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
from tallystick.errors import BrokerUnavailable
from tallystick.sources.leader_reads import LeaderReads
from tallystick.sources.record_batches import batches_in, read_at, records_in
from tallystick.sources.topic_bounds import TopicBounds

_FETCH_BYTES: Final = 8 * 1024 * 1024
# Well below the time for which the ledger lets a transaction stand idle (`session.sql`).
_LONGEST_SECONDS: Final = 300.0


def first_offset_at(
    topics: TopicBounds,
    reads: LeaderReads,
    partition: TopicPartition,
    timestamp_ms: int,
    *,
    servers: str,
) -> int | None:
    """The first offset of the log with a timestamp at or after the instant; None without one.

    Raises LogUnreadable for a batch that is damaged, and BrokerUnavailable for a log that is cut
    meanwhile, or too long to be read in time: the ledger's transaction waits for it.
    """
    deadline = time.monotonic() + _LONGEST_SECONDS
    position = topics.log_start_offset(partition)
    while True:
        if time.monotonic() > deadline:
            raise BrokerUnavailable(
                servers,
                f"its time index can't tell where records of {partition} are as late, and"
                f" {_LONGEST_SECONDS:.0f} s of reading came to offset {position}",
            )
        answer = reads.fetch(
            partition, position, Isolation.READ_UNCOMMITTED, max_bytes=_FETCH_BYTES
        )
        if answer is None:
            start = topics.log_start_offset(partition)
            if start <= position:
                # An answer now would let a feed begin where the log ends.
                raise BrokerUnavailable(servers, f"{partition} was cut while its records were read")
            position = start
            continue
        if position >= answer.readable_until:
            return None
        with read_at(f"batches of {partition} at {position}"):
            found, following = _first_in(answer.records, position, timestamp_ms)
        if found is not None or following == position:
            return found
        position = following


def _first_in(
    records: bytes | memoryview, position: int, timestamp_ms: int
) -> tuple[int | None, int]:
    """The offset if these batches have it, and where the next ones begin."""
    following = position
    for batch in batches_in(records):
        if batch.max_timestamp >= timestamp_ms:
            for each in records_in(batch):
                if each.offset >= position and each.timestamp_ms >= timestamp_ms:
                    return each.offset, following
        following = max(following, batch.until_offset)
    return None, following
