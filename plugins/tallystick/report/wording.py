"""Numbers, instants and places in the words of every report and answer for people."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick.domain.report.finding_part import FindingPart


def instant_text(instant: datetime | None) -> str:
    """The instant to the second, in UTC; a dash where there is none."""
    if instant is None:
        return "-"
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def grouped(value: int | None) -> str:
    """The number in groups of three; a dash where there is none."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


def duration_text(seconds: float | None) -> str:
    """About how long; a dash where nobody knows.

    >>> duration_text(90061.0), duration_text(-5.0), duration_text(None)
    ('1 d 1 h', 'overdue', '-')
    """
    if seconds is None:
        return "-"
    if seconds <= 0:
        return "overdue"
    minutes = int(seconds) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min {int(seconds) % 60} s"


def interval_text(from_offset: int | None, until_offset: int | None) -> str:
    """The interval, half-open; empty without one."""
    if from_offset is None or until_offset is None:
        return ""
    return f"[{grouped(from_offset)}, {grouped(until_offset)})"


def place_text(finding: FindingPart) -> str:
    """Topic, partition and offsets, as far as the finding has them."""
    topic, partition = finding.topic, finding.partition
    place = topic if partition is None else f"{topic}-{partition}"
    return f"{place} {interval_text(finding.from_offset, finding.until_offset)}".rstrip()
