"""What is written in a column comes back the same; what is damaged, or no value, is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import LedgerRefused
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.texts import compressed, decompressed

_NAMES = (
    "partitions",
    "high_watermarks",
    "last_stable_offsets",
    "log_start_offsets",
    "leader_epochs",
    "leaderless",
    "borders",
)
_UNEVEN = ", ".join(f'"{name}": {[1, 2] if name == "partitions" else [1]}' for name in _NAMES)


def test_a_look_comes_back_with_what_is_not_known() -> None:
    shown = Shown([0, 3, 4], [9, 8, 7], [9, 7, 7], [0, 8, 2], [0, None, 5], [1, 2], [4, 8, 0])
    assert Shown.of(shown.compressed()) == shown
    assert shown.by_partition(shown.leader_epochs) == {0: 0, 3: None, 4: 5}


def test_a_look_at_nothing_comes_back() -> None:
    nothing = Shown([], [], [], [], [], [7], [])
    assert Shown.of(nothing.compressed()) == nothing


@pytest.mark.parametrize(
    "data",
    [b"", b"\x01", compressed('{"partitions": [1]}'), compressed(f"{{{_UNEVEN}}}")],
    ids=["nothing", "cut", "too few columns", "uneven columns"],
)
def test_what_is_no_look_is_refused(data: bytes) -> None:
    with pytest.raises(LedgerRefused, match="can't be read"):
        Shown.of(data)


@given(st.text())
def test_every_text_comes_back_as_it_was(text: str) -> None:
    assert decompressed(compressed(text)) == text


@pytest.mark.parametrize("data", [b"", b"\x07", compressed("a text")[:-1]])
def test_bytes_of_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        decompressed(data)


@given(st.data())
def test_damaged_bytes_are_refused_or_give_the_text(data: st.DataObject) -> None:
    text = "a text of which each byte counts " * 9
    content = bytearray(compressed(text))
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(ValueError):
        assert decompressed(bytes(content)) == text
