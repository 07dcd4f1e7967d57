"""The JSON documents of several commands share these parts. docs/cli.md describes every field.

Each family of commands has its documents beside its commands. A field that is there stays: programs
read it. New ones may be added. Offsets are half-open: `from_offset` is included, `until_offset` is
not. Instants are ISO 8601 in UTC. `finding` and `findings` hold findings, always of one shape;
`finding_number` and `finding_numbers` hold their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, PlainSerializer

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.window import Window

Instant = Annotated[
    datetime, PlainSerializer(lambda instant: instant.astimezone(UTC).isoformat(), str)
]
ShownFinding: TypeAlias = Annotated[FindingPart, PlainSerializer(to_plain)]


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Document(Part):
    """One whole document; `format` names it and its version."""

    def as_json(self) -> str:
        """The document on several lines, keys in a fixed order."""
        return self.model_dump_json(by_alias=True, indent=2, fallback=str)


class WindowPart(Part):
    """A data interval [from, until)."""

    from_instant: Instant
    until_instant: Instant

    def __str__(self) -> str:
        return f"[{self.from_instant.isoformat()}, {self.until_instant.isoformat()})"

    @property
    def in_utc(self) -> str:
        """The window in UTC; its end's day is left out while it is the start's, up to 24:00."""
        start, end = self.from_instant.astimezone(UTC), self.until_instant.astimezone(UTC)
        clock = f"{end:%H:%M}" if end.date() == start.date() else "24:00"
        if (end - timedelta(microseconds=1)).date() != start.date():
            clock = f"{end:%Y-%m-%d %H:%M}"
        return f"{start:%Y-%m-%d %H:%M}-{clock}"


class RangePart(Part):
    """Offsets of one partition."""

    partition: int
    from_offset: int
    until_offset: int


class ErrorDetails(Part):
    """An error has stopped a command, or one batch."""

    kind: str
    what: str
    next_step: str
    may_retry: bool
    problems: Sequence[str] = ()
    """Of feed files, one line each."""


class ErrorDocument(Document):
    """Instead of the command's own document, when it could not be made."""

    format: Literal["tallystick-error-1"] = "tallystick-error-1"
    error: ErrorDetails
    exit_code: int


def window_part(window: Window | None) -> WindowPart | None:
    """The window; None for a run without one."""
    if window is None:
        return None
    return WindowPart(from_instant=window.from_instant, until_instant=window.until_instant)


def range_part(offsets: OffsetRange) -> RangePart:
    """Offsets of one partition."""
    return RangePart(
        partition=offsets.partition.partition,
        from_offset=offsets.from_offset,
        until_offset=offsets.until_offset,
    )


def holes_part(holes: Mapping[HoleClass, int]) -> dict[str, int]:
    """Holes by class, every class named."""
    return {kind.value: holes.get(kind, 0) for kind in HoleClass}
