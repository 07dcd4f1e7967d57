"""Drawings as small as a word: a bar for each of a few values, in a table's cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tallystick.report.planes import TALL, box
from tallystick.report.wording import grouped

_WIDE: Final = 24
"""Columns; where there are fewer values, those on the left are empty."""


@dataclass(frozen=True, slots=True)
class Spark:
    """A bar for each value, none for one that nobody knows."""

    wide: int
    tall: int
    path: str
    about: str
    """The same in words."""


def spark_of(values: Sequence[int | None], shown: Callable[[int], str] = grouped) -> Spark | None:
    """The values, the newest last; None where none is known.

    >>> spark_of([3, None, 12]).about
    '12, the newest of 3; from 3 to 12'
    """
    known = [each for each in values if each is not None]
    if not known:
        return None
    newest = "unknown" if values[-1] is None else shown(values[-1])
    spread = f"; from {shown(min(known))} to {shown(max(known))}" if len(known) > 1 else ""
    top, left = max(*known, 1), max(0, _WIDE - len(values))
    heights = [None if each is None else round(TALL * each / top) for each in values]
    return Spark(
        wide=left + len(values),
        tall=TALL,
        path="".join(
            box(left + place + 0.1, TALL - each, 0.8, each)
            for place, each in enumerate(heights)
            if each is not None
        ),
        about=f"{newest}, the newest of {len(values)}{spread}",
    )
