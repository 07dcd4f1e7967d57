"""What a look showed comes back from its bytes, and few of them are needed."""

from __future__ import annotations

import random

import pytest

from tallystick.errors import LedgerRefused
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.packed_json import packed_columns


def test_a_look_comes_back_with_what_is_not_known() -> None:
    shown = Shown([0, 3, 4], [9, 8, 7], [9, 7, 7], [0, 8, 2], [0, None, 5], [1, 2])
    assert Shown.of(shown.packed()) == shown
    assert shown.by_partition(shown.leader_epochs) == {0: 0, 3: None, 4: 5}


def test_a_look_at_nothing_comes_back() -> None:
    assert Shown.of(Shown([], [], [], [], [], [7]).packed()) == Shown([], [], [], [], [], [7])


def test_a_partition_takes_two_bytes_or_three() -> None:
    chance = random.Random(1)
    ends = [10**7 + chance.randrange(30_000) for _ in range(10_000)]
    starts = [0] * len(ends)
    shown = Shown(list(range(len(ends))), ends, ends, starts, [3] * len(ends), [])
    assert len(shown.packed()) < 3 * len(ends)


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x01", packed_columns([[1], [2]]), packed_columns([[1, 2], [1], [1], [1], [1], []])],
    ids=["nothing", "cut", "too few columns", "uneven columns"],
)
def test_what_is_no_look_is_refused(packed: bytes) -> None:
    with pytest.raises(LedgerRefused, match="can't be read"):
        Shown.of(packed)
