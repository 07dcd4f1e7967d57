"""What packing promises: the very same text again, a damaged one never, and few bytes."""

from __future__ import annotations

import json
import random
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.ledger.packed_json import (
    packed,
    packed_columns,
    unpacked,
    unpacked_columns,
    unpacked_value,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.from_regex(r"[0-9a-f]{4}", fullmatch=True),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=50,
)


def rows(count: int) -> list[dict[str, object]]:
    """As a manifest's ranges: numbers that follow from one another, and hashes."""
    chance, found = random.Random(1), []
    for partition in range(count):
        start = 10**7 + chance.randrange(10**4)
        end = start + chance.randint(500, 1500)
        found.append(
            {
                "partition": partition,
                "from_offset": start,
                "until_offset": end,
                "holes": {"control": [[end - 1, end]]} if partition % 5 == 0 else {},
                "epoch": 3 if partition % 7 else None,
                "hash": chance.randbytes(16).hex(),
            }
        )
    return found


@given(value=JSON, is_tight=st.booleans(), end=st.sampled_from(["", "\n", "\n\n"]))
def test_every_text_comes_back_as_it_was(value: object, is_tight: bool, end: str) -> None:
    text = json.dumps(value, separators=(",", ":") if is_tight else None) + end
    assert unpacked(packed(text)) == text
    assert json.dumps(unpacked_value(packed(text))) == json.dumps(json.loads(text))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=50))
def test_numbers_of_every_size_come_back(numbers: list[int]) -> None:
    text = json.dumps([[each, -each] for each in numbers], separators=(",", ":"))
    assert unpacked(packed(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", '{"a":1,"a":2}', '{"a":1.0e5}', '{"a":"\\u00e4\u00e4"}', "[" * 100_000],
    ids=["nothing", "words", "a key twice", "another number", "another letter", "too deep"],
)
def test_what_is_written_otherwise_comes_back_too(text: str) -> None:
    assert unpacked(packed(text)) == text


def test_a_row_takes_its_hash_and_what_its_numbers_do_not_share() -> None:
    text = json.dumps(rows(5000), separators=(",", ":"))
    # 16 bytes of the hash, 2 of where it starts, 10 bits of the span; holes and epochs follow.
    assert len(packed(text)) / 5000 < 20
    assert len(zlib.compress(text.encode(), 9)) / 5000 > 30


@pytest.mark.parametrize("changed", [b"", b"\x07", b"\x00abc", b"\x01", b"\x01\x00\x03"])
def test_bytes_of_no_text_are_refused(changed: bytes) -> None:
    with pytest.raises(ValueError, match=r"damaged|unknown way"):
        unpacked(changed)


@given(st.data())
def test_damaged_bytes_are_refused_or_give_a_text(data: st.DataObject) -> None:
    """Which text, the hash beside it judges."""
    content = bytearray(packed(json.dumps(rows(100), separators=(",", ":"))))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(ValueError):
        json.loads(unpacked(bytes(content)))


@given(st.lists(st.lists(st.integers(0, 2**63 - 1)), max_size=6))
def test_columns_come_back_as_they_were(columns: list[list[int]]) -> None:
    assert unpacked_columns(packed_columns(columns)) == columns
