"""N3: batches that nobody holds any more, attempts that hang, and those that fail."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.rules.n3_unfinished_batch import (
    failing_batches,
    held_too_long,
    not_shown,
    refused_by_storage,
    unfinished_batches,
)
from tallystick.domain.verdicts import Verdict
from tests.support.builders import BATCH, FEED, TOPIC, a_manifest

HOUR = 3600.0
PLAN = a_manifest().plan


def tried(held_hours: float | None = None, failures: int = 0, reason: str = "") -> list[TriedBatch]:
    seconds = None if held_hours is None else held_hours * HOUR
    return [TriedBatch(PLAN, failures, reason, Owner("run 7"), seconds)]


@pytest.mark.parametrize(
    ("held_hours", "is_told"), [(None, False), (0.1, False), (6.9, False), (7.1, True), (100, True)]
)
def test_a_batch_that_is_held_an_hour_longer_than_an_application_may_run_is_told(
    held_hours: float | None, is_told: bool
) -> None:
    found = held_too_long(FEED, TOPIC, tried(held_hours), timedelta(hours=6))
    assert bool(found) is is_told
    assert all(each.name == "held too long" and "run 7" in each.cause for each in found)


def waiting(state: BatchState, seconds: float, batch: str = BATCH) -> WaitingBatch:
    return WaitingBatch(BatchId(batch), state, seconds)


@pytest.mark.parametrize(
    ("state", "seconds", "is_told"),
    [
        (BatchState.PLANNED, 3599.0, False),
        (BatchState.LANDING, 3599.0, False),
        (BatchState.LANDING, 3601.0, True),
        (BatchState.VERIFIED, 3601.0, True),
        (BatchState.COMMITTED, 0.0, True),
    ],
)
def test_what_is_committed_and_not_shown_is_told_at_once(
    state: BatchState, seconds: float, is_told: bool
) -> None:
    assert bool(unfinished_batches(FEED, TOPIC, [waiting(state, seconds)])) is is_told


def test_two_batches_left_behind_are_two_findings() -> None:
    other = waiting(BatchState.COMMITTED, 7300.0, "00000000000000b2")
    held, shown = unfinished_batches(FEED, TOPIC, (waiting(BatchState.LANDING, 5400.0), other))

    assert held.key != shown.key
    assert (held.subject, shown.subject) == (BATCH, other.batch_id)
    assert held.cause == f"batch {BATCH} is landing, and for 1.5 h nobody has held it."
    assert "readers of the directories don't see its rows" in shown.cause


def test_a_refusal_is_the_same_finding_and_names_its_batch() -> None:
    [unasked] = unfinished_batches(FEED, TOPIC, [waiting(BatchState.COMMITTED, 1.0)])
    refused = not_shown(FEED, TOPIC, BATCH, "the quota is used up.", is_refused=True)
    assert refused.key == unasked.key
    assert refused.cause.endswith("don't see its rows: the quota is used up.")
    assert refused_by_storage([unasked, refused]) == [BATCH]
    assert refused_by_storage([not_shown(FEED, TOPIC, BATCH, "a stray is there.")]) == []


@pytest.mark.parametrize(("failures", "is_told"), [(0, False), (2, False), (3, True), (40, True)])
def test_failures_are_counted_and_not_the_age_of_a_lease(failures: int, is_told: bool) -> None:
    found = failing_batches(FEED, TOPIC, tried(0.0, failures, "disk full."))
    assert bool(found) is is_told
    assert all(each.verdict is Verdict.UNKNOWN for each in found)


def test_a_failing_batch_is_told_with_the_last_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(failures=3, reason="disk full."))
    assert found.cause == (
        f"batch {BATCH} was tried 3 times, and failed each time. The last reason: disk full."
    )
    assert found.evidence["reason"] == "disk full."


def test_attempts_that_were_killed_say_no_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(failures=3))
    assert found.cause.endswith("None said why.")
