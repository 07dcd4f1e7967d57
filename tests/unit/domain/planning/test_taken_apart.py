"""No batch is taken apart before its attempts were asked; neighbouring rows differ in one fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import BatchStatus, CommittedFile
from tallystick.domain.batches.states import Isolation, RangeState
from tallystick.domain.identities import FencingToken
from tallystick.domain.planning.isolating import taken_apart, to_be_asked
from tallystick.domain.planning.log_changes import Accounts, CutClaim
from tallystick.domain.rules.findings import FindingCode
from tests.support.builders import BATCH, a_snapshot, a_status, bounds, planned

RANGES = (planned(0, 5), planned(0, 5, partition=1))
TWICE = replace(a_status(*RANGES), applications=2)
REPAIR = replace(TWICE, plan=replace(TWICE.plan, replaces=(CommittedFile(BATCH, "part-0"),)))
SICK = a_status(*RANGES)
ANSWERED = Asked({BATCH: FencingToken(0)})
BOTH, ONE = {0: bounds(0, 5), 1: bounds(0, 5)}, {0: bounds(0, 5)}
LOST = CutClaim(
    BATCH, RANGES[0].generation_id, RANGES[0].offsets, RangeState.LOST, FindingCode.EXPIRED
)


@pytest.mark.parametrize("asked", [None, ANSWERED, Asked(), Asked({BATCH: FencingToken(1)})])
@pytest.mark.parametrize(
    ("batch", "shown", "parts"),
    [
        (TWICE, BOTH, 2),
        (replace(TWICE, applications=1), BOTH, 0),
        (replace(TWICE, lease_seconds_left=9.0), BOTH, 0),
        (REPAIR, BOTH, 0),
        (SICK, ONE, 0),
    ],
    ids=["halved", "tried once", "held", "a repair", "beside a sick partition"],
)
def test_claims_are_released_once_the_attempts_have_answered(
    batch: BatchStatus, shown: dict[int, object], parts: int, asked: Asked | None
) -> None:
    snapshot = a_snapshot(shown)  # type: ignore[arg-type]
    apart = taken_apart(Accounts({}, [batch]), snapshot, Isolation.READ_COMMITTED, (), asked)
    is_left = batch in (replace(TWICE, applications=1), replace(TWICE, lease_seconds_left=9.0))
    is_released = not is_left and asked in (None, ANSWERED)
    assert bool(apart.cuts) is is_released
    assert apart.batches == ({BATCH} if is_released else set())
    assert len(set(apart.groups.values())) == (parts if is_released else 0)


def test_a_batch_that_loses_claims_is_left_to_that() -> None:
    accounts = Accounts({}, [TWICE])
    apart = taken_apart(accounts, a_snapshot(BOTH), Isolation.READ_COMMITTED, [LOST], ANSWERED)
    assert not apart.cuts


@pytest.mark.parametrize(
    ("batch", "is_asked"),
    [
        (TWICE, True),
        (replace(a_status(RANGES[0]), applications=2), True),
        (REPAIR, True),
        (replace(TWICE, applications=1), False),
        (replace(TWICE, lease_seconds_left=9.0), False),
    ],
    ids=["two partitions", "one partition", "a repair", "tried once", "held"],
)
def test_a_batch_that_fails_again_and_again_is_asked(batch: BatchStatus, is_asked: bool) -> None:
    """Also one that can't be parted: its next attempt may set offsets aside."""
    assert to_be_asked(Accounts({}, [batch])) == ({BATCH} if is_asked else set())
