"""How claims shrink when parts of them are cut out. Pure: gives the rows to change and to enter.

1. What is cut out and what is left hold every offset of the claim once.
2. A batch keeps at most one range per partition: a cut takes a claim's beginning, its end, or all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.offsets.ranges import OffsetRange, subtract
from tallystick.domain.planning.log_changes import CutClaim
from tallystick.errors import LedgerRefused


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed row."""

    range_id: int
    batch_id: BatchId
    generation_id: GenerationId
    offsets: OffsetRange


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a former claim, with its new state; `loss_code` for a lost one only."""

    claim: Claim
    offsets: OffsetRange
    state: RangeState
    loss_code: str | None


@dataclass(frozen=True, slots=True)
class SplitClaims:
    """What becomes of the claims: rows to change first, then rows to enter."""

    changed: Sequence[Piece]
    """One per cut claim: its row is given these offsets and this state."""
    entered: Sequence[Piece]


def split_claims(claims: Iterable[Claim], cuts: Sequence[CutClaim]) -> SplitClaims:
    """The claims after the cuts; a cut whose batch has no such claim any more does nothing.

    Raises LedgerRefused for a cut that reaches out of its claim or splits it in two.
    """
    by_claim: defaultdict[tuple[str, int], list[CutClaim]] = defaultdict(list)
    for cut in cuts:
        by_claim[cut.batch_id, cut.generation_id].append(cut)
    changed: list[Piece] = []
    entered: list[Piece] = []
    for claim in claims:
        cuts_here = by_claim.get((claim.batch_id, claim.generation_id))
        if cuts_here:
            kept, *others = _pieces(claim, cuts_here)
            changed.append(kept)
            entered.extend(others)
    return SplitClaims(changed, entered)


def _pieces(claim: Claim, cuts: Sequence[CutClaim]) -> list[Piece]:
    """What is left of the claim, if anything, then what was cut out, in order."""
    gone = sorted(cuts, key=lambda each: each.offsets)
    left = subtract(claim.offsets, [each.offsets for each in gone])
    span = sum(each.offsets.span for each in gone) + sum(each.span for each in left)
    if span != claim.offsets.span or len(left) > 1:
        named = ", ".join(str(each.offsets) for each in gone)
        raise LedgerRefused(
            "shrink_claims", f"batch {claim.batch_id} claims {claim.offsets}, can't cut {named}"
        )
    standing = [Piece(claim, each, RangeState.CLAIMED, None) for each in left]
    return standing + [
        Piece(
            claim,
            each.offsets,
            each.becomes,
            each.code.value if each.becomes is RangeState.LOST else None,
        )
        for each in gone
    ]
