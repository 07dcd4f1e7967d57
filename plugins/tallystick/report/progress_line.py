"""The one line that says how far a piece of work has come: as wide as there is room, or in a log.

A log has one every few seconds, and none of what is over sooner.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from tallystick.ports.progress import Progress, Told
from tallystick.report.wording import grouped

log = logging.getLogger(__name__)
# Shown wherever the package's log is shown at all: who asked for errors alone waits, too.
log.setLevel(logging.INFO)

FIRST_SECONDS: Final = 5.0
# A landing of hours needs no thousand lines: each comes after a tenth of what has passed.
_LATER: Final = 10

BYTES: Final = "bytes"
_UNITS: Final = ("kB", "MB", "GB", "TB")


class ProgressLine:
    """Keeps what was heard last, and since when its phase goes on; any thread may call `hear`."""

    def __init__(self, title: str, now: Callable[[], float]) -> None:
        self._title, self._now = title, now
        self._heard = (Progress(""), now())

    def hear(self, progress: Progress) -> None:
        """Keep what is told; the time of a phase begins with its first word."""
        before, since = self._heard
        same = replace(before, done=progress.done, note=progress.note)
        self._heard = (progress, since if progress == same else self._now())

    def text(self, width: int | None = None) -> str:
        """The line without what does not fit: what matters most stands first."""
        progress, since = self._heard
        line = f"{self._title}: "
        for index, each in enumerate(_pieces(progress, self._now() - since)):
            longer = f"{line}{', ' if index else ''}{each}"
            if width is not None and index and len(longer) > width:
                break
            line = longer
        return line if width is None else line[: max(width, 0)]


def _pieces(progress: Progress, seconds: float) -> Iterator[str]:
    """Returns what is said, the most important first."""
    place = ", ".join(each for each in (progress.part, progress.phase) if each)
    counted = _counted(progress)
    yield from (each for each in (place, counted) if each)
    if progress.done and seconds >= 1:
        a_second = int(progress.done / seconds)
        if a_second:
            yield f"{_amount(a_second, progress.unit)}/s"
        if progress.total and progress.done < progress.total:
            left = seconds * (progress.total - progress.done) / progress.done
            yield f"~{_duration(left)} left"
    yield _duration(seconds)
    if progress.note:
        yield progress.note


def _counted(progress: Progress) -> str:
    """`~750 000 of 2 000 000 offsets`, as far as it is known."""
    if not progress.unit:
        return ""
    unit = "" if progress.unit == BYTES else f" {progress.unit}"
    about = "~" if progress.is_estimate and progress.done else ""
    done = f"{about}{_amount(progress.done, progress.unit)}"
    if not progress.total or progress.done > progress.total:
        return f"{done}{unit}"
    total = _amount(progress.total, progress.unit)
    return f"{done} of {total}{unit}"


def _amount(count: int, unit: str) -> str:
    return _size(count) if unit == BYTES else grouped(count)


def _size(count: float) -> str:
    """Bytes as people say them.

    >>> _size(999), _size(1_234_000), _size(5e15)
    ('999 B', '1.2 MB', '5000.0 TB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in _UNITS:
        count /= 1000
        if count < 999.95 or unit == _UNITS[-1]:
            break
    return f"{count:.1f} {unit}"


def _duration(seconds: float) -> str:
    """Whole seconds, with minutes and hours before them where there are any.

    >>> _duration(7.9), _duration(125), _duration(7325)
    ('7 s', '2 min 5 s', '2 h 2 min')
    """
    minutes, rest = divmod(int(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def plain_lines(title: str) -> Iterator[Told]:
    """Log how far the block has come, now and then, by what is told to the result."""
    line, ended, begun = ProgressLine(title, time.monotonic), threading.Event(), time.monotonic()

    def say() -> None:
        while not ended.wait(max(FIRST_SECONDS, (time.monotonic() - begun) / _LATER)):
            log.info("%s", line.text())

    thread = threading.Thread(target=say, name="progress", daemon=True)
    thread.start()
    try:
        yield line.hear
    finally:
        ended.set()
        thread.join()
