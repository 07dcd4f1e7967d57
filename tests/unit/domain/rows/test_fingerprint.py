"""The algebra of fingerprints, and the row hash behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.rows.fingerprint import EMPTY, Fingerprint
from tallystick.domain.rows.row_hash import VERSION, hash_bytes, hash_long, row_hash

HASHES = st.integers(0, 2**128 - 1)
ROWS = st.lists(st.tuples(st.integers(0, 2**62), HASHES), max_size=20)
CONTENT = st.none() | st.binary(max_size=40)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), CONTENT), max_size=4)
ROW: dict[str, Any] = {
    "partition": 3,
    "offset": 5,
    "timestamp_micros": 1_793_000_000_000_000,
    "timestamp_type": 0,
    "key": b"k",
    "value": b"v",
    "headers": [("a", b"1"), ("b", None)],
}


def of_rows(rows: Iterable[tuple[int, int]]) -> Fingerprint:
    return sum((Fingerprint.of_row(*each) for each in rows), start=EMPTY)


def hash_of(**changes: Any) -> int:
    return row_hash(**(ROW | changes))


@given(ROWS, ROWS)
def test_fingerprints_add_up(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    together = of_rows([*some, *more])
    assert of_rows(some) + of_rows(more) == together
    assert of_rows(more) + of_rows(some) == together
    assert together + EMPTY == together


@given(st.data(), ROWS)
def test_the_order_of_rows_is_nothing(data: st.DataObject, rows: list[tuple[int, int]]) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert of_rows(shuffled) == of_rows(rows)


@given(ROWS.filter(bool), st.data())
def test_a_doubled_row_shows_even_when_it_is_there_three_times(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    row = data.draw(st.sampled_from(rows))
    before = of_rows(rows)
    for times in (1, 2):  # xor would be blind to two more
        assert before.differences(of_rows([*rows, *[row] * times]))


@given(CONTENT, CONTENT)
def test_two_values_that_changed_places_show(one: bytes | None, other: bytes | None) -> None:
    def rows(*values: bytes | None) -> Fingerprint:
        return of_rows(
            (offset, hash_of(offset=offset, value=value)) for offset, value in enumerate(values)
        )

    assert bool(rows(one, other).differences(rows(other, one))) == (one != other)


@given(HEADERS, HEADERS)
def test_different_headers_have_different_hashes(one: Any, other: Any) -> None:
    assert (hash_of(headers=one) == hash_of(headers=other)) == (one == other)


@given(CONTENT, CONTENT, CONTENT, CONTENT)
def test_key_and_value_are_told_apart(
    key: bytes | None, value: bytes | None, other_key: bytes | None, other_value: bytes | None
) -> None:
    same = hash_of(key=key, value=value) == hash_of(key=other_key, value=other_value)
    assert same == ((key, value) == (other_key, other_value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"key": None, "value": b"a"}, {"key": b"a", "value": None}),
        ({"key": None}, {"key": b""}),
        ({"value": None}, {"value": b""}),
        ({"headers": None}, {"headers": []}),
        ({"headers": [("a", None)]}, {"headers": [("a", b"")]}),
        ({"headers": [("a", None), ("a", b"a")]}, {"headers": [("a", b"a"), ("a", None)]}),
        ({"headers": [("a", None), ("b", None)]}, {"headers": [("a", b"b")]}),
        ({"headers": [("a", b"1"), ("b", b"2")]}, {"headers": [("b", b"2"), ("a", b"1")]}),
        ({"key": b"ab", "value": b"c"}, {"key": b"a", "value": b"bc"}),
        ({"partition": 1}, {"partition": 2}),
        ({"partition": 0, "headers": [("a", b"")]}, {"partition": 1, "headers": []}),
        ({"key": b"a", "value": b""}, {"key": b"", "value": b"a"}),
        ({"offset": 1}, {"offset": 2}),
        ({"timestamp_micros": -1}, {"timestamp_micros": 0}),
        ({"timestamp_type": 1}, {"timestamp_type": 0}),
        ({"timestamp_type": 1, "value": b""}, {"timestamp_type": 0, "value": None}),
    ],
)
def test_these_two_rows_are_not_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = hash_of(**one), hash_of(**other)
    assert first >> 64 != second >> 64
    assert first & (1 << 64) - 1 != second & (1 << 64) - 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ()),
        ({"record_count": 3}, ("2 rows were there, 3 are now",)),
        ({"first_offset": 4}, ("the first offset was 5, it is 4 now",)),
        ({"last_offset": None}, ("the last offset was 6, it is none now",)),
        ({"offset_sum": 12}, ("the sum of offsets was 11, it is 12 now",)),
        ({"hash_sums": (0, 2)}, ("the hashes over place and content add up to something else",)),
        ({"hash_sums": (1, 1)}, ("the hashes over place and content add up to something else",)),
    ],
)
def test_a_comparison_names_what_differs(change: dict[str, Any], said: Sequence[str]) -> None:
    known = Fingerprint(2, 11, (0, 1), 5, 6)
    assert known.differences(replace(known, **change)) == said


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_is_xxh64(content: bytes, expected: int) -> None:
    assert hash_bytes(content, 0) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1))
def test_numbers_are_hashed_as_their_bytes(number: int, seed: int) -> None:
    assert hash_long(number, seed) == hash_bytes(number.to_bytes(8, "little", signed=True), seed)


def test_another_row_hash_is_another_version() -> None:
    """The fingerprints on record were made by this function: who changes it counts it up."""
    assert (VERSION, f"{hash_of():032x}") == (2, "327b1561efb53957d2df3949c74f46e8")


def test_each_half_is_summed_up_by_itself_and_wraps() -> None:
    found = of_rows([(0, 2**127 + 2**63), (1, 2**127 + 2**63 + 5)])
    assert found.hash_sums == (0, 5)
