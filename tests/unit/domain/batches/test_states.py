"""The table of a batch's states is sane: one way to the end, nothing leaves an end."""

from __future__ import annotations

import pytest

from tallystick.domain.batches.states import TRANSITIONS, BatchState, Isolation
from tallystick.domain.logs.snapshot import PartitionBounds

# State, can still be landed, committed, over.
STATES = [
    (BatchState.PLANNED, True, False, False),
    (BatchState.LANDING, True, False, False),
    (BatchState.VERIFIED, True, False, False),
    (BatchState.COMMITTED, False, True, False),
    (BatchState.PUBLISHED, False, True, True),
    (BatchState.ABANDONED, False, False, True),
]


@pytest.mark.parametrize(("state", "is_unfinished", "is_committed", "is_over"), STATES)
def test_every_state_says_what_it_means(
    state: BatchState, is_unfinished: bool, is_committed: bool, is_over: bool
) -> None:
    assert state.is_unfinished is is_unfinished
    assert state.is_committed is is_committed
    assert state.is_over is is_over


def test_every_state_has_a_row() -> None:
    assert [state for state, _, _, _ in STATES] == list(BatchState)


def _reachable(first: BatchState) -> set[BatchState]:
    reached = {first}
    while more := {after for before, after in TRANSITIONS if before in reached} - reached:
        reached |= more
    return reached


def test_every_state_is_reached_from_planned() -> None:
    assert _reachable(BatchState.PLANNED) == set(BatchState)


def test_nothing_leaves_an_end() -> None:
    ends = {state for state in BatchState if state.is_over}

    assert not {before for before, _ in TRANSITIONS} & ends


def test_every_unfinished_state_can_end() -> None:
    ends = {state for state in BatchState if state.is_over}

    assert all(_reachable(state) & ends for state in BatchState)


def test_a_commit_is_never_taken_back() -> None:
    assert _reachable(BatchState.COMMITTED) == {BatchState.COMMITTED, BatchState.PUBLISHED}


def test_only_what_is_verified_commits() -> None:
    before_commit = {before for before, after in TRANSITIONS if after is BatchState.COMMITTED}

    assert before_commit == {BatchState.VERIFIED}


def test_readable_until_follows_the_isolation_level() -> None:
    bounds = PartitionBounds(0, high_watermark=9, last_stable_offset=7, leader_epoch=None)

    assert bounds.readable_until(Isolation.READ_COMMITTED) == 7
    assert bounds.readable_until(Isolation.READ_UNCOMMITTED) == 9
