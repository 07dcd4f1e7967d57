"""N3: batches that nobody holds any more, and attempts that hang."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.rules.n3_unfinished_batch import held_too_long, unfinished_batches
from tests.support.builders import (
    BATCH,
    FEED,
    TOPIC,
    a_manifest,
)

HOUR = 3600.0
PLAN = a_manifest().plan


def tried(held_hours: float | None) -> list[TriedBatch]:
    seconds = None if held_hours is None else held_hours * HOUR
    return [TriedBatch(PLAN, 0, "", Owner("run 7"), seconds)]


@pytest.mark.parametrize(
    ("held_hours", "is_told"),
    [(None, False), (0.1, False), (6.9, False), (7.1, True), (100, True)],
)
def test_a_batch_that_is_held_an_hour_longer_than_an_application_may_run_is_told(
    held_hours: float | None, is_told: bool
) -> None:
    found = held_too_long(FEED, TOPIC, tried(held_hours), timedelta(hours=6))
    assert bool(found) is is_told
    assert all(each.subject == f"{BATCH} is held" and "run 7" in each.cause for each in found)


def test_two_batches_left_behind_are_two_findings() -> None:
    held_by_nobody = WaitingBatch(BATCH, BatchState.LANDING, 5400.0)
    other = WaitingBatch(BatchId("00000000000000b2"), BatchState.COMMITTED, 7300.0)
    held, shown = unfinished_batches(FEED, TOPIC, (held_by_nobody, other))

    assert held.key != shown.key
    assert (held.subject, shown.subject) == (BATCH, other.batch_id)
    assert held.cause == f"batch {BATCH} is landing, and for 1.5 h nobody has held it."
    assert shown.cause.endswith("is committed, and for 2.0 h nobody has published it.")
