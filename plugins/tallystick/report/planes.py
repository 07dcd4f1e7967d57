"""What all drawings are made of: shapes on a plane, and labels beside it.

A plane has whole coordinates and is stretched to the width that there is; labels are not, so that
they can be read on a phone. Colours are names of the style: they follow the theme without a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

TALL: Final = 1000
"""The height of a plane on which values are drawn; a value's own height is a share of it."""
_MOST_LABELS: Final = 4
_SECONDS_SPAN: Final = timedelta(minutes=10)
_SHORT_SPAN: Final = timedelta(days=4)
_SIZES: Final = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"))


@dataclass(frozen=True, slots=True)
class Shape:
    """One path in one colour: an area, or a line."""

    colour: str
    path: str
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A word beside the plane."""

    text: str
    place: float
    """In percent, from the left or from the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One drawing."""

    wide: int
    tall: int
    shapes: tuple[Shape, ...]
    values: tuple[Label, ...]
    """On the left, from the top."""
    times: tuple[Label, ...]
    """Below, from the left."""
    told: tuple[str, ...]
    """Of each column, all of the same width, or of each look."""
    legend: tuple[tuple[str, str], ...]
    """Colour and name."""
    places: tuple[int, ...] = ()
    """Of each look, from the left; none where columns are told."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high`, with a label at each of them that is a multiple of `step`."""

    low: int
    high: int
    step: int

    def height(self, value: int) -> int:
        """How far below the plane's upper edge the value lies."""
        return round(TALL * (self.high - value) / (self.high - self.low))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The lowest one first."""
        values = range(self.low, self.high + 1, self.step)
        return tuple(Label(short(each), 100 * self.height(each) / TALL) for each in values)


def scale_of(values: Iterable[int | None], *, from_zero: bool) -> Scale:
    """A scale with round labels that holds all values.

    >>> scale_of([3, 42], from_zero=True)
    Scale(low=0, high=60, step=20)
    >>> scale_of([], from_zero=False)
    Scale(low=0, high=1, step=1)
    """
    known = [each for each in values if each is not None]
    low = 0 if from_zero else min(known, default=0)
    high = max(known, default=0)
    step = _round_step(-(-(high - low) // _MOST_LABELS))
    low = low // step * step
    return Scale(low, max(-(-high // step) * step, low + step), step)


def _round_step(least: int) -> int:
    """The smallest of 1, 2, 5, 10, 20 ... that is no less."""
    size = 10 ** (len(str(max(1, least))) - 1)
    return next(each * size for each in (1, 2, 5, 10) if each * size >= least)


def short(value: float) -> str:
    """The number in few letters.

    >>> short(1_500_000), short(20), short(0)
    ('1.5 M', '20', '0')
    """
    size, name = next(((size, name) for size, name in _SIZES if abs(value) >= size), (1, ""))
    return f"{value / size:.6g}{name}"


def span_labels(first: datetime, last: datetime) -> tuple[Label, ...]:
    """Some instants of a plane on which time runs evenly, both ends included."""
    parts = _MOST_LABELS if last > first else 1
    return time_labels([first + (last - first) * each / parts for each in range(parts + 1)])


def time_labels(instants: Sequence[datetime]) -> tuple[Label, ...]:
    """Some of the instants, which stand at equal distances from the left edge to the right one."""
    last = len(instants) - 1
    if last < 1:
        return tuple(Label(_instant(each, timedelta(0)), 50.0) for each in instants)
    chosen = sorted({round(last * each / _MOST_LABELS) for each in range(_MOST_LABELS + 1)})
    span = instants[-1] - instants[0]
    return tuple(Label(_instant(instants[each], span), 100 * each / last) for each in chosen)


def _instant(instant: datetime, span: timedelta) -> str:
    form = "%m-%d %H:%M" if span < _SHORT_SPAN else "%Y-%m-%d"
    if timedelta(0) < span < _SECONDS_SPAN:
        form = "%H:%M:%S"
    return instant.astimezone(UTC).strftime(form)


def box(x: float, y: float, wide: float, tall: float) -> str:
    """A part of a path: a rectangle; empty without a height."""
    return f"M{x:g} {y:g}h{wide:g}v{tall:g}h{-wide:g}z" if tall > 0 else ""
