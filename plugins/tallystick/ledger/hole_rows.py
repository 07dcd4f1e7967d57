"""Holes into the ledger: entered with a commit, folded days later, unfolded for a repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.identities import FeedName
from tallystick.ledger.connection import Transaction

# One row never grows beyond this, however many holes a compacted topic has.
RUNS_PER_PIECE: Final = 10_000
_KEPT_FOR: Final = timedelta(days=2)
"""Then until its day is over, so that rows are folded once a day and not every hour."""
_RUNS_OF_SHORT: Final = 144
"""A folded row with fewer takes more in: six days of one hole an hour, which is where the server
compresses a row well, and does not move it out of its page.
"""
_LOGS_AT_ONCE: Final = 500
"""The feed's commits wait for as long as that takes: about a second."""


def enter_holes(transaction: Transaction, manifest: Manifest) -> None:
    """Keep the holes that the manifest has proven."""
    pieces = list(_pieces_of(manifest.ranges))
    if not pieces:
        return
    transaction.change(
        "commit_holes",
        batch_id=manifest.plan.batch_id,
        generation_ids=[each.generation_id for each in pieces],
        classes=[each.hole_class for each in pieces],
        positions=[each.position for each in pieces],
        runs=[each.multirange for each in pieces],
        hole_counts=[each.hole_count for each in pieces],
    )


def fold_holes(transaction: Transaction, feed: FeedName) -> int:
    """How many rows now stand for the holes of several old batches; the generations are locked."""
    return transaction.change(
        "fold_holes",
        feed=feed,
        kept=_KEPT_FOR,
        most=_LOGS_AT_ONCE,
        runs_per_piece=RUNS_PER_PIECE,
        runs_of_short=_RUNS_OF_SHORT,
    )


def unfold_holes(transaction: Transaction, proofs: Iterable[Manifest]) -> None:
    """Give the batches of these proofs their holes back, as rows of their own; the generations are
    locked.
    """
    pieces = [(proof.plan.batch_id, each) for proof in proofs for each in _pieces_of(proof.ranges)]
    if not pieces:
        return
    transaction.change(
        "unfold_holes",
        batch_ids=[batch_id for batch_id, _ in pieces],
        generation_ids=[each.generation_id for _, each in pieces],
        classes=[each.hole_class for _, each in pieces],
        runs=[each.multirange for _, each in pieces],
    )


def _pieces_of(ranges: Iterable[AccountedRange]) -> Iterator[HolePiece]:
    return (piece for each in ranges for piece in hole_pieces(each, RUNS_PER_PIECE))


@dataclass(frozen=True, slots=True)
class HolePiece:
    """Some of the holes of one class in one range, as PostgreSQL writes a multirange."""

    generation_id: int
    hole_class: str
    position: int
    multirange: str
    hole_count: int


def hole_pieces(accounted: AccountedRange, runs_per_piece: int) -> Iterator[HolePiece]:
    """The range's holes in pieces of at most so many runs; together they are all of them."""
    for hole_class, holes in accounted.holes.items():
        runs = list(holes)
        for start in range(0, len(runs), runs_per_piece):
            piece = runs[start : start + runs_per_piece]
            yield HolePiece(
                generation_id=accounted.planned.generation_id,
                hole_class=hole_class.value,
                position=start // runs_per_piece,
                multirange="{" + ",".join(f"[{a},{b})" for a, b in piece) + "}",
                hole_count=sum(b - a for a, b in piece),
            )
