"""How many records a poll of Spark's Kafka source may bring, so that it stops where a range ends.

Spark asks for records and not for offsets, so the last poll of a range takes records behind its end
along. One of them may be too big for the memory, and what is before it can't be read then. All
records of a poll lie in the memory at once.

1. The stretches of a range hold each of its offsets exactly once, in order.
2. No poll goes beyond the end of a range of which one offset in ten has a record, nor beyond a last
   offset that has one.
3. A range takes a few hundred polls more than it would otherwise.
4. No poll brings more than 64 MiB of records that are as large as those that were looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tallystick.domain.offsets.ranges import OffsetRange

# Every poll costs two more requests, so it should bring many records.
MAX_POLL_RECORDS: Final = 20_000
POLL_OPTION: Final = "kafka.max.poll.records"
"""How Spark's Kafka source is told."""
UNKNOWN_BYTES_PER_RECORD: Final = 100_000.0
"""Where nobody can tell how large records are, they are taken to be large."""
_POLL_BYTES: Final = 64 << 20
# Of so many ranges, the longest ones, records are looked at: asking must cost less than landing.
_MOST_LOOKED_AT: Final = 32
# By the records of a poll: so many offsets are left behind its stretch, before the range's end.
_LEFT_BEHIND: Final = {MAX_POLL_RECORDS: 200_000, 2_000: 20_000, 200: 2_000, 20: 200, 1: 0}


def stretches(ranges: Iterable[OffsetRange]) -> tuple[tuple[int, tuple[OffsetRange, ...]], ...]:
    """The same offsets by how many records a poll may bring there: fewer towards an end.

    >>> from tallystick.domain.offsets.ranges import TopicPartition
    >>> whole = OffsetRange(TopicPartition("t", 0), 0, 5_000)
    >>> [(most, str(each)) for most, [each] in stretches([whole])]
    [(200, 't-0 [0, 3000)'), (20, 't-0 [3000, 4800)'), (1, 't-0 [4800, 5000)')]
    """
    found: dict[int, list[OffsetRange]] = {most: [] for most in _LEFT_BEHIND}
    for each in ranges:
        first = each.from_offset
        for most, left in _LEFT_BEHIND.items():
            part = each.clipped(first, each.until_offset - left)
            if part:
                found[most].append(part)
                first = part.until_offset
    return tuple((most, tuple(parts)) for most, parts in found.items() if parts)


def looked_at(ranges: Iterable[OffsetRange]) -> tuple[Mapping[int, int], ...]:
    """The first offset of each of the longest ranges by partition, a middle one, and the last one:
    a transaction ends with a marker.
    """
    longest = sorted(ranges, key=lambda each: each.span, reverse=True)[:_MOST_LOOKED_AT]
    return tuple(
        {
            each.partition.partition: each.from_offset + (each.span - 1) * half // 2
            for each in longest
        }
        for half in range(3)
    )


def poll_option(bytes_per_record: float) -> dict[str, str]:
    """The option that bounds a poll of records of this size; none where the usual number does.

    >>> poll_option(100), poll_option(500_000)
    ({}, {'kafka.max.poll.records': '134'})
    """
    most = max(1, int(_POLL_BYTES / max(1.0, bytes_per_record)))
    return {POLL_OPTION: str(most)} if most < MAX_POLL_RECORDS else {}
