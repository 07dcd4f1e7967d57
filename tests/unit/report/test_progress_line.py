"""One line says how far a piece of work has come, as much of it as there is room for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from tallystick.ports.progress import Progress
from tallystick.report import progress_line
from tallystick.report.progress_line import ProgressLine, plain_lines

READ = Progress("land", 0, 2_000_000, "offsets", is_estimate=True, note="0 of 8 files")
LANDING = Progress("land", 750_000, 2_000_000, "offsets", is_estimate=True, note="3 of 8 files")


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        return self.seconds


def line_of(told: Sequence[tuple[float, Progress]], after: float) -> ProgressLine:
    """Each is told so many seconds after the one before; the line is asked for after the last."""
    clock = Clock()
    line = ProgressLine("landing orders", clock.now)
    for seconds, progress in told:
        clock.seconds += seconds
        line.hear(progress)
    clock.seconds += after
    return line


@pytest.mark.parametrize(
    ("told", "after", "said"),
    [
        pytest.param([], 3, "3 s", id="nothing was heard"),
        pytest.param([(9, Progress("plan"))], 3, "plan, 3 s", id="a phase alone"),
        pytest.param(
            [(0, Progress("read", total=8, unit="files"))], 0, "read, 0 of 8 files, 0 s", id="begun"
        ),
        pytest.param(
            [(0, READ), (14, LANDING)],
            0,
            "land, ~750 000 of 2 000 000 offsets, 53 571/s, ~23 s left, 14 s,"
            " 3 of 8 files",
            id="a landing",
        ),
        pytest.param(
            [(0, READ)], 2, "land, 0 of 2 000 000 offsets, 2 s, 0 of 8 files", id="no task ended"
        ),
        pytest.param(
            [(0, Progress("scrub", 0, 3_200_000_000, "bytes")),
             (4000, Progress("scrub", 1_200_000_000, 3_200_000_000, "bytes"))],
            0,
            "scrub, 1.2 GB of 3.2 GB, 300.0 kB/s, ~1 h 51 min left, 1 h 6 min",
            id="bytes",
        ),
        pytest.param(
            [(0, Progress("scrub", 1_300, 1_200, "bytes"))], 2, "scrub, 1.3 kB, 650 B/s, 2 s",
            id="more than was known",
        ),
        pytest.param(
            [(0, Progress("search", 5, unit="reads"))], 60, "search, 5 reads, 1 min 0 s",
            id="slower than one a second",
        ),
        pytest.param(
            [(0, Progress("land", part="batch 2 of 3"))], 1, "batch 2 of 3, land, 1 s", id="a part"
        ),
        pytest.param(
            [(0, Progress("land", 4, 4, "files"))], 2, "land, 4 of 4 files, 2/s, 2 s", id="done"
        ),
    ],
)  # fmt: skip
def test_the_line_says_what_is_known(
    told: Sequence[tuple[float, Progress]], after: float, said: str
) -> None:
    assert line_of(told, after).text() == f"landing orders: {said}"


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ([Progress("plan"), Progress("plan")], "20 s"),
        ([Progress("plan"), Progress("land")], "10 s"),
        ([Progress("land", part="batch 1 of 2"), Progress("land", part="batch 2 of 2")], "10 s"),
        ([READ, LANDING], "20 s"),
    ],
)
def test_time_counts_from_the_first_word_of_a_phase(told: Sequence[Progress], seconds: str) -> None:
    assert f" {seconds}" in line_of([(10, each) for each in told], 10).text()


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (
            100,
            "landing orders: land, ~750 000 of 2 000 000 offsets, 53 571/s, ~23 s left, 14 s,"
            " 3 of 8 files",
        ),
        (80, "landing orders: land, ~750 000 of 2 000 000 offsets, 53 571/s, ~23 s left, 14 s"),
        (60, "landing orders: land, ~750 000 of 2 000 000 offsets"),
        (40, "landing orders: land"),
        (12, "landing orde"),
        (0, ""),
        (-3, ""),
    ],
)
def test_a_narrow_terminal_gets_what_matters_most(width: int, said: str) -> None:
    assert line_of([(0, READ), (14, LANDING)], 0).text(width) == said


@pytest.mark.parametrize("width", range(120))
def test_no_line_is_wider_than_there_is_room(width: int) -> None:
    assert len(line_of([(0, READ), (14, LANDING)], 0).text(width)) <= width


STORY = "tallystick.report.progress_line"


class Lines(logging.Handler):
    """Keeps what is said, and wakes who waits for so many lines."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self.said: list[str] = []
        self.is_enough = threading.Event()
        self._wanted = wanted

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        if len(self.said) >= self._wanted:
            self.is_enough.set()


@pytest.fixture
def lines() -> Lines:
    return Lines(wanted=2)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line comes at once."""
    monkeypatch.setattr(progress_line, "FIRST_SECONDS", 0.01)


def test_work_that_takes_long_says_now_and_then_how_far_it_is(lines: Lines, soon: None) -> None:
    logging.getLogger(STORY).addHandler(lines)
    try:
        with plain_lines("feed orders") as told:
            told(Progress("land", 3, 8, "files"))
            assert lines.is_enough.wait(60)
    finally:
        logging.getLogger(STORY).removeHandler(lines)

    assert lines.said[-1].startswith("feed orders: land, 3 of 8 files, ")
    assert not [each for each in threading.enumerate() if each.name == "progress"]


def test_work_that_is_soon_over_says_nothing(lines: Lines) -> None:
    logging.getLogger(STORY).addHandler(lines)
    try:
        with plain_lines("feed orders") as told:
            told(Progress("land"))
    finally:
        logging.getLogger(STORY).removeHandler(lines)

    assert lines.said == []


def test_whoever_asked_for_errors_alone_is_told_too(
    lines: Lines, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("tallystick"), "level", logging.ERROR)
    logging.getLogger("tallystick").addHandler(lines)
    try:
        with plain_lines("feed orders"):
            assert lines.is_enough.wait(60)
    finally:
        logging.getLogger("tallystick").removeHandler(lines)


def test_an_error_ends_the_lines_and_passes() -> None:
    with pytest.raises(KeyboardInterrupt), plain_lines("feed orders"):
        raise KeyboardInterrupt

    assert not [each for each in threading.enumerate() if each.name == "progress"]
