"""Why not everything up to an instant is proven, in a few sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tallystick.domain.report.completeness import Completeness
from tallystick.domain.rules.findings import Finding

_MOST_NAMED: Final = 5


def held_back_by(
    topic: str,
    proven: Completeness,
    instant: datetime,
    numbers: Mapping[tuple[object, ...], int],
) -> tuple[str, ...]:
    """Why not everything up to the instant is proven: the worst findings first, by their verdict.

    Then comes what has none, the furthest behind first. `numbers` are those of findings, by key.
    """
    wide = proven.blocked_by
    if not proven.partitions and not wide:
        return ("Nothing was planned yet.",)
    behind = sorted(
        proven.holding_back(instant),
        key=lambda each: -each.worst.verdict.severity if each.worst else 0,
    )
    said = []
    if proven.began_at is not None and instant < proven.began_at:
        began = proven.began_at.isoformat(timespec="seconds")
        said.append(
            f"{topic}: what was readable before the feed's first look, {began}, is not covered."
        )
    for each in behind[:_MOST_NAMED]:
        if each.worst:
            said.append(_in_short(topic, each.partition, each.worst, numbers))
        elif each.doubt:
            said.append(f"{topic}-{each.partition}: {each.doubt}")
        elif each.short_at:
            said.append(
                f"{topic}-{each.partition}: not all that was there at"
                f" {each.short_at.isoformat(timespec='seconds')} is landed."
            )
        else:
            said.append(f"{topic}-{each.partition}: nobody has looked at it since.")
    left = len(behind) - len(said)
    if left:
        said.append(f"More partitions: {left}.")
    if wide:
        # Of the whole feed, so it comes before all that is no worse.
        worse = sum(
            each.worst is not None and each.worst.verdict.severity > wide.verdict.severity
            for each in behind[:_MOST_NAMED]
        )
        said.insert(worse, _in_short(topic, None, wide, numbers))
    return tuple(said)


def _in_short(
    topic: str, partition: int | None, found: Finding, numbers: Mapping[tuple[object, ...], int]
) -> str:
    """The finding without its cause, which `explain` tells; its number where it is on record."""
    place = topic if partition is None else f"{topic}-{partition}"
    offsets = "" if found.from_offset is None else f" [{found.from_offset}, {found.until_offset})"
    number = numbers.get(found.key)
    more = "" if number is None else f", finding {number}: tallystick explain {number}"
    return f"{place}{offsets}: {found.code.value} {found.verdict.value}{more or '.'}"
