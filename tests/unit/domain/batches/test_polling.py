"""A poll stops where a range ends, and a range takes few polls more for it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given

from tallystick.domain.batches.polling import MAX_POLL_RECORDS, looked_at, stretches
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tests.support.builders import a_range
from tests.support.strategies import range_lists

SPANS = (1, 2, 199, 200, 201, 2_000, 2_001, 200_000, 200_001, 3_000_000)


def polled(whole: OffsetRange, records: Sequence[int]) -> list[int]:
    """The last offset that each poll brings."""
    found = []
    for most, [part] in stretches([whole]):
        position = part.from_offset
        while position < part.until_offset:
            brought = [each for each in records if each >= position][:most]
            found.append(brought[-1])
            position = brought[-1] + 1
    return found


@given(range_lists)
def test_stretches_hold_every_offset_once(ranges: list[OffsetRange]) -> None:
    # Invariant 1 of `polling`.
    parts = [each for _, parts in stretches(ranges) for each in parts]
    assert union_of(parts) == union_of(ranges)
    assert sum(each.span for each in parts) == sum(each.span for each in ranges)


@pytest.mark.parametrize("span", SPANS)
def test_stretches_are_in_order_and_polls_get_shorter_towards_the_end(span: int) -> None:
    # Invariant 1 of `polling`.
    found = stretches([a_range(7, 7 + span)])
    assert all(a.until_offset == b.from_offset for (_, [a]), (_, [b]) in pairwise(found))
    assert [most for most, _ in found] == sorted({most for most, _ in found}, reverse=True)


@pytest.mark.parametrize("span", [each for each in SPANS if each < 3_000])
@pytest.mark.parametrize("step", [1, 2, 10])
def test_no_poll_goes_beyond_the_end(span: int, step: int) -> None:
    # Invariant 2 of `polling`.
    records = [*range(0, span, step), span - 1, *range(span, span + 50_000, step)]
    assert max(polled(a_range(0, span), sorted(set(records)))) == span - 1


@pytest.mark.parametrize("span", SPANS)
def test_a_range_takes_a_few_hundred_polls_more(span: int) -> None:
    # Invariant 3 of `polling`.
    polls = sum(-(-part.span // most) for most, [part] in stretches([a_range(0, span)]))
    assert polls <= span // MAX_POLL_RECORDS + 600


def test_records_are_looked_at_in_the_longest_ranges_only() -> None:
    ranges = [a_range(5, 5 + span, partition=span) for span in range(1, 101)]
    first, middle, last = looked_at(ranges)
    assert first == dict.fromkeys(range(69, 101), 5)
    assert middle == {span: 5 + (span - 1) // 2 for span in range(69, 101)}
    assert last == {span: 4 + span for span in range(69, 101)}
