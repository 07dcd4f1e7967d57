"""N1: records wait, and no run comes; files lie, and no reconcile lists them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.rules.n1_overdue import NO_RECONCILE, missed_reconcile, missed_runs
from tests.support.builders import FEED, NOON, TOPIC, a_snapshot, an_account, bounds, by_partition

WAITING = an_account(frontier=5)
PERIOD = timedelta(hours=1)


@pytest.mark.parametrize(
    ("name", "account", "until", "idle_hours", "is_told"),
    [
        ("records wait, nobody comes", WAITING, 9, 3.1, True),
        ("three pauses are not over", WAITING, 9, 3.0, False),
        ("a batch is held", WAITING, 9, -0.01, False),
        ("never planned", WAITING, 9, None, False),
        ("nothing waits", WAITING, 5, 100, False),
        ("all that waits is claimed", an_account(frontier=5, beyond=[(5, 9)]), 9, 100, False),
        ("stopped", an_account(frontier=5, state=GenerationState.STOPPED), 9, 100, False),
    ],
)
def test_no_run_is_told_where_records_wait(
    name: str, account: object, until: int, idle_hours: float | None, is_told: bool
) -> None:
    found = missed_runs(
        FEED,
        by_partition(account),  # type: ignore[arg-type]
        a_snapshot({0: bounds(0, until)}),
        isolation=Isolation.READ_COMMITTED,
        idle=None if idle_hours is None else timedelta(hours=idle_hours),
        run_period=PERIOD,
    )
    assert bool(found) is is_told, name
    assert [(each.from_offset, each.until_offset) for each in found] == [(5, 9)] * is_told


@pytest.mark.parametrize(
    ("pause_hours", "silent_hours", "is_told"),
    [(1, 3.1, False), (1, 48, False), (1, 48.1, True), (24, 71.9, False), (24, 72.1, True)],
)
def test_a_reconcile_is_overdue_after_three_pauses_of_its_schedule_and_two_days(
    pause_hours: int, silent_hours: float, is_told: bool
) -> None:
    heard_at = NOON - timedelta(hours=silent_hours)
    found = missed_reconcile(FEED, TOPIC, heard_at, timedelta(hours=pause_hours), NOON)
    assert [each.name for each in found] == [NO_RECONCILE] * is_told
