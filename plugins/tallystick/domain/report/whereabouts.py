"""Where a record is: what a person may ask for, and what the ledger's row of an offset means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId

_OFFSET: Final = re.compile(
    r"(?:(?P<topic>\S+)-)?(?P<partition>\d{1,9})(?:\s*[:@]\s*|\s+)"
    r"\[?(?P<offset>\d[\d\s]*)(?:,.*)?",
)
# At the beginning of a file's name, or behind `batch=` in a path.
_BATCH: Final = re.compile(r"(?:^|[/=])(?P<batch>[0-9a-f]{16,32})(?=$|[-/.])")
_HOLES: Final = {
    HoleClass.CONTROL: "it is the control marker of a transaction",
    HoleClass.ABORTED: "its transaction was aborted",
    HoleClass.COMPACTED: "Kafka had compacted it away before it was read",
}


@dataclass(frozen=True, slots=True)
class OffsetSought:
    """One offset of a partition."""

    topic: str | None
    """None where it is not named."""
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class FileSought:
    """A file by its name, or all files of a batch."""

    batch_id: BatchId
    name: str
    """Empty for a batch."""


def offset_sought(text: str) -> OffsetSought | None:
    """The offset that a text names, also as pages write it; None where it names none.

    >>> offset_sought("orders-3 41 007"), offset_sought("3:41007").offset, offset_sought("orders")
    (OffsetSought(topic='orders', partition=3, offset=41007), 41007, None)
    >>> offset_sought("orders-3 [41 007, 41 010)").offset
    41007
    """
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    offset = int("".join(match["offset"].split()))
    return OffsetSought(match["topic"], int(match["partition"]), offset) if offset < 2**63 else None


def file_sought(text: str) -> FileSought | None:
    """The file, or the batch, that a text names: a name, or a path; None where it names none.

    >>> file_sought("/landing/orders/gen=1/dt=2026-11-01/hour=07/batch=0123456789abcdef").name
    ''
    >>> file_sought("0123456789abcdef-fedcba9876543210-00000-c000.zstd.parquet").batch_id
    '0123456789abcdef'
    """
    match = _BATCH.search(text)
    if match is None:
        return None
    last = text.rstrip("/").rpartition("/")[2]
    return FileSought(BatchId(match["batch"]), last if "." in last else "")


class Place(StrEnum):
    """What is known of where a record is."""

    LANDED = "landed"
    HOLE = "hole"
    """No record: proven."""
    LOST = "lost"
    UNREADABLE = "unreadable"
    IN_FLIGHT = "in flight"
    """Claimed by a batch that is not committed yet."""
    NOT_LANDED = "not landed"
    NOT_WRITTEN = "not written"
    """When Kafka was asked last."""
    BEFORE = "before the feed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """What the ledger has of one offset in one life of a log."""

    ordinal: int
    topic_id: str
    has_ended: bool
    """True for a life of the log that is over."""
    first_offset: int
    begins_unseen: bool
    state: str | None
    """Of the range that holds it; None where none does."""
    batch_id: BatchId | None
    """None, too, for a range that several batches have landed."""
    loss_code: str | None
    hole: HoleClass | None


@dataclass(frozen=True, slots=True)
class LogSeen:
    """What the newest look showed of one log."""

    looked_at: datetime
    last_stable_offset: int
    due_end: int
    high_watermark: int


def place_of(offset: int, record: OffsetRecord, seen: LogSeen | None) -> tuple[Place, str]:
    """Where the offset is, and the same in a few words; `seen` is of this very log."""
    match record.state:
        case "committed" if record.hole:
            return Place.HOLE, f"has no record: {_HOLES[record.hole]}"
        case "committed":
            return Place.LANDED, "is landed"
        case "claimed":
            return Place.IN_FLIGHT, "is claimed by a batch that is not committed yet"
        case "lost":
            return Place.LOST, f"is recorded as lost ({record.loss_code})"
        case "unreadable":
            return Place.UNREADABLE, "can't be read, and is set aside: a finding says why"
        case _:
            return _nowhere(offset, record, seen)


def _nowhere(offset: int, record: OffsetRecord, seen: LogSeen | None) -> tuple[Place, str]:
    if offset < record.first_offset:
        began = "the first one that Kafka still had" if record.begins_unseen else "where it began"
        return Place.BEFORE, f"lies before offset {record.first_offset}, {began} for this feed"
    if record.has_ended:
        return Place.UNKNOWN, "was never landed, and this log has ended"
    if seen is None:
        return Place.NOT_LANDED, "is not landed, and the newest look at Kafka has not shown its log"
    at = f"{seen.looked_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}, when Kafka was asked last"
    if offset >= seen.high_watermark:
        return Place.NOT_WRITTEN, f"was not written by {at}: the log ended at {seen.high_watermark}"
    if offset >= seen.due_end:
        return Place.NOT_LANDED, f"is not landed: its window was not over at {at}"
    if offset >= seen.last_stable_offset:
        return Place.NOT_LANDED, f"is not landed: a transaction before it was open at {at}"
    return Place.NOT_LANDED, "is not landed yet: it waits for a run"
