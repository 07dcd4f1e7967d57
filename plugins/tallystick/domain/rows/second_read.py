"""One record as two readers see it: as it was landed, and as another client reads it from Kafka.

1. Two records are the same when their hash over place, time, key, value and headers is, and the
   type of their timestamp. Their heads are for people.
2. What a reader could not see proves nothing: only offsets that both sides answered for count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.record_hash import record_hash

HEAD_BYTES: Final = 32
_MOST_NAMES: Final = 10
_NAME_LENGTH: Final = 64
NO_TIMESTAMP: Final = -1
"""Type of a timestamp, and the timestamp, where a record has none."""


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The beginning of a record, for people: bounded whatever the record holds."""

    timestamp_ms: int
    timestamp_type: int
    """0: set by the producer; 1: by the broker; -1: there is none."""
    key: bytes | None
    """The first bytes."""
    key_bytes: int
    value: bytes | None
    """The first bytes."""
    value_bytes: int
    header_names: tuple[str, ...]
    """The first ones, cut where they are long."""
    header_count: int


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """One record as somebody has read it."""

    offset: int
    content_hash: bytes
    """`record_hash`, header names as C strings: librdkafka shows them up to their first NUL."""
    head: RecordHead

    @classmethod
    def of(
        cls,
        *,
        partition: int,
        offset: int,
        timestamp_ms: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
    ) -> SeenRecord:
        """The record with these fields, whoever has read them."""
        named = [(name.partition("\0")[0], content) for name, content in headers]
        head = RecordHead(
            timestamp_ms,
            timestamp_type,
            key[:HEAD_BYTES] if key is not None else None,
            len(key or b""),
            value[:HEAD_BYTES] if value is not None else None,
            len(value or b""),
            tuple(name[:_NAME_LENGTH] for name, _ in named[:_MOST_NAMES]),
            len(named),
        )
        content_hash = record_hash(
            partition=partition,
            offset=offset,
            timestamp_ms=timestamp_ms,
            key=key,
            value=value,
            headers=named,
        )
        return cls(offset, content_hash, head)

    def is_same_as(self, other: SeenRecord) -> bool:
        """True for the same record."""
        return (self.offset, self.content_hash, self.head.timestamp_type) == (
            other.offset,
            other.content_hash,
            other.head.timestamp_type,
        )


@dataclass(frozen=True, slots=True)
class SliceRead:
    """What the broker served of one slice."""

    asked: OffsetRange
    records: tuple[SeenRecord, ...]
    """By offset."""
    from_offset: int
    """First offset that was answered for (included): the log may begin later than the slice."""
    until_offset: int
    """One past the last offset that was answered for (excluded)."""
    reason: str | None = None
    """Why a part of the slice has no answer; None when all of it has."""
    not_shown: frozenset[int] = frozenset()
    """Offsets with a record that this reader's library can't hand out, or not with its time."""

    @property
    def answered_count(self) -> int:
        """Offsets that were answered for: each has one of the records, or has none for certain."""
        return max(0, self.until_offset - self.from_offset - len(self.not_shown))


@dataclass(frozen=True, slots=True)
class Difference:
    """One offset of which the two readers do not say the same."""

    offset: int
    landed: SeenRecord | None
    """None where no landed row has the offset."""
    served: SeenRecord | None
    """None where the broker serves no record at this offset."""


def without_untimed(read: SliceRead, landed: Iterable[SeenRecord]) -> SliceRead:
    """The slice without records whose time the reader can't tell, where the landed row has one.

    librdkafka shows no time where a record of the old format has the time 0.
    """
    untimed = {each.offset for each in read.records if each.head.timestamp_type == NO_TIMESTAMP}
    timed = {each.offset for each in landed if each.head.timestamp_ms != NO_TIMESTAMP}
    return replace(read, not_shown=read.not_shown | (untimed & timed))


def differences(
    read: SliceRead, landed: Iterable[SeenRecord], cleaned: OffsetRange | None = None
) -> tuple[Difference, ...]:
    """Where the landed rows of a slice are not what the broker serves, by offset.

    A landed row that is served no more is no difference where a compacted topic may have `cleaned`.
    """
    ours: Mapping[int, SeenRecord] = {
        each.offset: each
        for each in landed
        if read.from_offset <= each.offset < read.until_offset and each.offset not in read.not_shown
    }
    theirs = {
        each.offset: each
        for each in read.records
        if read.from_offset <= each.offset < read.until_offset and each.offset not in read.not_shown
    }
    found = []
    for offset in sorted(ours.keys() | theirs.keys()):
        ours_here, served = ours.get(offset), theirs.get(offset)
        if ours_here and served and ours_here.is_same_as(served):
            continue
        if served is None and cleaned and offset in cleaned:
            continue
        found.append(Difference(offset, ours_here, served))
    return tuple(found)
