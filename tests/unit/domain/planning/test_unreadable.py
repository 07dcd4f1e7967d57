"""Single offsets that can't be read are found, within bounds, and only while others are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.planning.unreadable import (
    MOST_DEATHS,
    MOST_PROBES,
    MOST_UNREADABLE,
    Pieces,
    Read,
    ReadNote,
    SearchPlan,
    SearchResult,
    UnreadableOffset,
    after_known,
    death,
    known_after,
    searched,
)
from tests.support.builders import a_landing


def offsets(from_offset: int, until_offset: int, partition: int = 0) -> OffsetRange:
    return OffsetRange(TopicPartition("orders", partition), from_offset, until_offset)


def failing_at(*places: tuple[int, int]) -> Read:
    def read(pieces: Pieces) -> str | None:
        for partition, offset in places:
            if any(p.partition.partition == partition and offset in p for p in pieces):
                return f"bad {partition}/{offset}"
        return None

    return read


def found(result: SearchResult) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in result.unreadable]


LOG = (offsets(0, 2000), offsets(0, 2000, partition=1))


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([(0, 1500)], "in the middle"),
        ([(0, 0)], "the first of all"),
        ([(0, 1999)], "the last of all"),
        ([(0, 7), (0, 8), (0, 9)], "side by side"),
        ([(0, 3), (1, 1000)], "in two partitions"),
    ],
)
def test_every_offset_that_fails_alone_is_named_with_its_reason(
    places: list[tuple[int, int]], why: str
) -> None:
    # Invariant 1 of `unreadable`.
    result = searched(LOG, LOG, failing_at(*places))
    assert found(result) == places, why
    assert [each.reason for each in result.unreadable] == [f"bad {a}/{b}" for a, b in places]


def test_one_in_two_thousand_takes_a_few_dozen_reads() -> None:
    assert searched(LOG, LOG, failing_at((0, 1500))).probes < 30


def test_a_single_offset_is_judged_beside_its_neighbours_in_the_log() -> None:
    # Invariant 1 of `unreadable`.
    one = (offsets(77, 78),)
    assert found(searched(one, LOG, failing_at((0, 77)))) == [(0, 77)]
    assert found(searched(one, LOG, failing_at((0, 77), (0, 76)))) == [(0, 77)]
    assert found(searched(one, LOG, failing_at((0, 76), (0, 77), (0, 78)))) == [(0, 77)]
    assert found(searched(one, LOG, failing_at((0, 76), (0, 77), (0, 78), (0, 1999)))) == []
    assert found(searched(one, one, failing_at((0, 77)))) == []


def test_nothing_is_named_where_nothing_of_the_partition_is_read() -> None:
    # Invariant 1 of `unreadable`.
    away = [(0, each) for each in range(2000)]
    assert found(searched(LOG, LOG, failing_at(*away, (1, 5)))) == [(1, 5)]


@pytest.mark.parametrize("seed", ["one", "two"])
def test_where_nothing_is_read_anywhere_the_search_ends_at_once(seed: str) -> None:
    # Invariant 6 of `unreadable`.
    tries: list[Pieces] = []

    def read(pieces: Pieces) -> str | None:
        tries.append(pieces)
        return "no broker"

    assert searched(LOG, LOG, read, seed=seed) == SearchResult((), 3, reads_nothing=True)
    assert {each.partition.partition for [each] in tries} == {0, 1}


def test_the_only_record_that_there_is_may_be_to_blame() -> None:
    found = searched((offsets(7, 8),), (offsets(7, 8),), lambda pieces: "too large")
    assert not found.reads_nothing


def test_what_is_read_at_the_second_try_is_not_named() -> None:
    # Invariant 1 of `unreadable`.
    tries: list[Pieces] = []

    def read(pieces: Pieces) -> str | None:
        tries.append(pieces)
        is_first = tries.count((offsets(7, 8),)) < 2
        return "away" if is_first and any(7 in each for each in pieces) else None

    assert found(searched((offsets(0, 20),), LOG, read)) == []


@pytest.mark.parametrize("offset", [0, 3_333_333, 9_999_999])
@pytest.mark.parametrize("minutes", [1, 16, 60, 240])
def test_a_record_is_found_in_a_batch_that_takes_hours_to_land(minutes: float, offset: int) -> None:
    # Invariant 2 of `unreadable`.
    span, deaths = 10_000_000, list[str]()
    whole = (offsets(0, span),)

    def read(pieces: Pieces) -> str | None:
        is_slow = sum(each.span for each in pieces) * minutes / span > 2
        if not is_slow and not any(offset in each for each in pieces):
            return None
        deaths.append(death("2 minutes", has_hung=is_slow))
        return deaths[-1]

    assert found(searched(whole, whole, read)) == [(0, offset)]
    assert len(deaths) <= MOST_DEATHS


def test_one_read_that_hangs_by_chance_takes_no_other_piece_apart() -> None:
    # Invariant 2 of `unreadable`.
    tries: list[Pieces] = []

    def read(pieces: Pieces) -> str | None:
        tries.append(pieces)
        hangs = pieces == (offsets(1, 3),)
        return death("2 minutes", has_hung=True) if hangs else failing_at((0, 0), (0, 1900))(pieces)

    log = (offsets(0, 2000),)
    assert found(searched(log, log, read)) == [(0, 0), (0, 1900)]
    assert (offsets(1, 3),) in tries
    assert len(tries) < 50


def test_a_search_names_only_so_many_and_takes_only_so_many_reads() -> None:
    # Invariant 2 of `unreadable`.
    every_other = [(0, each) for each in range(0, 2000, 2)]
    result = searched(LOG, LOG, failing_at(*every_other))
    assert len(result.unreadable) == MOST_UNREADABLE
    assert result.probes <= MOST_PROBES


def test_a_search_that_has_no_time_left_names_nothing() -> None:
    # Invariant 2 of `unreadable`.
    result = searched(LOG, LOG, failing_at((0, 7)), has_time=lambda: False)
    assert result == SearchResult()


def test_what_can_be_read_after_all_names_nothing() -> None:
    well: Callable[[Pieces], None] = lambda pieces: None  # noqa: E731
    assert searched(LOG, LOG, well).unreadable == ()


def test_what_killed_an_application_is_known_to_the_next_one() -> None:
    # Invariant 3 of `unreadable`.
    notes = [ReadNote(2, "bad"), ReadNote(0, None), ReadNote(1, None)]
    assert known_after((), notes, "died") == [None, "bad", "died"]
    assert known_after((None, "died"), [ReadNote(2, "died"), ReadNote(3, None)], "died again") == [
        None,
        "died",
        None,
        "died again",
    ]
    assert known_after(("died",), [], "died again") == ["died"]


def test_notes_of_which_one_is_missing_say_nothing() -> None:
    # Invariant 3 of `unreadable`.
    assert known_after((), [ReadNote(0, None), ReadNote(2, "bad")], "died") == []


def test_reads_whose_outcome_is_known_are_not_made_again() -> None:
    # Invariant 3 of `unreadable`.
    made: list[Pieces] = []
    known: list[str | None] = []

    def read(pieces: Pieces) -> str | None:
        made.append(pieces)
        known.append(failing_at((0, 1500))(pieces))
        return known[-1]

    whole = searched(LOG, LOG, read)
    made.clear()
    again = searched(LOG, LOG, after_known(tuple(known), read))

    assert (again, made) == (whole, [])


PLAN = SearchPlan(a_landing(*LOG, output="hdfs://nn/probe"), LOG, "hdfs://nn/result")


def test_a_read_lands_its_offsets_as_the_landing_would_and_polls_nothing_behind_them() -> None:
    # Invariant 4 of `unreadable`.
    landing = PLAN.landing_of((offsets(5, 305), offsets(7, 8, partition=1)))

    assert replace(landing, scans=PLAN.landing.scans) == PLAN.landing
    assert [(each.ranges, each.max_poll_records) for each in landing.scans] == [
        ((offsets(5, 105),), 20),
        ((offsets(105, 305), offsets(7, 8, partition=1)), 1),
    ]


def test_plan_and_result_survive_their_way_through_a_file() -> None:
    # Invariant 5 of `unreadable`.
    result = SearchResult((UnreadableOffset(0, 7, "why"),), 12)
    for each in (PLAN, replace(PLAN, known=(None, "why")), ReadNote(3, None), result):
        assert from_plain(type(each), json.loads(json.dumps(to_plain(each)))) == each
