"""How a batch that fails is taken apart: neighbouring rows differ in one fact.

The ids begin with the number of the rule of `failing_batches`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.attempts.staged import HeldFiles, Staged
from tallystick.domain.batches.batch import BatchStatus, CommittedFile
from tallystick.domain.batches.states import Isolation, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.failing_batches import (
    failing_batches,
    is_search_due,
    set_aside,
    stops_at_ends,
    taken_apart,
)
from tallystick.domain.planning.log_changes import Accounts, CutClaim, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tests.support.builders import (
    BATCH,
    a_batch,
    a_range,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    by_partition,
    planned,
)

RELEASED, UNREADABLE = RangeState.RELEASED, RangeState.UNREADABLE
RANGES = tuple(planned(0, 5, partition=number) for number in range(3))
ALL = {number: bounds(0, 5) for number in range(5)}
WITHOUT_2 = {number: each for number, each in ALL.items() if number != 2}

ONCE = replace(a_status(*RANGES), applications=1)
TWICE = replace(ONCE, applications=2)
OF_ONE = replace(a_status(RANGES[0]), applications=2)
HELD = replace(TWICE, lease_seconds_left=9.0)
REPAIR = replace(TWICE, plan=replace(TWICE.plan, replaces=(CommittedFile(BATCH, "part-0"),)))
OTHER = replace(
    a_status(
        planned(0, 5, partition=3), planned(0, 5, partition=4), batch_id=BatchId("00000000000000b2")
    ),
    applications=2,
)

TOKENS = {BATCH: FencingToken(0), OTHER.plan.batch_id: FencingToken(0)}
EMPTY = Staged(tokens=TOKENS)
HOLDING = Staged(
    [HeldFiles("/s/b/1", BATCH, "not settled.", KeptFiles("/q", None, None))], (), TOKENS
)
# How the partitions of a batch of three are told apart once it is halved.
HALVES = {0: 1, 1: 2, 2: 2}


def claims(
    batch: BatchStatus, *partitions: int, code: FindingCode = FindingCode.SHORT_READ
) -> list[CutClaim]:
    """The claims of these partitions are released."""
    return [
        CutClaim(batch.plan.batch_id, each.generation_id, each.offsets, RELEASED, code)
        for each in batch.plan.ranges
        if each.offsets.partition.partition in partitions
    ]


def apart(
    *batches: BatchStatus,
    shown: Mapping[int, PartitionBounds] = ALL,
    isolation: Isolation = Isolation.READ_COMMITTED,
    cut_already: Sequence[CutClaim] = (),
    staged: Staged = EMPTY,
) -> tuple[list[CutClaim], Mapping[int, int]]:
    """The claims that are released, and the partitions that must not share a batch."""
    accounts = Accounts({}, batches)
    found = taken_apart(accounts, a_snapshot(shown), isolation, cut_already, staged)
    assert found.batches == {each.batch_id for each in found.cuts}
    return list(found.cuts), found.groups


@pytest.mark.parametrize(
    ("batch", "shown", "cuts", "groups"),
    [
        pytest.param(TWICE, ALL, claims(TWICE, 0, 1, 2), HALVES, id="1 tried twice"),
        pytest.param(ONCE, ALL, [], {}, id="1 tried once"),
        pytest.param(HELD, ALL, [], {}, id="1 held"),
        pytest.param(OF_ONE, ALL, [], {}, id="1 of one partition"),
        pytest.param(REPAIR, ALL, claims(TWICE, 0, 1, 2), {}, id="2 a repair is given up"),
        pytest.param(replace(REPAIR, applications=1), ALL, [], {}, id="2 a repair, tried once"),
        pytest.param(
            ONCE,
            WITHOUT_2,
            claims(ONCE, 0, 1, code=FindingCode.COULD_NOT_TELL),
            {},
            id="4 beside one without a leader",
        ),
        pytest.param(
            ONCE,
            ALL | {2: bounds(0, 4)},
            claims(ONCE, 0, 1, code=FindingCode.COULD_NOT_TELL),
            {},
            id="4 beside one whose high watermark lags",
        ),
        pytest.param(
            ONCE,
            ALL | {2: bounds(0, 5, last_stable_offset=4)},
            claims(ONCE, 0, 1, code=FindingCode.COULD_NOT_TELL),
            {},
            id="4 beside one that is not stable as far",
        ),
        pytest.param(
            replace(ONCE, lease_seconds_left=9.0), WITHOUT_2, [], {}, id="4 held, beside a sick one"
        ),
        pytest.param(
            replace(REPAIR, applications=1), WITHOUT_2, [], {}, id="4 a repair, beside a sick one"
        ),
    ],
)
def test_claims_are_released_and_partitions_parted(
    batch: BatchStatus,
    shown: Mapping[int, PartitionBounds],
    cuts: list[CutClaim],
    groups: Mapping[int, int],
) -> None:
    assert apart(batch, shown=shown) == (cuts, groups)


def test_under_read_uncommitted_the_stable_end_is_nobody_s_reason() -> None:
    """4."""
    shown = ALL | {2: bounds(0, 5, last_stable_offset=4)}
    assert apart(ONCE, shown=shown, isolation=Isolation.READ_UNCOMMITTED) == ([], {})


@pytest.mark.parametrize(
    ("batch", "shown", "if_held"),
    [(TWICE, ALL, True), (REPAIR, ALL, True), (ONCE, WITHOUT_2, False)],
    ids=["halved", "a repair", "beside a sick one"],
)
def test_what_attempts_may_hold_is_parted_only_while_the_log_has_it(
    batch: BatchStatus, shown: Mapping[int, PartitionBounds], if_held: bool
) -> None:
    """5: of one without a leader nobody can tell."""
    begun_since = Staged(tokens={BATCH: FencingToken(1)})
    for staged, is_released in ((EMPTY, True), (HOLDING, if_held), (begun_since, False)):
        cuts, groups = apart(batch, shown=shown, staged=staged)
        assert bool(cuts) is is_released
        assert not groups or is_released


@pytest.mark.parametrize(
    ("log_start", "is_halved"), [(4, True), (5, True), (6, False), (10, False)]
)
@pytest.mark.parametrize("is_held", [True, False], ids=["with files", "without files"])
def test_a_batch_is_halved_as_long_as_the_log_starts_at_its_claim_or_below(
    log_start: int, is_halved: bool, is_held: bool
) -> None:
    """5: one offset that has expired is the border, whatever its attempts hold."""
    batch = replace(a_status(planned(5, 10), planned(5, 10, partition=1)), applications=2)
    accounts = Accounts(
        by_partition(*(an_account(partition=p, frontier=5, beyond=[(5, 10)]) for p in (0, 1))),
        [batch],
    )
    snapshot = a_snapshot({0: bounds(log_start, 20), 1: bounds(0, 20)})
    seen = Observation(snapshot, {0: SAME, 1: SAME}, {})
    staged = HOLDING if is_held else EMPTY
    gone = judge_logs(accounts, seen).cuts

    found = taken_apart(accounts, snapshot, Isolation.READ_COMMITTED, gone, staged)

    assert (found.groups == {0: 1, 1: 2}) is is_halved
    assert bool(found.cuts) is is_halved
    changes = judge_logs(accounts, seen, staged)
    lost = [str(each.offsets) for each in changes.cuts]
    expired = f"orders-0 [5, {log_start})"
    assert lost == ([] if is_halved or is_held else [expired])
    assert [str(each.offsets) for each in changes.held] == (
        [expired] if is_held and not is_halved else []
    )


def test_a_batch_that_loses_claims_already_is_left_to_that() -> None:
    lost = replace(claims(TWICE, 0)[0], becomes=RangeState.LOST, code=FindingCode.EXPIRED)
    assert apart(TWICE, cut_already=[lost]) == ([], {})
    assert apart(TWICE, OTHER, cut_already=[lost]) == (claims(OTHER, 3, 4), {3: 1, 4: 2})


def test_halves_of_two_batches_share_none() -> None:
    """1."""
    _, groups = apart(TWICE, OTHER)
    assert groups == HALVES | {3: 3, 4: 4}


@pytest.mark.parametrize(
    ("batch", "is_failing"),
    [
        pytest.param(TWICE, True, id="tried twice"),
        pytest.param(OF_ONE, True, id="of one partition: it may set offsets aside"),
        pytest.param(REPAIR, True, id="a repair"),
        pytest.param(ONCE, False, id="tried once"),
        pytest.param(HELD, False, id="held"),
    ],
)
def test_a_batch_that_fails_again_and_again_is_failing(
    batch: BatchStatus, is_failing: bool
) -> None:
    """5."""
    assert failing_batches(Accounts({}, [batch])) == ({BATCH} if is_failing else set())


@pytest.mark.parametrize(
    ("batch", "is_due"),
    [
        pytest.param(ONCE, True, id="fails for the second time"),
        pytest.param(a_status(*RANGES), False, id="fails for the first time"),
        pytest.param(a_status(planned(0, 1)), True, id="one offset, for the first time"),
        pytest.param(a_status(planned(0, 2)), False, id="two offsets, for the first time"),
        pytest.param(replace(REPAIR, applications=1), False, id="a repair"),
    ],
)
def test_single_offsets_are_searched(batch: BatchStatus, is_due: bool) -> None:
    """6."""
    assert is_search_due(batch) is is_due


@pytest.mark.parametrize(
    ("before", "unreadable", "stops"),
    [
        pytest.param(a_status(planned(0, 5)), (), False, id="a first try"),
        pytest.param(replace(a_status(planned(0, 5)), applications=1), (), True, id="a second try"),
        pytest.param(replace(REPAIR, applications=0), (), True, id="a repair"),
        pytest.param(a_status(planned(0, 5)), (a_range(5, 6),), True, id="a bad record behind it"),
        pytest.param(a_status(planned(6, 9)), (a_range(5, 6),), False, id="a bad record before it"),
    ],
)
def test_no_poll_goes_beyond_the_ranges(
    before: BatchStatus, unreadable: tuple[OffsetRange, ...], stops: bool
) -> None:
    """7."""
    log = replace(an_account(), unreadable=unreadable)
    elsewhere = replace(an_account(partition=9), unreadable=(a_range(50, 51, partition=9),))
    assert stops_at_ends(before, [log, elsewhere]) is stops


def test_unreadable_offsets_are_set_aside_and_all_others_are_due_again() -> None:
    """6."""
    batch = a_batch(planned(0, 10), planned(0, 4, partition=1))
    found = {
        (each.offsets, each.becomes, each.code)
        for each in set_aside(batch, [a_range(3, 4), a_range(9, 10)])
    }
    assert found == {
        (a_range(0, 3), RELEASED, FindingCode.SHORT_READ),
        (a_range(3, 4), UNREADABLE, FindingCode.UNREADABLE_RECORD),
        (a_range(4, 9), RELEASED, FindingCode.SHORT_READ),
        (a_range(9, 10), UNREADABLE, FindingCode.UNREADABLE_RECORD),
        (a_range(0, 4, partition=1), RELEASED, FindingCode.SHORT_READ),
    }
