"""Which due offsets belong to which window, asked of the broker's time index.

For an instant the index knows one thing: the first offset of a log whose timestamp is at or after
it. So an offset belongs to the window of the latest time that its log had reached there.

1. In each partition a later window's offsets are above an earlier window's. None is in two.
2. Every due offset is in a window, or left to a later run with all above it in its partition.
3. Where times are in order, a record is in its own window. A late one, or one without a time, goes
   with the offsets around it.
4. The oldest windows come first. One run has so many; beyond them a partition that has none yet
   still gets its oldest, so that no partition waits for another one's past.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.window import Window

MOST_WINDOWS: Final = 100
# Each is one request to every leader. A window of many years' past is found with some fifty.
MOST_QUESTIONS: Final = 400

# No timestamp of Kafka's is older; a record without one has -1.
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)


class Borders(Protocol):
    """The instants at which windows begin and end."""

    def at_or_before(self, instant: datetime) -> datetime:
        """The newest border at or before the instant, in UTC."""
        ...

    def after(self, instant: datetime) -> datetime:
        """The oldest border after the instant, in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What are the first offsets of these partitions with a timestamp at or after the instant?"""

    instant: datetime
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowPiece:
    """The due offsets of one window: those below `until`, and in no earlier piece."""

    window: Window
    until: Mapping[int, int]
    """End (excluded) by partition; a partition that is not in it has no due offset here."""


FirstOffsets = Mapping[int, int | None]
"""By partition; None where no record is as late."""
Search = Generator[Question, FirstOffsets, tuple[WindowPiece, ...]]


def window_pieces(
    due: Mapping[int, Sequence[OffsetRange]],
    window: Window,
    schedule: Borders,
    *,
    most_windows: int = MOST_WINDOWS,
    most_questions: int = MOST_QUESTIONS,
) -> Search:
    """The windows of what is due before the end of the run's `window`, oldest first.

    A generator: it yields questions, is sent the answers, and returns the pieces. `due` are the
    ranges of each partition, ascending, none empty. Windows are the schedule's intervals; the run's
    window begins and ends one, too, so that one that was given by hand keeps its name.
    """
    start = window.from_instant
    borders = _WithStart(schedule, start)
    whole = _Span(
        borders.at_or_before(min(_EPOCH, start - _TICK)),
        window.until_instant,
        {partition: ranges[0].from_offset for partition, ranges in due.items()},
        {partition: ranges[-1].until_offset for partition, ranges in due.items()},
    )
    if not due:
        return ()
    older, own = yield from _split(whole, start)
    older = _of_what_is_due(older, due)
    if older.until:
        yield from _set_timeless_aside(older, own, due)
        older.reach = start - borders.at_or_before(start - _TICK)
    waiting = [own, older]
    pieces: list[WindowPiece] = []
    has_one: set[int] = set()
    questions = 2
    while waiting:
        span = _of_what_is_due(waiting.pop(), due, has_one if len(pieces) >= most_windows else ())
        if not span.until:
            continue
        border = _border_in(span, borders)
        if border is None:
            pieces.append(WindowPiece(Window(span.begin, span.end), span.until))
            has_one |= span.until.keys()
        elif questions == most_questions:
            break
        else:
            questions += 1
            earlier, later = yield from _split(span, border)
            waiting += [later, earlier]
    return tuple(pieces)


def _set_timeless_aside(
    older: _Span, own: _Span, due: Mapping[int, Sequence[OffsetRange]]
) -> Generator[Question, FirstOffsets, None]:
    """Take what precedes a log's first timestamp out of the search: it goes with what follows."""
    first = yield Question(_EPOCH, tuple(older.until))
    for partition, until in tuple(older.until.items()):
        at = _within(first[partition], older.begins[partition], until)
        if _is_due(due[partition], at, until):
            older.begins[partition] = at
        else:
            own.begins[partition] = older.begins[partition]
            del older.begins[partition], older.until[partition]


@dataclass(slots=True)
class _Span:
    """Time [begin, end), and the offsets of each partition that lie there."""

    begin: datetime
    end: datetime
    begins: dict[int, int]
    """First offset (included) by partition."""
    until: dict[int, int]
    """End (excluded) by partition; the same partitions."""
    reach: timedelta | None = None
    """Where nobody knows how far back the oldest record lies: how far before `end` to ask next."""


def _split(span: _Span, border: datetime) -> Generator[Question, FirstOffsets, tuple[_Span, _Span]]:
    """The span before and after the border.

    Whatever the broker says, the border's offsets are within the span's: a log that was cut or has
    expired in the meantime, or an answer out of order, moves no offset into another span.
    """
    first = yield Question(border, tuple(span.until))
    middle = {
        partition: _within(first[partition], span.begins[partition], until)
        for partition, until in span.until.items()
    }
    reach = span.reach and min(span.reach * 2, span.end - span.begin)
    return (
        _Span(span.begin, border, dict(span.begins), middle, reach),
        _Span(border, span.end, dict(middle), dict(span.until)),
    )


def _within(offset: int | None, lowest: int, highest: int) -> int:
    return highest if offset is None else min(max(offset, lowest), highest)


def _of_what_is_due(
    span: _Span, due: Mapping[int, Sequence[OffsetRange]], but: Sequence[int] | set[int] = ()
) -> _Span:
    """The span with those partitions only that have due offsets in it, and are not excepted."""
    kept = {
        partition: until
        for partition, until in span.until.items()
        if partition not in but and _is_due(due[partition], span.begins[partition], until)
    }
    begins = {partition: span.begins[partition] for partition in kept}
    return _Span(span.begin, span.end, begins, kept, span.reach)


def _is_due(ranges: Sequence[OffsetRange], from_offset: int, until_offset: int) -> bool:
    if from_offset >= until_offset:
        return False
    # A partition has one range as a rule, and this is asked of thousands for each window.
    for each in ranges:
        if each.from_offset < until_offset and from_offset < each.until_offset:
            return True
    return False


def _border_in(span: _Span, borders: Borders) -> datetime | None:
    """A border that parts the span, in its middle if there is one; None for a single window."""
    half = (span.end - span.begin) / 2
    aim = span.end - (min(half, span.reach) if span.reach else half)
    before, after = borders.at_or_before(aim), borders.after(aim)
    if span.begin < before < span.end:
        return before
    return after if after < span.end else None


@dataclass(frozen=True, slots=True)
class _WithStart:
    """The schedule's borders, and the start of the run's window."""

    schedule: Borders
    start: datetime

    def at_or_before(self, instant: datetime) -> datetime:
        found = self.schedule.at_or_before(instant)
        return max(found, self.start) if self.start <= instant else found

    def after(self, instant: datetime) -> datetime:
        found = self.schedule.after(instant)
        return min(found, self.start) if self.start > instant else found
