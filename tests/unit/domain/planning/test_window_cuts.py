"""Windows found by a time index, against the logs themselves. Numbers are the module's invariants.

The index is asked as the broker's: the first offset whose timestamp is at or after an instant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.due import DueOffsets, PlanLimits, plan_run
from tallystick.domain.planning.window_cuts import (
    FirstOffsets,
    Question,
    WindowPiece,
    window_pieces,
)
from tallystick.domain.window import Window
from tests.support.builders import a_range, an_account, by_partition, planned

HOUR = timedelta(hours=1)
NINE = datetime(2026, 11, 1, 9, tzinfo=UTC)
TEN = NINE + HOUR
RUN = Window(NINE, TEN)
Times = Sequence[datetime | None]


@dataclass(frozen=True)
class Every:
    """Windows of one length since 1970."""

    length: timedelta = HOUR

    def at_or_before(self, instant: datetime) -> datetime:
        start = datetime(1970, 1, 1, tzinfo=UTC)
        return start + (instant - start) // self.length * self.length

    def after(self, instant: datetime) -> datetime:
        return self.at_or_before(instant) + self.length


@dataclass
class Logs:
    """Partitions of which these records are due, from the offset on."""

    times: Mapping[int, Times]
    due_from: Mapping[int, int] = field(default_factory=dict)
    asked: list[Question] = field(default_factory=list)

    def due(self, window: Window = RUN) -> dict[int, list[OffsetRange]]:
        """What is not landed and lies before the first record at or after the window's end."""
        found = {}
        for partition, times in self.times.items():
            start = self.due_from.get(partition, 0)
            until = self.first_at(partition, window.until_instant)
            until = len(times) if until is None else until
            if start < until:
                found[partition] = [a_range(start, until, partition=partition)]
        return found

    def first_at(self, partition: int, instant: datetime) -> int | None:
        times = self.times[partition]
        return next((n for n, at in enumerate(times) if at and at >= instant), None)

    def answer(self, question: Question) -> FirstOffsets:
        self.asked.append(question)
        assert question.partitions
        return {each: self.first_at(each, question.instant) for each in question.partitions}

    def pieces(
        self,
        window: Window = RUN,
        *,
        every: timedelta = HOUR,
        due: Mapping[int, Sequence[OffsetRange]] | None = None,
        **most: int,
    ) -> tuple[WindowPiece, ...]:
        wanted = self.due(window) if due is None else due
        search = window_pieces(wanted, window, Every(every), **most)
        try:
            question = next(search)
            while True:
                question = search.send(self.answer(question))
        except StopIteration as found:
            pieces: tuple[WindowPiece, ...] = found.value
            return pieces


def windows_of(
    due: Mapping[int, Sequence[OffsetRange]], pieces: Sequence[WindowPiece]
) -> dict[tuple[int, int], list[datetime]]:
    """The starts of the windows in which each due (partition, offset) is planned."""
    found: dict[tuple[int, int], list[datetime]] = {
        (partition, offset): []
        for partition, ranges in due.items()
        for each in ranges
        for offset in range(each.from_offset, each.until_offset)
    }
    ranges = tuple(
        planned(each.from_offset, each.until_offset, partition=partition)
        for partition, mine in due.items()
        for each in mine
    )
    plan = plan_run(
        by_partition(*(an_account(partition=each) for each in due)),
        DueOffsets(ranges, len(found)),
        limits=PlanLimits(10**9, 10**9, 10**9),
        pieces=pieces,
    )
    for batch in plan.batches:
        assert batch.window
        for each in batch.ranges:
            partition = each.offsets.partition.partition
            for offset in range(each.offsets.from_offset, each.offsets.until_offset):
                found[partition, offset].append(batch.window.from_instant)
    return found


def minutes(*numbers: int | None) -> list[datetime | None]:
    """Instants so many minutes after nine; None for a record without a time."""
    return [None if each is None else NINE + timedelta(minutes=each) for each in numbers]


some_times = st.none() | st.integers(-700, 100) | st.integers(-60 * 24 * 365 * 50, 60 * 24 * 365)
drawn_logs = st.dictionaries(
    st.integers(0, 3), st.tuples(st.lists(some_times, max_size=12), st.integers(0, 6)), max_size=4
).map(
    lambda drawn: Logs(
        {partition: minutes(*times) for partition, (times, _) in drawn.items()},
        {partition: start for partition, (_, start) in drawn.items()},
    )
)


@given(drawn_logs)
def test_every_due_offset_is_in_exactly_one_window(logs: Logs) -> None:
    # Invariants 1 and 2 of `window_cuts`.
    due = logs.due()

    windows = windows_of(due, logs.pieces())

    assert all(len(each) == 1 for each in windows.values())


@given(drawn_logs, st.integers(1, 4), st.integers(30, 60))
def test_what_is_left_over_is_above_all_that_is_planned_of_its_partition(
    logs: Logs, most_windows: int, most_questions: int
) -> None:
    # Invariants 2 and 4 of `window_cuts`.
    due = logs.due()

    pieces = logs.pieces(most_windows=most_windows, most_questions=most_questions)

    windows = windows_of(due, pieces)
    for partition, (each,) in due.items():
        counts = [len(windows[partition, n]) for n in range(each.from_offset, each.until_offset)]
        assert counts == sorted(counts, reverse=True)
        assert set(counts) <= {0, 1}


@given(drawn_logs, st.integers(1, 3))
def test_no_partition_waits_for_the_past_of_another(logs: Logs, most_windows: int) -> None:
    # Invariant 4 of `window_cuts`.
    due = logs.due()

    windows = windows_of(due, logs.pieces(most_windows=most_windows))

    assert all(windows[partition, ranges[0].from_offset] for partition, ranges in due.items())


@given(drawn_logs)
def test_windows_are_apart_in_time_and_come_oldest_first(logs: Logs) -> None:
    # Invariants 1 and 4 of `window_cuts`.
    pieces = logs.pieces()

    starts = [each.window.from_instant for each in pieces]
    assert starts == sorted(set(starts))
    for earlier, later in pairwise(pieces):
        assert earlier.window.until_instant <= later.window.from_instant
        for partition in earlier.until.keys() & later.until.keys():
            assert earlier.until[partition] < later.until[partition]
    assert all(each.window.until_instant <= TEN for each in pieces)


@given(drawn_logs)
def test_an_offset_is_in_the_window_of_the_latest_time_that_its_log_had_reached(logs: Logs) -> None:
    # Invariant 3 of `window_cuts`.
    windows = windows_of(logs.due(), logs.pieces())

    for (partition, offset), (start,) in windows.items():
        before = [at for at in logs.times[partition][: offset + 1] if at]
        if before:
            reached = max(before)
            assert Every().at_or_before(reached) == start


@given(st.lists(st.integers(-100_000, 59), min_size=1, max_size=20).map(sorted), st.integers(0, 19))
def test_where_times_are_in_order_every_record_is_in_its_own_window(
    times: list[int], landed: int
) -> None:
    # Invariant 3 of `window_cuts`.
    assume(landed < len(times))
    logs = Logs({0: minutes(*times)}, {0: landed})

    windows = windows_of(logs.due(), logs.pieces())

    for (_, offset), (start,) in windows.items():
        at = logs.times[0][offset]
        assert at
        assert start <= at < start + HOUR


def starts(logs: Logs, **most: int) -> list[int | None]:
    """How many hours before nine the window of each due offset of partition 0 begins."""
    windows = windows_of(logs.due(), logs.pieces(**most))
    return [
        round((each[0] - NINE) / HOUR) if each else None
        for (partition, _), each in windows.items()
        if partition == 0
    ]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        pytest.param((-61, -59, 0, 59), [-2, -1, 0, 0], id="in order"),
        pytest.param((-600, -30, 5), [-10, -1, 0], id="a pause between"),
        pytest.param((-30, 5, -31, 6), [-1, 0, 0, 0], id="a late record goes with its neighbours"),
        pytest.param((-30, 5, 60, 6), [-1, 0], id="what follows the window's end waits"),
        pytest.param((-130, None, -10), [-3, -3, -1], id="without a time, as the one before"),
        pytest.param((None, None, -130, -10), [-3, -3, -3, -1], id="the first has none"),
        pytest.param((None, None, 5), [0, 0, 0], id="only one of the run's own has a time"),
        pytest.param((None, None), [0, 0], id="none has a time"),
        pytest.param((-60, 0), [-1, 0], id="a window begins with its first instant"),
    ],
)
def test_windows_of_a_log(times: tuple[int | None, ...], expected: list[int]) -> None:
    assert starts(Logs({0: minutes(*times)})) == expected


def test_a_log_whose_clock_stood_at_zero_begins_in_1970() -> None:
    (first, second) = Logs({0: [datetime(1970, 1, 1, tzinfo=UTC), NINE]}).pieces()

    assert first.window == Window(
        datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 1, tzinfo=UTC)
    )
    assert second.window == RUN


def test_one_window_costs_one_question_and_nothing_due_costs_none() -> None:
    logs = Logs({0: minutes(1, 2), 1: minutes(3), 2: minutes(-5)}, {2: 1})

    (piece,) = logs.pieces()

    assert (piece.window, piece.until) == (RUN, {0: 2, 1: 1})
    assert logs.asked == [Question(NINE, (0, 1))]
    assert Logs({0: []}).pieces() == ()


def test_catching_up_a_day_costs_about_a_question_a_window() -> None:
    logs = Logs({0: minutes(*range(-24 * 60 + 30, 30, 60))})

    assert len(logs.pieces()) == 24
    assert len(logs.asked) <= 24 + 8


def test_empty_years_are_not_walked_through() -> None:
    logs = Logs({0: [datetime(1999, 12, 31, 23, 59, tzinfo=UTC), *minutes(-1, 1)]})

    assert len(logs.pieces()) == 3
    assert len(logs.asked) < 50


def test_only_partitions_with_something_due_on_both_sides_are_asked_about_a_border() -> None:
    logs = Logs({0: minutes(*range(-600, 0, 60)), 1: minutes(1)})

    logs.pieces()

    assert [each.partitions for each in logs.asked[1:]] == [(0,)] * (len(logs.asked) - 1)


def test_the_oldest_windows_come_first_and_the_rest_is_the_next_runs() -> None:
    times = minutes(*range(-600, 60, 60))
    logs = Logs({0: times})

    assert starts(logs, most_windows=3) == [-10, -9, -8, *[None] * 8]

    after = Logs({0: times}, {0: 3})
    assert starts(after, most_windows=3)[:4] == [-7, -6, -5, None]


def test_beyond_the_limit_a_partition_without_a_window_gets_its_oldest() -> None:
    logs = Logs({0: minutes(*range(-600, 60, 60)), 1: minutes(-90, -30, 5)})

    pieces = logs.pieces(most_windows=2)

    assert [(each.window.from_instant, dict(each.until)) for each in pieces] == [
        (NINE - 10 * HOUR, {0: 1}),
        (NINE - 9 * HOUR, {0: 2}),
        (NINE - 2 * HOUR, {1: 1}),
    ]


def test_windows_of_what_is_landed_between_two_gaps_are_not_asked_for() -> None:
    logs = Logs({0: minutes(*range(-6000, 60, 60))})

    pieces = logs.pieces(due={0: [a_range(0, 1), a_range(100, 101)]})

    assert [each.window.from_instant for each in pieces] == [NINE - 100 * HOUR, NINE]
    assert len(logs.asked) < 25


def test_a_window_given_by_hand_begins_and_ends_one_and_is_cut_by_the_schedule_in_between() -> None:
    by_hand = Window(NINE - timedelta(minutes=40), NINE + timedelta(minutes=30))
    logs = Logs({0: minutes(-70, -50, -30, 10)})

    windows = [each.window for each in logs.pieces(by_hand)]

    at = [NINE + timedelta(minutes=each) for each in (-120, -60, -40, 0, 30)]
    assert windows == [Window(*each) for each in pairwise(at)]


def test_a_window_shorter_than_the_schedules_keeps_its_name() -> None:
    logs = Logs({0: minutes(-5, 5)})

    windows = [each.window for each in logs.pieces(every=timedelta(days=1))]

    assert windows == [Window(NINE - 9 * HOUR, NINE), RUN]


@given(st.lists(st.integers(0, 20) | st.none(), min_size=40, max_size=40))
@example([None] * 40)
def test_answers_out_of_order_move_no_offset_twice(answers: list[int | None]) -> None:
    # Invariants 1 and 2 of `window_cuts`.
    due = {0: [a_range(4, 17)], 1: [a_range(0, 3), a_range(9, 12, partition=1)]}
    due[1] = [a_range(0, 3, partition=1), a_range(9, 12, partition=1)]
    said = iter(answers * 20)
    search = window_pieces(due, RUN, Every(), most_questions=500)
    try:
        question = next(search)
        while True:
            question = search.send({each: next(said) for each in question.partitions})
    except StopIteration as found:
        windows = windows_of(due, found.value)
    assert all(len(each) <= 1 for each in windows.values())
