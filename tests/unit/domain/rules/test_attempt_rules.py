"""Attempts that hang, batches that only fail, runs that do not come (N3, N4, N5)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.batches.states import Isolation, Verdict
from tallystick.domain.identities import Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.rules.n3_unfinished_batch import held_too_long
from tallystick.domain.rules.n4_failing_batch import failing_batches
from tallystick.domain.rules.n5_no_run import missed_runs
from tests.support.builders import (
    BATCH,
    FEED,
    TOPIC,
    a_manifest,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)

HOUR = 3600.0
PLAN = a_manifest().plan


def tried(failures: int = 0, reason: str = "", held_hours: float | None = None) -> list[TriedBatch]:
    seconds = None if held_hours is None else held_hours * HOUR
    return [TriedBatch(PLAN, failures, reason, Owner("run 7"), seconds)]


@pytest.mark.parametrize(
    ("held_hours", "is_told"),
    [(None, False), (0.1, False), (6.9, False), (7.1, True), (100, True)],
)
def test_a_batch_that_is_held_an_hour_longer_than_an_application_may_run_is_told(
    held_hours: float | None, is_told: bool
) -> None:
    found = held_too_long(FEED, TOPIC, tried(held_hours=held_hours), timedelta(hours=6))
    assert bool(found) is is_told
    assert all(each.subject == f"{BATCH} is held" and "run 7" in each.cause for each in found)


@pytest.mark.parametrize(("failures", "is_told"), [(0, False), (2, False), (3, True), (40, True)])
def test_failures_are_counted_and_not_the_age_of_a_lease(failures: int, is_told: bool) -> None:
    # 1
    found = failing_batches(FEED, TOPIC, tried(failures, "disk full.", held_hours=0.0))
    assert bool(found) is is_told
    assert all(each.verdict is Verdict.UNKNOWN for each in found)


def test_a_failing_batch_is_told_with_the_last_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(3, "disk full."))
    assert found.cause == (
        f"batch {BATCH} was tried 3 times, and failed each time. The last reason: disk full."
    )
    assert found.evidence["reason"] == "disk full."


def test_attempts_that_were_killed_say_no_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(3))
    assert found.cause.endswith("None said why.")


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
    # 2
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
