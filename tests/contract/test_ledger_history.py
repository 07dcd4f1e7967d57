"""Frontiers against brute force, many runs at once, and a history that stays small."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from random import Random
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.states import CommitAnswer
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import (
    OffsetRange,
    frontier_of,
    overlaps_in,
    subtract,
    union_of,
)
from tallystick.domain.planning.log_changes import LogChanges, LostRange
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import AttemptFenced, BatchBusy, ClaimConflict
from tallystick.ledger.statements import statement
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, NO_TIME, TOPIC, LedgerStory

# One outcome for each piece of a small log: left alone, claimed, committed, lost.
PIECES = st.lists(st.sampled_from(["gap", "claimed", "committed", "lost"]), min_size=1, max_size=8)


@settings(max_examples=20)
@given(pieces=PIECES, sizes=st.lists(st.integers(1, 5), min_size=8, max_size=8), data=st.data())
def test_the_frontier_is_what_brute_force_says(
    story: LedgerStory, pieces: list[str], sizes: list[int], data: st.DataObject
) -> None:
    """Whatever is committed or lost, in any order: the end of the contiguous prefix."""
    partition = len(story.generations)
    story.open({partition: (3, 100)})
    generation = story.account(partition)
    cuts = [3]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    ranges = {
        number: OffsetRange(generation.partition, cuts[number], cuts[number + 1])
        for number in range(len(pieces))
    }
    for number in data.draw(st.permutations(list(ranges))):
        carry_out(story, pieces[number], ranges[number], generation)
    account = story.account(partition)
    settled = [ranges[n] for n, kind in enumerate(pieces) if kind in ("committed", "lost")]
    taken = [ranges[n] for n, kind in enumerate(pieces) if kind != "gap"]
    assert account.frontier == frontier_of(3, settled)
    assert union_of(account.beyond) == union_of(
        each for each in taken if each.until_offset > account.frontier
    )


def carry_out(
    story: LedgerStory, kind: str, offsets: OffsetRange, generation: GenerationAccount
) -> None:
    """Bring one piece of the log into its state."""
    triple = (offsets.partition.partition, offsets.from_offset, offsets.until_offset)
    if kind == "claimed":
        story.planned(triple)
    elif kind == "committed":
        story.committed(triple)
    elif kind == "lost":
        lost = LostRange(generation.generation_id, offsets, FindingCode.EXPIRED)
        story.change(LogChanges(lost=[lost]))


def test_many_runs_at_once_land_every_offset_once(story: LedgerStory) -> None:
    """Four runs plan, adopt, race and commit on one feed; each offset is committed exactly once."""
    until, partitions = 120, 3
    story.open(dict.fromkeys(range(partitions), (0, until)))
    runs = [Run(story.another(), number, until) for number in range(4)]
    threads = [threading.Thread(target=run.carry_on) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [error for run in runs for error in run.errors] == []
    accounts = story.generations.values()
    assert {each.frontier for each in accounts} == {until}
    committed = [each.planned.offsets for manifest in story.manifests() for each in manifest.ranges]
    assert overlaps_in(committed) == ()
    assert [(each.from_offset, each.until_offset) for each in union_of(committed)] == [
        (0, until)
    ] * partitions


class Run:
    """One run after another of the same feed, as a process of its own."""

    def __init__(self, story: LedgerStory, number: int, until: int) -> None:
        self.story, self.owner, self.until = story, Owner(f"run {number}"), until
        self.random = Random(number)
        self.errors: list[BaseException] = []

    def carry_on(self) -> None:
        """Plan and commit until nothing is left; every third attempt dies and is taken over."""
        deadline = time.monotonic() + 50
        try:
            while time.monotonic() < deadline and not self.is_done():
                self.once()
        except BaseException as error:  # noqa: BLE001 - carried to the test's own thread
            self.errors.append(error)
        finally:
            self.story.ledger.close()

    def is_done(self) -> bool:
        return all(each.frontier == self.until for each in self.story.generations.values())

    def once(self) -> None:
        for batch_id in self.plan():
            try:
                attempt = self.story.ledger.begin_attempt(
                    batch_id, attempt_id=AttemptId(token_hex(8)), owner=self.owner, lease=NO_TIME
                )
                if attempt is None:  # a rival has committed it
                    continue
                if self.random.random() < 0.3:
                    return
                self.story.verify(attempt)
                assert self.story.ledger.commit(attempt) is CommitAnswer.COMMITTED
            except (AttemptFenced, BatchBusy):
                continue

    def plan(self) -> list[BatchId]:
        with self.story.ledger.planning(FEED, TOPIC) as session:
            accounts = session.accounts()
            ranges = []
            for partition, account in accounts.generations.items():
                if account.frontier < self.until:
                    due = OffsetRange(account.partition, account.frontier, self.until)
                    gaps = subtract(due, account.beyond)
                    ranges += [
                        (partition, gap.from_offset, min(gap.until_offset, gap.from_offset + 10))
                        for gap in gaps[:1]
                    ]
            batch = self.story.batch_of(*ranges, generations=accounts.generations)
            adopted = [each.plan.batch_id for each in accounts.unfinished]
            frozen = session.freeze(
                None, [batch] if ranges else [], adopted, owner=self.owner, lease=NO_TIME
            )
        return [each.plan.batch_id for each in (*frozen.adopted, *frozen.batches)]


# Folding ------------------------------------------------------------------------------------------


def stored_ranges(story: LedgerStory) -> list[tuple[Any, ...]]:
    return story.ask(
        "SELECT offsets::text, record_count, hole_count FROM offset_range"
        " WHERE state = 'committed' ORDER BY generation_id, offsets"
    )


def published(story: LedgerStory, *ranges: tuple[int, int, int]) -> None:
    story.ledger.mark_published(story.committed(*ranges).batch_id)


def test_folding_keeps_offsets_counts_and_proofs(story: LedgerStory) -> None:
    story.open({0: (0, 1000), 1: (0, 1000)})
    for start in range(0, 50, 10):
        published(story, (0, start, start + 10), (1, start, start + 10))
    lost = LostRange(
        story.account(1).generation_id,
        OffsetRange(story.account(1).partition, 50, 60),
        FindingCode.EXPIRED,
    )
    story.change(LogChanges(lost=[lost]))
    published(story, (1, 60, 70))
    published(story, (1, 70, 80))
    before = (
        story.ledger.accounts(FEED),
        story.ledger.batches(FEED),
        story.ledger.files(FEED),
        story.manifests(),
        story.ledger.lost(FEED),
    )
    assert story.ledger.fold(FEED) == 3
    assert stored_ranges(story) == [("[0,50)", 50, 0), ("[0,50)", 50, 0), ("[60,80)", 20, 0)]
    after = (
        story.ledger.accounts(FEED),
        story.ledger.batches(FEED),
        story.ledger.files(FEED),
        story.manifests(),
        story.ledger.lost(FEED),
    )
    assert after == before
    assert story.ledger.fold(FEED) == 0
    published(story, (0, 50, 60))
    assert story.ledger.fold(FEED) == 1


def test_folding_leaves_alone_what_is_not_published_or_beyond_the_frontier(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 1000)})
    published(story, (0, 0, 10))
    story.committed((0, 10, 20))
    published(story, (0, 30, 40))
    published(story, (0, 40, 50))
    assert story.ledger.fold(FEED) == 0
    assert story.ledger.fold(FeedName("other")) == 0
    assert len(stored_ranges(story)) == 4


def test_folded_offsets_are_still_taken(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    published(story, (0, 0, 10))
    published(story, (0, 10, 20))
    story.ledger.fold(FEED)
    with pytest.raises(ClaimConflict, match=r"orders-0 \[5, 15\) overlaps \[0, 20\)"):
        story.planned((0, 5, 15))


@pytest.mark.parametrize(
    "fold_by_hand",
    [
        "DELETE FROM offset_range",
        "DELETE FROM offset_range WHERE lower(offsets) = 0",
        """WITH gone AS (DELETE FROM offset_range WHERE state = 'committed')
           INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
           VALUES (1, '[0,19)', 'committed', 19, 0)""",
        """WITH gone AS (DELETE FROM offset_range WHERE state = 'committed')
           INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
           VALUES (1, '[0,30)', 'committed', 30, 0)""",
        """WITH gone AS (DELETE FROM offset_range WHERE state = 'lost')
           INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
           VALUES (1, '[20,25)', 'committed', 5, 0)""",
    ],
)
def test_nothing_is_forgotten_by_folding_wrongly(story: LedgerStory, fold_by_hand: str) -> None:
    story.open({0: (0, 1000)})
    published(story, (0, 0, 10))
    published(story, (0, 10, 20))
    generation = story.account()
    lost = LostRange(
        generation.generation_id, OffsetRange(generation.partition, 20, 25), FindingCode.EXPIRED
    )
    story.change(LogChanges(lost=[lost]))
    before = stored_ranges(story)
    with story.raw() as hand, pytest.raises(psycopg.Error):
        hand.execute(fold_by_hand.encode())
    assert stored_ranges(story) == before


@pytest.fixture
def long_history(story: LedgerStory, ledger_server: LedgerServer, ledger_database: str) -> int:
    """Rows of history: 100 partitions with 300 committed ranges each, one open claim in all."""
    story.open(dict.fromkeys(range(100), (0, 100000)))
    with psycopg.connect(ledger_server.admin_dsn(ledger_database), autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")  # no triggers: years in a second
        admin.execute(
            """INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
               SELECT g.generation_id, int8range(n * 10, n * 10 + 10), 'committed', 10, 0
                 FROM generate_series(0, 299) n, generation g"""
        )
        admin.execute("UPDATE generation SET frontier = 3000")
        admin.execute("ANALYZE")
    story.planned((7, 3000, 3010))
    return 30_000


def test_a_long_history_is_not_read_by_a_plan(story: LedgerStory, long_history: int) -> None:
    """What a plan reads grows with what is open, not with what was landed."""
    with story.raw() as hand:
        (plan,) = hand.execute(
            b"EXPLAIN (ANALYZE, BUFFERS OFF, FORMAT JSON) " + statement("newest_generations").query,
            {"feed": FEED},
        ).fetchone() or (None,)
    touched = [
        node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0)
        for node in nodes_of(plan[0]["Plan"])
        if node.get("Relation Name") == "offset_range"
    ]
    assert len(touched) == 1
    assert touched[0] <= 100, f"{touched[0]} of {long_history} ranges were read"
    assert story.account(7).beyond == (OffsetRange(story.account(7).partition, 3000, 3010),)


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The node and all below it."""
    yield node
    for each in node.get("Plans", ()):
        yield from nodes_of(each)
