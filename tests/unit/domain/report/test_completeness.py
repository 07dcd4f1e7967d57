"""Complete up to: what looks prove, compared with a world in which every record's time is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.report.completeness import CompleteBy, Completeness, Proof, completeness_of
from tallystick.domain.report.held_back import held_back_by
from tallystick.domain.report.looks import Look, look_of_window
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.n3_unfinished_batch import (
    LostManifest,
    unfinished_batches,
    without_manifest,
)
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, NOON, TOPIC, TOPIC_ID, an_account
from tests.support.ledger_story import finding_of


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def a_look(
    at: int, shown: Mapping[int, int], *, topic_id: str = TOPIC_ID, leaderless: Sequence[int] = ()
) -> Look:
    partitions = sorted(shown)
    return Look(
        minute(at), topic_id, partitions, [shown[each] for each in partitions],
        frozenset(leaderless),
    )  # fmt: skip


def lives(*accounts: GenerationAccount) -> dict[int, list[GenerationAccount]]:
    found: dict[int, list[GenerationAccount]] = {}
    for each in accounts:
        found.setdefault(each.partition.partition, []).append(each)
    return found


def unbounded(verdict: Verdict = Verdict.UNKNOWN, partition: int | None = 0) -> Finding:
    return replace(
        finding_of(partition=partition, verdict=verdict),
        generation=None if partition is None else 1,
        from_offset=None,
        until_offset=None,
    )


LOST_MANIFEST = [*without_manifest(FEED, TOPIC, {"/landing/orders/b1": LostManifest()})]
LEFT_BEHIND = [
    *unfinished_batches(
        FEED, TOPIC, [WaitingBatch(BatchId("b1"), BatchState.COMMITTED, seconds=90_000.0)]
    )
]

LOOKS = [a_look(3, {0: 30, 1: 8}), a_look(2, {0: 20, 1: 8}), a_look(1, {0: 10, 1: 5})]
"""Newest first."""


def proven(
    *accounts: GenerationAccount, findings: Sequence[Finding] = (), looks: Sequence[Look] = LOOKS
) -> Completeness:
    return completeness_of(lives(*accounts), findings, looks)


@pytest.mark.parametrize(
    ("first", "second", "findings", "up_to", "why"),
    [
        (30, 8, [], 3, "all that the newest look saw is landed"),
        (29, 8, [], 2, "one offset is missing of what it saw"),
        (20, 8, [], 2, "equal is enough"),
        (30, 7, [], 1, "the feed is the least of its partitions"),
        (30, 4, [], None, "one partition has no proof"),
        (30, 8, [finding_of(20, 21)], 2, "a loss ends the clean prefix where it begins"),
        (30, 8, [finding_of(19, 40)], 1, "and one offset earlier"),
        (30, 8, [finding_of(5, 6)], None, "a loss before the oldest look"),
        (30, 8, [finding_of(30, 31)], 3, "a loss that begins behind all that was seen"),
        (30, 8, [finding_of(5, 6, verdict=Verdict.WAIVED)], 3, "two people accepted it"),
        (30, 8, [finding_of(25, 26, verdict=Verdict.SUSPECTED)], 2, "a suspicion is enough"),
        (30, 8, [unbounded()], None, "unknown, nobody knows from where on"),
        (30, 8, [unbounded(partition=None)], None, "of the whole feed"),
        (30, 8, [unbounded(Verdict.WAIVED, None)], 3, "of the whole feed, accepted"),
        (30, 8, LOST_MANIFEST, 3, "readers miss nothing of a batch that has lost its manifest"),
        (20, 8, LOST_MANIFEST, 2, "and what is not landed holds it back as ever"),
        (30, 8, [finding_of(19, 40), *LOST_MANIFEST], 1, "and so does a loss"),
        (30, 8, LEFT_BEHIND, None, "readers may miss a batch that nobody publishes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_proven(
    first: int, second: int, findings: list[Finding], up_to: int | None, why: str
) -> None:
    found = proven(
        an_account(frontier=first, last_seen_until=30),
        an_account(partition=1, frontier=second),
        findings=findings,
    )

    assert found.up_to == (None if up_to is None else minute(up_to)), why


def test_the_worst_finding_of_a_log_is_named_beside_the_one_that_ends_its_clean_prefix() -> None:
    doubt, loss = finding_of(5, 6, verdict=Verdict.UNKNOWN), finding_of(15, 16)
    late = finding_of(40, 41)
    found = proven(
        an_account(frontier=30, last_seen_until=30),
        an_account(partition=1, frontier=8),
        findings=[doubt, loss, late],
    )

    [first, _] = found.partitions
    assert (first.blocked_by, first.worst) == (doubt, loss)
    assert found.proof_of(minute(1)) is Proof.UNKNOWN, "the loss came later"


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_findings_that_begin_together_the_worse_ends_the_clean_prefix(order: int) -> None:
    findings = [finding_of(5, 6, verdict=Verdict.SUSPECTED), finding_of(5, 7)][::order]
    found = proven(an_account(frontier=30, last_seen_until=30), findings=findings)

    [first, _] = found.partitions
    assert first.blocked_by == first.worst == finding_of(5, 7)


def test_a_feed_without_partitions_or_looks_is_not_complete() -> None:
    assert proven(looks=[]).up_to is None
    assert proven(an_account(frontier=30), looks=[]).up_to is None


@pytest.mark.parametrize("landed", [[], [an_account(partition=1, frontier=4)]])
@pytest.mark.parametrize("leaderless", [[], [1]])
def test_a_look_that_does_not_list_a_partition_proves_nothing_of_it(
    landed: list[GenerationAccount], leaderless: list[int]
) -> None:
    looks = [a_look(2, {0: 10, 1: 9}), a_look(1, {0: 10}, leaderless=leaderless)]

    assert proven(an_account(frontier=10), *landed, looks=looks).up_to is None


def test_a_partition_that_was_never_written_holds_nothing_back() -> None:
    looks = [a_look(2, {0: 10, 1: 0})]

    assert proven(an_account(frontier=10), looks=looks).up_to == minute(2)


def test_a_partition_is_not_gone_because_one_look_missed_it() -> None:
    looks = [a_look(3, {0: 10, 1: 9}), a_look(2, {0: 10}), a_look(1, {0: 10, 1: 6})]

    found = proven(an_account(frontier=10), an_account(partition=1, frontier=4), looks=looks)

    assert found.up_to is None


NEW_ID = "topic-id-2"


@pytest.mark.parametrize(
    ("frontier", "findings", "up_to", "why"),
    [
        (10, [], 3, "the old log was landed to its end"),
        (9, [], None, "the old log's tail is missing"),
        (10, [finding_of(8, 10)], 1, "lost with the old log"),
        (10, [finding_of(8, 10, verdict=Verdict.WAIVED)], 3, "lost, and accepted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_new_log_counts_only_behind_an_old_one_in_order(
    frontier: int, findings: list[Finding], up_to: int | None, why: str
) -> None:
    looks = [
        a_look(3, {0: 5}, topic_id=NEW_ID), a_look(2, {0: 10}), a_look(1, {0: 8}),
    ]  # fmt: skip
    looks = looks if frontier == 10 else looks[:2]
    found = proven(
        an_account(frontier=frontier, last_seen_until=10, ordinal=1),
        an_account(frontier=5, ordinal=2, topic_id=NEW_ID, generation_id=7),
        findings=findings,
        looks=looks,
    )

    assert found.up_to == (None if up_to is None else minute(up_to)), why


CUT = replace(finding_of(12, 20), rule=RULE_OF[FindingCode.LOG_CUT], name="truncated")
STOPPED = an_account(frontier=15, last_seen_until=20, state=GenerationState.STOPPED)


@pytest.mark.parametrize(
    ("marks", "account", "findings", "up_to", "why"),
    [
        ([12, 20, 12, 9], STOPPED, [CUT], 2, "what was there before the cut is landed up to 12"),
        ([14, 12, 20, 15], STOPPED, [CUT], None, "landed, and not in the log any more"),
        ([12, 12], STOPPED, [CUT], None, "the look that showed 20 is too old to be read"),
        (
            [14, 20, 12], STOPPED, [replace(CUT, verdict=Verdict.WAIVED)], 1,
            "what came after the cut is landed by nobody, and nobody has accepted that",
        ),
        (
            [12, 20, 15], an_account(frontier=15), [], 1,
            "no finding is on record, but an earlier life of the log showed more",
        ),
        ([25, 12, 20], an_account(frontier=25), [], 3, "landed anew, beyond all that was seen"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_look_at_a_log_that_was_cut_proves_nothing_below_what_earlier_ones_showed(
    marks: list[int],
    account: GenerationAccount,
    findings: list[Finding],
    up_to: int | None,
    why: str,
) -> None:
    looks = [a_look(len(marks) - at, {0: mark}) for at, mark in enumerate(marks)]
    earlier = [an_account(frontier=15, last_seen_until=20, state=GenerationState.CLOSED)]
    newest = account if account is STOPPED else replace(account, ordinal=2, first_offset=12)
    found = completeness_of(
        lives(newest) if account is STOPPED else lives(*earlier, newest), findings, looks
    )

    assert found.up_to == (None if up_to is None else minute(up_to)), why


@pytest.mark.parametrize(
    ("marks", "up_to"), [([9, 20, 9, 8], 2), ([25, 9, 20, 10], 1), ([9, 9], None), ([9, 20], None)]
)
def test_a_look_at_a_whole_log_whose_leader_lags_proves_nothing_beyond_what_earlier_ones_showed(
    marks: list[int], up_to: int | None
) -> None:
    looks = [a_look(len(marks) - at, {0: mark}) for at, mark in enumerate(marks)]

    found = proven(an_account(frontier=10, last_seen_until=max(*marks, 20)), looks=looks)

    assert found.up_to == (None if up_to is None else minute(up_to))


@pytest.mark.parametrize(
    ("first_offset", "at", "proof"),
    [(5, 0, Proof.UNKNOWN), (5, 1, Proof.PROVEN), (0, 0, Proof.PROVEN)],
)
def test_what_was_readable_before_the_feed_began_is_unknown_unless_logs_begin_at_0(
    first_offset: int, at: int, proof: Proof
) -> None:
    account = an_account(frontier=10, first_offset=first_offset)
    looks = [a_look(2, {0: 10}), a_look(1, {0: 8})]

    found = completeness_of(lives(account), [], looks, first_look_at=minute(1))

    assert (found.up_to, found.proof_of(minute(at))) == (minute(2), proof)
    said = held_back_by(TOPIC, found, minute(at), {})
    assert bool(said) is (proof is Proof.UNKNOWN)


def test_a_look_with_a_doubt_proves_nothing_and_says_why() -> None:
    looks = [replace(LOOKS[0], doubt="HDFS was silent."), *LOOKS[1:]]

    found = proven(an_account(frontier=30), an_account(partition=1, frontier=8), looks=looks)

    assert found.up_to == minute(2)
    assert found.proof_of(minute(3)) is Proof.UNKNOWN
    assert {each.doubt for each in found.holding_back(minute(3))} == {"HDFS was silent."}


@pytest.mark.parametrize(
    ("findings", "at", "proof"),
    [
        ([], 2, Proof.PROVEN),
        ([], 3, Proof.NOT_PROVEN),
        ([], 4, Proof.NOT_PROVEN),
        ([finding_of(5, 6)], 2, Proof.NOT_PROVEN),
        ([finding_of(5, 6, verdict=Verdict.UNKNOWN)], 2, Proof.UNKNOWN),
        ([unbounded()], 2, Proof.UNKNOWN),
        ([unbounded(Verdict.PROVEN_LOSS)], 2, Proof.NOT_PROVEN),
        ([unbounded(partition=None)], 2, Proof.UNKNOWN),
    ],
)
def test_not_proven_is_told_from_unknown(findings: list[Finding], at: int, proof: Proof) -> None:
    found = proven(
        an_account(frontier=25, last_seen_until=30), an_account(partition=1, frontier=8),
        findings=findings,
    )  # fmt: skip

    assert found.proof_of(minute(at)) is proof


def test_between_two_looks_nobody_can_tell() -> None:
    found = proven(an_account(frontier=25), an_account(partition=1, frontier=8))

    assert found.proof_of(minute(2) + timedelta(seconds=1)) is Proof.UNKNOWN


def test_after_the_newest_look_nobody_can_tell() -> None:
    found = proven(an_account(frontier=30), an_account(partition=1, frontier=8))

    assert found.proof_of(minute(3)) is Proof.PROVEN
    assert found.proof_of(minute(4)) is Proof.UNKNOWN


def test_what_is_furthest_behind_is_named_first() -> None:
    found = proven(
        an_account(frontier=20), an_account(partition=1, frontier=4), an_account(partition=2),
        looks=[*LOOKS, a_look(0, {2: 0})],
    )  # fmt: skip

    assert [each.partition for each in found.holding_back(minute(3))] == [1, 2, 0]


@pytest.mark.parametrize(
    ("findings", "up_to", "why"),
    [
        ([finding_of(80, 100, partition=1)], None, "lost with the old log"),
        ([unbounded(partition=1)], None, "what was produced at its end is not known"),
        ([], 200, "all of the old log was landed, and it has no other"),
        (
            [finding_of(80, 100, partition=1, verdict=Verdict.WAIVED)], 200,
            "lost with the old log, and accepted",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_partition_that_a_new_life_lacks_is_not_proven_by_its_absence(
    findings: list[Finding], up_to: int | None, why: str
) -> None:
    gone = an_account(partition=1, frontier=100, state=GenerationState.CLOSED)
    looks = [a_look(200 - number, {0: 10}, topic_id=NEW_ID) for number in range(200)]

    found = proven(
        an_account(frontier=10, ordinal=2, topic_id=NEW_ID), gone, findings=findings, looks=looks
    )

    assert found.up_to == (None if up_to is None else minute(up_to)), why


def test_an_empty_log_in_place_of_another_proves_nothing_of_the_other() -> None:
    account = an_account(frontier=15, last_seen_until=20)
    looks = [a_look(2, {0: 0}, topic_id=NEW_ID), a_look(1, {0: 20})]

    assert completeness_of(lives(account), [], looks).up_to is None
    looks.append(a_look(0, {0: 15}))
    assert completeness_of(lives(account), [], looks).up_to == minute(0)


@dataclass(frozen=True)
class World:
    """When every record came, what is landed, what is lost; and when somebody looked."""

    came_at: Mapping[int, Sequence[int]]
    """By partition: the minute of each offset, ascending."""
    frontiers: Mapping[int, int]
    lost: Mapping[int, int | None]
    """By partition: an offset with a finding, or None."""
    looked_at: Sequence[int]

    def is_complete_up_to(self, instant: datetime) -> bool:
        """Every record that came before the instant is landed, and none of them is lost."""
        return all(
            offset < self.frontiers[partition] and not self._is_bad(partition, offset)
            for partition, minutes in self.came_at.items()
            for offset, at in enumerate(minutes)
            if minute(at) < instant
        )

    def _is_bad(self, partition: int, offset: int) -> bool:
        return offset == self.lost[partition]

    def looks(self) -> list[Look]:
        return [
            a_look(at, {partition: self.there(partition, at) for partition in self.came_at})
            for at in sorted(self.looked_at, reverse=True)
        ]

    def there(self, partition: int, at: int) -> int:
        return sum(1 for came in self.came_at[partition] if came < at)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    partitions = range(draw(st.integers(1, 3)))
    came = {p: sorted(draw(st.lists(st.integers(0, 12), max_size=8))) for p in partitions}
    return World(
        came_at=came,
        frontiers={p: draw(st.integers(0, len(came[p]))) for p in partitions},
        lost={p: draw(st.none() | st.integers(0, 7)) for p in partitions},
        looked_at=draw(st.lists(st.integers(0, 14), unique=True, max_size=6)),
    )


@given(worlds())
def test_what_is_said_to_be_complete_is_complete_and_no_look_proves_more(world: World) -> None:
    findings = [
        finding_of(offset, offset + 1, partition=partition)
        for partition, offset in world.lost.items()
        if offset is not None
    ]
    last_look = max(world.looked_at, default=0)
    accounts = [
        an_account(
            partition=p,
            frontier=f,
            last_seen_until=sum(1 for came in world.came_at[p] if came < last_look),
        )
        for p, f in world.frontiers.items()
    ]

    found = completeness_of(lives(*accounts), findings, world.looks())

    right = [minute(at) for at in world.looked_at if world.is_complete_up_to(minute(at))]
    assert found.up_to == max(right, default=None)
    for at in range(15):
        if found.proof_of(minute(at)) is Proof.PROVEN:
            assert world.is_complete_up_to(minute(at))
        if found.proof_of(minute(at)) is Proof.NOT_PROVEN:
            assert not world.is_complete_up_to(minute(at))


@dataclass(frozen=True)
class TimedWorld(World):
    """A world whose records have times of their own; none claims one that is still to come."""

    times: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """By partition: the minute that each record claims, in any order."""

    def looks(self) -> list[Look]:
        """Of each window what its looks prove, the newest one first."""
        of_windows: dict[int, list[Look]] = {}
        for at, look in zip(sorted(self.looked_at), reversed(super().looks()), strict=True):
            borders = [self._border(partition, at) for partition in look.partitions]
            seen = replace(look, border_at=minute(at - at % 4), borders=borders)
            of_windows.setdefault(at - at % 4, []).append(seen)
        newest_first = sorted(of_windows, reverse=True)
        return [
            look_of_window(of_windows[each][0], of_windows[each][1:], ()) for each in newest_first
        ]

    def _border(self, partition: int, at: int) -> int:
        """What the time index says of the newest window that is over."""
        there = self.there(partition, at)
        later = (offset for offset in range(there) if self.times[partition][offset] >= at - at % 4)
        return next(later, there)

    def lacks(self, window_end: int) -> set[tuple[int, int, bool]]:
        """By partition and offset what is not landed, or lost, of the window and earlier ones, of
        the records that the log had at the first look at the window; with: did it come late?
        """
        at = min(each for each in self.looked_at if each - each % 4 == window_end)
        return {
            (partition, offset, offset >= self._border(partition, at))
            for partition, times in self.times.items()
            for offset in range(self.there(partition, at))
            if times[offset] < window_end
            and (offset >= self.frontiers[partition] or self._is_bad(partition, offset))
        }


@st.composite
def timed_worlds(draw: st.DrawFn) -> TimedWorld:
    world = draw(worlds())
    times = {
        partition: [came - draw(st.integers(0, 6)) for came in minutes]
        for partition, minutes in world.came_at.items()
    }
    return TimedWorld(world.came_at, world.frontiers, world.lost, world.looked_at, times)


@given(timed_worlds())
def test_by_record_time_a_window_lacks_nothing_that_was_there_but_what_came_late(
    world: TimedWorld,
) -> None:
    looks = world.looks()
    ends = {p: max([0, *(world.there(p, at) for at in world.looked_at)]) for p in world.lost}
    accounts = [
        an_account(partition=each, frontier=frontier, last_seen_until=ends[each])
        for each, frontier in world.frontiers.items()
    ]
    findings = [
        finding_of(lost, lost + 1, partition=each)
        for each, lost in world.lost.items()
        if lost is not None
    ]

    found = completeness_of(lives(*accounts), findings, looks, by=CompleteBy.RECORD_TIME)

    if found.up_to:
        window_end = int((found.up_to - NOON) / timedelta(minutes=1))
        assert all(is_late for _, _, is_late in world.lacks(window_end))
