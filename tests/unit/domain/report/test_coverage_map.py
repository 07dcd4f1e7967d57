"""The coverage map: cut by looks, compared with a world in which every offset's fate is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.report.coverage_map import (
    MOST_BLOCKS,
    MOST_COLUMNS,
    borders_of,
    coverage_map,
    edges_of,
    step_of,
)
from tallystick.domain.report.looks import Look
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.verdicts import Verdict
from tests.support.builders import NOON, TOPIC_ID, an_account
from tests.support.ledger_story import finding_of

HOUR = timedelta(hours=1)
OK, UNKNOWN, LOSS = Verdict.PROVEN_OK, Verdict.UNKNOWN, Verdict.PROVEN_LOSS


def hour(number: float) -> datetime:
    return NOON + HOUR * number


def a_look(at: int, shown: Mapping[int, int], topic_id: str = TOPIC_ID) -> Look:
    return Look(hour(at), topic_id, sorted(shown), [shown[each] for each in sorted(shown)])


LOOKS = [a_look(0, {0: 10}), a_look(1, {0: 20}), a_look(2, {0: 30})]
EDGES = tuple(hour(each) for each in (-1, 0, 1, 2))


def row(
    *accounts: GenerationAccount,
    findings: Sequence[Finding] = (),
    looks: Sequence[Look] = LOOKS,
    edges: tuple[datetime, ...] = EDGES,
) -> list[Verdict]:
    """The cells of partition 0."""
    found = coverage_map(edges, looks, {0: list(accounts)} if accounts else {}, findings)
    return list(found.blocks[0].verdicts)


NO_INTERVAL = replace(finding_of(verdict=UNKNOWN), from_offset=None, until_offset=None)


@pytest.mark.parametrize(
    ("frontier", "findings", "cells", "why"),
    [
        (30, [], [OK, OK, OK], "all is landed"),
        (29, [], [OK, OK, UNKNOWN], "one offset is not"),
        (9, [], [UNKNOWN] * 3, "not even what came before the first look"),
        (30, [finding_of(20, 21)], [OK, OK, LOSS], "a loss is in the column of its offsets"),
        (30, [finding_of(19, 21)], [OK, LOSS, LOSS], "or in both that it touches"),
        (30, [finding_of(0, 5)], [LOSS, OK, OK], "what came before the first look is in the first"),
        (30, [finding_of(30, 40)], [OK, OK, OK], "nobody has seen these offsets"),
        (25, [finding_of(21, 22)], [OK, OK, LOSS], "a loss is worse than unknown"),
        (25, [finding_of(1, 2, verdict=Verdict.WAIVED)], [Verdict.WAIVED, OK, UNKNOWN], "waived"),
        (30, [NO_INTERVAL], [UNKNOWN] * 3, "without an interval it is about all"),
        (30, [finding_of(0, 9, partition=1)], [OK, OK, OK], "of another partition"),
        (30, [finding_of(0, 9, partition=None)], [OK, OK, OK], "of the whole feed: not in the map"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cell(frontier: int, findings: list[Finding], cells: list[Verdict], why: str) -> None:
    assert row(an_account(frontier=frontier, last_seen_until=30), findings=findings) == cells, why


def test_without_a_witness_nothing_is_in_order_and_a_loss_is_still_a_loss() -> None:
    silent = replace(
        NO_INTERVAL,
        rule=RULE_OF[FindingCode.COULD_NOT_TELL],
        name="",
        partition=None,
        generation=None,
    )

    found = row(an_account(frontier=30), findings=[silent, finding_of(20, 21)])

    assert found == [UNKNOWN, UNKNOWN, LOSS]


def test_a_row_of_one_partition_says_where_each_look_ended() -> None:
    looks = [LOOKS[0], a_look(1, {}), LOOKS[2]]

    found = coverage_map((*EDGES, hour(3)), looks, {0: [an_account(frontier=30)]}, [])

    assert found.blocks[0].until_offsets == (10, None, 30)


def test_what_nobody_has_planned_is_unknown() -> None:
    assert row() == [UNKNOWN] * 3


def test_what_nobody_has_seen_yet_is_unknown() -> None:
    later = (*EDGES, hour(3))

    assert row(an_account(frontier=30), edges=later) == [OK, OK, OK, UNKNOWN]
    assert row(an_account(frontier=30), edges=later, findings=[finding_of(5, 6)])[-1] is UNKNOWN


def test_a_partition_that_a_look_does_not_show_is_unknown() -> None:
    looks = [LOOKS[0], a_look(1, {}), LOOKS[2]]

    found = row(an_account(frontier=30), looks=looks, findings=[finding_of(40, 41)])

    assert found == [OK, UNKNOWN, OK]


def test_a_column_in_which_a_topic_was_re_created_holds_the_ends_of_both_logs() -> None:
    new = "topic-id-2"
    looks = [a_look(0, {0: 10}), a_look(1, {0: 5}, new), a_look(2, {0: 8}, new)]
    old = an_account(frontier=12, last_seen_until=12)
    now = an_account(frontier=8, ordinal=2, topic_id=new, generation_id=7)

    assert row(old, now, looks=looks) == [OK, OK, OK]
    assert row(replace(old, frontier=11), now, looks=looks) == [OK, UNKNOWN, OK]
    assert row(old, now, looks=looks, findings=[finding_of(11, 12)]) == [OK, LOSS, OK]
    second = replace(finding_of(6, 7), generation=2)
    assert row(old, now, looks=looks, findings=[second]) == [OK, OK, LOSS]


def test_many_partitions_share_a_row_and_the_worst_shows() -> None:
    partitions = range(1_000)
    looks = [a_look(0, dict.fromkeys(partitions, 10))]
    accounts = {p: [an_account(partition=p, frontier=10)] for p in partitions}
    accounts[500] = [an_account(partition=500, frontier=9)]

    found = coverage_map((hour(-1), hour(0)), looks, accounts, [finding_of(1, 2, partition=3)])

    assert len(found.blocks) <= MOST_BLOCKS
    assert (found.blocks[0].first_partition, found.blocks[-1].last_partition) == (0, 999)
    assert (found.blocks[0].verdicts, found.blocks[0].counts) == ((LOSS,), (1,))
    grey = next(each for each in found.blocks if each.first_partition <= 500 <= each.last_partition)
    assert (grey.verdicts, grey.counts) == ((UNKNOWN,), (1,))
    assert {each.verdicts for each in found.blocks} == {(LOSS,), (UNKNOWN,), (OK,)}


@given(st.integers(0, 4_000), st.integers(0, 59))
def test_a_long_history_has_few_columns(hours: int, minutes: int) -> None:
    history = timedelta(hours=hours * 9, minutes=minutes)
    looks_at = [NOON, *(NOON + history * (each / 50) for each in range(1, 51))]

    borders = borders_of(looks_at, looks_at[-1])

    assert 1 <= len(edges_of(borders, looks_at[-1])) - 1 <= MOST_COLUMNS
    assert step_of(history) > timedelta(0)


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=30).map(sorted), st.integers(0, 5_000))
def test_each_border_has_the_first_look_that_is_not_before_it(
    minutes: list[int], until: int
) -> None:
    looks_at = [NOON + timedelta(minutes=each) for each in minutes]
    end = NOON + timedelta(minutes=until)

    borders = borders_of(looks_at, end)

    instants = [instant for instant, _ in borders]
    indices = [index for _, index in borders]
    assert instants == sorted(set(instants))
    assert indices == sorted(set(indices))
    assert indices[-1] == len(looks_at) - 1
    for instant, index in borders:
        assert looks_at[index] >= instant
    for instant, index in borders[:-1]:
        assert all(each < instant for each in looks_at[:index])
    edges = edges_of(borders, end)
    assert list(edges) == sorted(set(edges))
    assert len(edges) - 1 in (len(borders), len(borders) + 1)


def test_without_a_look_there_is_no_map() -> None:
    assert borders_of([], NOON) == ()
    assert edges_of((), NOON) == ()
    assert coverage_map((), [], {0: [an_account(frontier=3)]}, []).blocks == ()


@dataclass(frozen=True)
class World:
    """A log by columns: how many offsets each holds, how far it is landed, and what is lost."""

    sizes: Sequence[int]
    frontier: int
    lost: frozenset[int]

    def fate(self, column: int) -> Verdict:
        """By every single offset."""
        from_offset = sum(self.sizes[:column])
        offsets = range(from_offset, from_offset + self.sizes[column])
        if any(each in self.lost for each in offsets):
            return LOSS
        return OK if all(each < self.frontier for each in offsets) else UNKNOWN


@st.composite
def worlds(draw: st.DrawFn) -> World:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    offsets = st.integers(0, sum(sizes))
    return World(sizes, draw(offsets), draw(st.frozensets(offsets, max_size=3)))


@given(worlds())
def test_every_cell_is_the_fate_of_its_offsets(world: World) -> None:
    columns = range(len(world.sizes))
    looks = [a_look(each, {0: sum(world.sizes[: each + 1])}) for each in columns]
    account = an_account(frontier=world.frontier, last_seen_until=sum(world.sizes))
    findings = [finding_of(each, each + 1) for each in world.lost]

    cells = row(
        account, findings=findings, looks=looks,
        edges=tuple(hour(each) for each in range(-1, len(world.sizes))),
    )  # fmt: skip

    assert cells == [world.fate(each) for each in columns]
