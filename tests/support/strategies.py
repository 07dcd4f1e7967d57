"""Hypothesis strategies: ranges and runs small enough for sets of integers; schedules, instants."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.builders import a_range

REACH = 30
"""No offset is drawn at or above this."""

small_offsets = st.integers(0, REACH - 1)
pairs = st.tuples(small_offsets, st.integers(1, 8)).map(lambda drawn: (drawn[0], sum(drawn)))
pair_lists = st.lists(pairs, max_size=8)


@st.composite
def offset_ranges(draw: st.DrawFn, *, partitions: int = 2) -> OffsetRange:
    """A range of one of a few partitions."""
    from_offset, until_offset = draw(pairs)
    return a_range(from_offset, until_offset, partition=draw(st.integers(0, partitions - 1)))


range_lists = st.lists(offset_ranges(), max_size=8)
offset_runs = pair_lists.map(OffsetRuns.of)


def offsets_in(ranges: Iterable[OffsetRange]) -> set[tuple[int, int]]:
    """Every (partition, offset) of the ranges, once."""
    return {
        (each.partition.partition, offset)
        for each in ranges
        for offset in range(each.from_offset, each.until_offset)
    }


SCHEDULES = [
    ("0 * * * *", "UTC"),
    ("0 * * * *", "Europe/Berlin"),
    ("*/15 * * * *", "America/New_York"),
    ("30 * * * *", "Asia/Kolkata"),
    ("0 */6 * * *", "Europe/Berlin"),
    ("30 2 * * *", "Europe/Berlin"),
    ("0 0 * * 1", "Australia/Lord_Howe"),
    ("0 0 1 * *", "UTC"),
]
"""Cron expressions with their time zones."""
_AUTUMN = datetime(2026, 10, 24, tzinfo=UTC)
_SPRING = datetime(2026, 3, 28, tzinfo=UTC)
instants = st.integers(0, 2 * 365 * 24 * 60).map(
    lambda minutes: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
) | st.sampled_from((_AUTUMN, _SPRING)).flatmap(
    lambda day: st.integers(0, 48 * 60).map(lambda minutes: day + timedelta(minutes=minutes))
)
"""Of two years, many of them near a change of Berlin's clocks."""
