"""N4: failures are counted, and the last reason is told."""

from __future__ import annotations

import pytest

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.identities import Owner
from tallystick.domain.rules.n4_failing_batch import failing_batches
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    BATCH,
    FEED,
    TOPIC,
    a_manifest,
)

PLAN = a_manifest().plan


def tried(failures: int, reason: str = "", held_seconds: float | None = None) -> list[TriedBatch]:
    return [TriedBatch(PLAN, failures, reason, Owner("run 7"), held_seconds)]


@pytest.mark.parametrize(("failures", "is_told"), [(0, False), (2, False), (3, True), (40, True)])
def test_failures_are_counted_and_not_the_age_of_a_lease(failures: int, is_told: bool) -> None:
    found = failing_batches(FEED, TOPIC, tried(failures, "disk full.", held_seconds=0.0))
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
