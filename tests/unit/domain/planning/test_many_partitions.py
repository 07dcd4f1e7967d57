"""What a plan decides takes as many steps more as there are partitions more, and no square of it.

Steps are lines of code as they are run, so no clock is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.attempts.staged import Staged
from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.due import PlanLimits, due_offsets, plan_run, wanted_offsets
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.planning.pending_losses import pending_losses
from tallystick.domain.rules.log_findings import change_findings
from tests.support.builders import (
    TOPIC_ID,
    a_range,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    by_partition,
    planned,
)

FEW, MANY = 40, 80
IDLE, GROWN, EXPIRED = bounds(0, 9), bounds(0, 20), bounds(12, 20)


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python the work runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def decided(
    number: int, ends: PartitionBounds, *, topic_id: str, is_claimed: bool, is_kept: bool
) -> None:
    beyond = [(5, 9)] if is_claimed else []
    accounts = Accounts(
        by_partition(
            *(
                an_account(partition=each, frontier=5, beyond=beyond, last_seen_until=9)
                for each in range(number)
            )
        ),
        [a_status(*(planned(5, 9, partition=each) for each in range(number)))] * is_claimed,
    )
    known = accounts.generations
    snapshot = a_snapshot(dict.fromkeys(range(number), ends), topic_id=topic_id)
    seen = Observation(snapshot, dict.fromkeys(range(number), SAME), {})
    _ = pending_losses(accounts, seen, Isolation.READ_COMMITTED).lost
    kept = [KeptFiles("/kept", TOPIC_ID, (a_range(0, 1),))] if is_kept else []
    changes = judge_logs(accounts, seen, Staged(quarantined=kept))
    change_findings("orders", known, changes, seen)
    after = accounts_after(accounts, changes).generations
    limits, cuts = PlanLimits(5 * number, 40, 7), dict.fromkeys(range(number), 18)
    wanted = wanted_offsets(after, snapshot, isolation=Isolation.READ_COMMITTED, cuts=cuts)
    plan_run(after, due_offsets(wanted, limits), limits=limits)


@pytest.mark.parametrize("is_claimed", [False, True], ids=["free", "claimed by a dead run"])
@pytest.mark.parametrize("is_kept", [False, True], ids=["nothing kept", "something kept"])
@pytest.mark.parametrize(
    ("ends", "topic_id"),
    [(IDLE, TOPIC_ID), (GROWN, TOPIC_ID), (EXPIRED, TOPIC_ID), (GROWN, "another-topic-id")],
    ids=["idle", "grown", "expired", "re-created"],
)
def test_twice_the_partitions_take_twice_the_steps(
    ends: PartitionBounds, topic_id: str, is_claimed: bool, is_kept: bool
) -> None:
    few, many = (
        steps(
            lambda number=number: decided(
                number, ends, topic_id=topic_id, is_claimed=is_claimed, is_kept=is_kept
            )
        )
        for number in (FEW, MANY)
    )
    assert many < 2.2 * few
