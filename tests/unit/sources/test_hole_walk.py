"""The rules of the walk by tables, then against a brute-force log, whatever way answers are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.sources.hole_walk import AbortedTransaction, FetchAnswer, HoleWalk
from tests.support.kafka_batches import ABORT, COMMIT, a_batch, a_marker

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
CONTROL, ABORTED, COMPACTED = HoleClass.CONTROL, HoleClass.ABORTED, HoleClass.COMPACTED
Pairs = list[tuple[int, int]]


def transactional(base: int, until: int, producer: int, **more: object) -> bytes:
    return a_batch(base, until, producer=producer, is_transactional=True, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    name: str
    log: Sequence[bytes]
    holes: Pairs
    explained: dict[HoleClass, Pairs]
    bare: Pairs
    aborted: Sequence[tuple[int, int]] = ()
    isolation: Isolation = COMMITTED
    readable_until: int = 100


DATA_THEN_MARKER = [transactional(0, 3, 7), a_marker(3, 7, COMMIT)]
ABORTED_LOG = [
    transactional(0, 3, 7),
    a_marker(3, 7, ABORT),
    transactional(4, 6, 7),
    a_marker(6, 7, COMMIT),
]

CASES = [
    Case("marker", DATA_THEN_MARKER, [(3, 4)], {CONTROL: [(3, 4)]}, []),
    Case("record there", DATA_THEN_MARKER, [(1, 2)], {}, []),
    Case("record there, marker", DATA_THEN_MARKER, [(1, 4)], {CONTROL: [(3, 4)]}, []),
    Case(
        "cleaned marker",
        [a_marker(0, 7, COMMIT, is_cleaned=True)],
        [(0, 1)],
        {CONTROL: [(0, 1)]},
        [],
    ),
    Case(
        "aborted",
        ABORTED_LOG,
        [(0, 4), (6, 7)],
        {CONTROL: [(3, 4), (6, 7)], ABORTED: [(0, 3)]},
        [],
        [(7, 0)],
    ),
    Case(
        "abort ends at its marker",
        ABORTED_LOG,
        [(0, 6)],
        {CONTROL: [(3, 4)], ABORTED: [(0, 3)]},
        [],
        [(7, 0)],
    ),
    Case("aborted, not in the list", ABORTED_LOG, [(0, 3)], {}, [], []),
    Case(
        "aborted, uncommitted",
        ABORTED_LOG,
        [(0, 4)],
        {CONTROL: [(3, 4)]},
        [],
        [(7, 0)],
        UNCOMMITTED,
    ),
    Case(
        "another producer's",
        [a_batch(0, 2, producer=8), *ABORTED_LOG[1:]],
        [(0, 2)],
        {},
        [],
        [(7, 0)],
    ),
    Case("same producer, no transaction", [a_batch(0, 2, producer=7)], [(0, 2)], {}, [], [(7, 0)]),
    Case(
        "abort began before the answer",
        [transactional(5, 8, 7)],
        [(5, 8)],
        {ABORTED: [(5, 8)]},
        [],
        [(7, 1)],
    ),
    Case("abort begins later", [transactional(5, 8, 7)], [(5, 8)], {}, [], [(7, 8)]),
    Case(
        "inside a batch",
        [a_batch(0, 9, offsets=[2, 8])],
        [(0, 2), (3, 8)],
        {COMPACTED: [(0, 2), (3, 8)]},
        [],
    ),
    Case(
        "survivor lost",
        [a_batch(0, 9, offsets=[2, 8])],
        [(0, 9)],
        {COMPACTED: [(0, 2), (3, 8)]},
        [],
    ),
    Case("emptied batch", [a_batch(0, 9, offsets=[])], [(0, 9)], {COMPACTED: [(0, 9)]}, []),
    Case("complete batch", [a_batch(0, 9)], [(3, 5)], {}, []),
    Case(
        "cleaned inside an abort",
        [transactional(0, 9, 7, offsets=[2, 3])],
        [(0, 9)],
        {ABORTED: [(2, 4)], COMPACTED: [(0, 2), (4, 9)]},
        [],
        [(7, 0)],
    ),
    Case("no header below", [a_batch(6, 9)], [(2, 6)], {}, [(2, 6)]),
    Case("no header between", [a_batch(0, 3), a_batch(6, 9)], [(2, 7)], {}, [(3, 6)]),
    Case("no header up to the end", [], [(2, 7)], {}, [(2, 7)], readable_until=9),
    Case("no header, beyond the end", [], [(2, 7)], {}, [(2, 4)], readable_until=4),
    Case("log cut", [], [(2, 7)], {}, [], readable_until=2),
    Case(
        "old batch first",
        [a_batch(0, 3), a_marker(3, 7, COMMIT)],
        [(2, 4)],
        {CONTROL: [(3, 4)]},
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_answer(case: Case) -> None:
    walk = HoleWalk(OffsetRuns.of(case.holes), case.isolation)
    aborted = [AbortedTransaction(*each) for each in case.aborted]
    walk.take(FetchAnswer(b"".join(case.log), aborted, case.readable_until))
    found = {kind: list(runs) for kind, runs in walk.explained().items()}
    assert (found, list(walk.bare())) == (case.explained, case.bare)


def test_the_walk_goes_from_hole_to_hole() -> None:
    walk = HoleWalk(OffsetRuns.of([(3, 5), (50, 51), (90, 92)]), COMMITTED)
    assert walk.next_offset == 3
    assert walk.take(FetchAnswer(a_marker(3, 7, COMMIT), [], 100)) == 0
    assert walk.next_offset == 4
    assert walk.take(FetchAnswer(a_batch(4, 60), [], 100)) == 2
    assert walk.next_offset == 90
    walk.pass_over(91)
    assert walk.next_offset == 91
    assert walk.take(FetchAnswer(a_marker(91, 7, COMMIT), [], 100)) == 1
    assert walk.next_offset is None
    assert walk.explained() == {CONTROL: OffsetRuns.of([(3, 4), (91, 92)])}
    with pytest.raises(ValueError, match="the walk is over"):
        walk.take(FetchAnswer(b"", [], 100))


def test_an_answer_that_does_not_reach_the_hole_ends_the_walk() -> None:
    """No broker gives one; a walk that waits for it would never end."""
    walk = HoleWalk(OffsetRuns.of([(5, 6), (20, 30)]), COMMITTED)
    walk.take(FetchAnswer(a_batch(0, 3), [], 100))
    assert (walk.next_offset, walk.explained(), walk.bare()) == (None, {}, OffsetRuns())


def test_no_holes_no_walk() -> None:
    assert HoleWalk(OffsetRuns(), COMMITTED).next_offset is None


@dataclass(frozen=True)
class Part:
    """A piece of a made-up log: a batch, or offsets that lost theirs."""

    span: int
    kind: str  # data, gone, abort, commit
    producer: int
    kept: frozenset[int]


parts = st.builds(
    Part,
    span=st.integers(1, 6),
    kind=st.sampled_from(["data", "data", "gone", "abort", "commit"]),
    producer=st.integers(0, 2),
    kept=st.frozensets(st.integers(0, 5)),
)


class MadeUpLog:
    """Batches, their truth by offset, and answers as a broker would give them."""

    def __init__(self, pieces: Sequence[Part]) -> None:
        self.batches: list[tuple[int, int, bytes]] = []
        self.truth: list[str] = []
        self.aborts: list[tuple[int, int, int]] = []
        open_since: dict[int, int] = {}
        for piece in pieces:
            base = len(self.truth)
            if piece.kind == "gone":
                self.truth += ["bare"] * piece.span
            elif piece.kind == "data":
                open_since.setdefault(piece.producer, base)
                self._data(base, piece)
            else:
                self._marker(base, piece, open_since.pop(piece.producer, base))
        self.until = len(self.truth)

    def _data(self, base: int, piece: Part) -> None:
        kept = [base + each for each in sorted(piece.kept) if each < piece.span]
        raw = transactional(base, base + piece.span, piece.producer, offsets=kept)
        self.batches.append((base, base + piece.span, raw))
        self.truth += [
            f"data {piece.producer}" if offset in kept else "compacted"
            for offset in range(base, base + piece.span)
        ]

    def _marker(self, base: int, piece: Part, since: int) -> None:
        self.batches.append((base, base + 1, a_marker(base, piece.producer, piece.kind)))  # type: ignore[arg-type]
        self.truth.append("control")
        if piece.kind == "abort":
            self.aborts.append((piece.producer, since, base))
            mine = f"data {piece.producer}"
            for offset in range(since, base):
                if self.truth[offset] == mine:
                    self.truth[offset] = "aborted"

    def answer(self, offset: int, batches: int) -> FetchAnswer:
        ahead = [each for each in self.batches if each[1] > offset][:batches]
        reach = ahead[-1][1] if ahead else self.until
        aborted = [
            AbortedTransaction(producer, since)
            for producer, since, marker in self.aborts
            if marker >= offset and since < reach
        ]
        return FetchAnswer(b"".join(raw for _, _, raw in ahead), aborted, self.until)


@given(st.lists(parts, min_size=1, max_size=25), st.data())
def test_any_log_cut_in_any_way_is_explained_as_it_was_made(
    pieces: list[Part], data: st.DataObject
) -> None:
    log = MadeUpLog(pieces)
    holes = data.draw(st.frozensets(st.integers(0, log.until - 1)))
    walk = HoleWalk(OffsetRuns.of((each, each + 1) for each in holes), COMMITTED)
    while (offset := walk.next_offset) is not None:
        walk.take(log.answer(offset, data.draw(st.integers(1, 4))))
    found = {kind.value: set(_offsets(runs)) for kind, runs in walk.explained().items()}
    found["bare"] = set(_offsets(walk.bare()))
    for kind in ("control", "aborted", "compacted", "bare"):
        expected = {offset for offset in holes if log.truth[offset] == kind}
        assert found.get(kind, set()) == expected, kind


def _offsets(runs: OffsetRuns) -> list[int]:
    return [offset for start, until in runs for offset in range(start, until)]
