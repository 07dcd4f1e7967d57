"""What compressing promises: the very same text again, and a damaged one never."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.ledger.texts import compressed, decompressed


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
