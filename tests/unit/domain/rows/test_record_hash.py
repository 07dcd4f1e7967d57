"""No two records share a hash, however their bytes are shifted between fields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypedDict

from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.rows.record_hash import VERSION, record_hash


class Record(TypedDict):
    """The arguments of `record_hash`."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def a_record(
    *,
    partition: int = 0,
    offset: int = 0,
    timestamp_ms: int = 0,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Record:
    return Record(
        partition=partition,
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=key,
        value=value,
        headers=headers,
    )


# Neighbours differ in one fact; every pair in the table must differ in its hash.
LOOKALIKES = {
    "plain": a_record(),
    "other partition": a_record(partition=1),
    "other offset": a_record(offset=1),
    "other timestamp": a_record(timestamp_ms=1),
    "timestamp before 1970": a_record(timestamp_ms=-1),
    "no timestamp": a_record(timestamp_ms=-2),
    "partition and offset swapped": a_record(partition=2, offset=3),
    "swapped back": a_record(partition=3, offset=2),
    "null key": a_record(key=None),
    "empty key": a_record(key=b""),
    "null value": a_record(value=None),
    "empty value": a_record(value=b""),
    "both null": a_record(key=None, value=None),
    "both empty": a_record(key=b"", value=b""),
    "key null, value empty": a_record(key=None, value=b""),
    "key empty, value null": a_record(key=b"", value=None),
    "key and value swapped": a_record(key=b"v", value=b"k"),
    "boundary to the left": a_record(key=b"", value=b"kv"),
    "boundary to the right": a_record(key=b"kv", value=b""),
    "a value that looks like null": a_record(value=b"\xff" * 8),
    "one header": a_record(headers=[("a", b"1")]),
    "header twice": a_record(headers=[("a", b"1"), ("a", b"1")]),
    "two headers": a_record(headers=[("a", b"1"), ("b", b"2")]),
    "two headers, other order": a_record(headers=[("b", b"2"), ("a", b"1")]),
    "header values swapped": a_record(headers=[("a", b"2"), ("b", b"1")]),
    "null header": a_record(headers=[("a", None)]),
    "empty header": a_record(headers=[("a", b"")]),
    "header name shifted": a_record(headers=[("a1", b"")]),
    "header in the value": a_record(value=b"va1"),
    "accented name": a_record(headers=[("\u00e9", b"")]),
}


def test_lookalikes_differ() -> None:
    # Invariants 1 and 2 of `record_hash`.
    collisions = [
        (one, other)
        for one, other in combinations(LOOKALIKES, 2)
        if record_hash(**LOOKALIKES[one]) == record_hash(**LOOKALIKES[other])
    ]

    assert not collisions


def test_the_hash_is_128_bits_and_stays_as_it_is() -> None:
    # Anchors in a ledger were made with it: another value would stop every partition of every feed.
    found = record_hash(**a_record(headers=[("a", b"1"), ("b", None)]))

    assert found.hex() == "00fb76392a400fbdb5b35c342a64221f"


bodies = st.none() | st.binary(max_size=4)
records = st.builds(
    a_record,
    partition=st.integers(0, 1),
    offset=st.integers(0, 1),
    timestamp_ms=st.integers(-2, 1),
    key=bodies,
    value=bodies,
    headers=st.lists(st.tuples(st.text(max_size=2), bodies), max_size=2),
)


@given(records, records)
def test_equal_hashes_mean_equal_records(one: Record, other: Record) -> None:
    assert (record_hash(**one) == record_hash(**other)) == (one == other)


def test_another_hash_is_another_version() -> None:
    """What stands on record was made by this function: who changes it counts the version up."""
    found = record_hash(**a_record(partition=3, offset=7, headers=[("a", None), ("b", b"c")]))
    assert (VERSION, found.hex()) == (1, "2fbad039904b62f0eeac7edaad5fece0")
