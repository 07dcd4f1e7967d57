"""What a broker snapshot changes in the ledger: cuts, losses, ended and opened generations.

Performs what `LogChanges` decided, in the order named there; decides nothing. Where claims are cut:

1. What is cut out and what is left hold every offset of the claim once.
2. A batch keeps at most one range per partition: a cut takes a claim's beginning, its end, or all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import FeedName, GenerationId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, subtract
from tallystick.domain.planning.log_changes import (
    CutClaim,
    EndedGeneration,
    LogChanges,
    LostRange,
    OpenedGeneration,
)
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import Transaction
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.rows import Claim, claims_of, offset_columns
from tallystick.ledger.texts import evidence_json, storable


@dataclass(frozen=True, slots=True)
class LookBegun:
    """A look at the broker that begins now, as the ledger saw it."""

    look_number: int
    """Its place in the order of all looks, whenever they end."""
    begun_at: datetime
    """By the ledger's clock."""


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


def begun_look(transaction: Transaction) -> LookBegun:
    """A look that begins now."""
    begun = transaction.one("begin_look")
    return LookBegun(int(begun.look_number), begun.begun_at)


def record_snapshot(
    transaction: Transaction,
    feed: FeedName,
    snapshot: BrokerSnapshot,
    begun: LookBegun,
    doubt: str | None = None,
) -> int:
    """The id under which the snapshot is kept."""
    shown = Shown.in_snapshot(snapshot)
    recorded = transaction.one(
        "record_snapshot",
        feed=feed,
        look_number=begun.look_number,
        begun_at=begun.begun_at,
        taken_at=snapshot.taken_at,
        cluster_id=snapshot.cluster_id,
        topic=snapshot.topic,
        topic_id=snapshot.topic_id,
        is_compacted=snapshot.is_compacted,
        retention_ms=snapshot.retention_ms,
        retention_bytes=snapshot.retention_bytes,
        border_at=snapshot.border.instant if snapshot.border else None,
        shown=shown.compressed(),
        log_start_sum=sum(shown.log_start_offsets),
        last_stable_sum=sum(shown.last_stable_offsets),
        high_watermark_sum=sum(shown.high_watermarks),
        leaderless_count=len(shown.leaderless),
        doubt=None if doubt is None else storable(doubt),
    )
    return int(recorded.snapshot_id)


def apply_changes(
    transaction: Transaction,
    feed: FeedName,
    changes: LogChanges,
    snapshot: BrokerSnapshot | None,
) -> Mapping[int, GenerationId] | None:
    """Cuts, losses, what is due again, ended, then opened generations; then how far logs reach.

    None, and nothing is changed, where a claim that is to be cut is gone or committed by now.
    """
    batch_ids, closing_ids = _locked_batches(transaction, feed, changes)
    if changes.of_known_logs:
        transaction.rows("lock_living_generations", feed=feed)
    if not cut_claims(transaction, changes.cuts, batch_ids):
        return None
    _lose(transaction, changes.lost)
    _ask_again(transaction, [(each.generation_id, each.offsets) for each in changes.due_again])
    _end(transaction, feed, changes.stopped, GenerationState.STOPPED)
    _end(transaction, feed, changes.closed, GenerationState.CLOSED)
    if closing_ids:
        transaction.change("release_claims", batch_ids=closing_ids)
    if batch_ids:
        transaction.change("abandon_empty_batches", batch_ids=batch_ids)
    transaction.change("abandon_give_ups", feed=feed)
    opened = _open(transaction, feed, changes)
    if snapshot:
        cut = [each.generation_id for each in (*changes.stopped, *changes.cut_again)]
        see(transaction, feed, snapshot, snapshot.partitions, cut)
    return opened


def see(
    transaction: Transaction,
    feed: FeedName,
    snapshot: BrokerSnapshot,
    partitions: Collection[int],
    cut: Sequence[GenerationId] = (),
) -> None:
    """Hand the witnesses of these partitions over, where they move.

    Those of logs that were cut begin anew: what they have said is told.
    """
    seen = {each: snapshot.partitions[each] for each in partitions}
    transaction.change(
        "see_logs",
        feed=feed,
        cluster_id=snapshot.cluster_id,
        topic_id=snapshot.topic_id,
        partitions=list(seen),
        high_watermarks=[each.high_watermark for each in seen.values()],
        leader_epochs=[each.leader_epoch for each in seen.values()],
        cut_ids=list(cut),
    )


def _locked_batches(
    transaction: Transaction, feed: FeedName, changes: LogChanges
) -> tuple[list[str], list[str]]:
    """The unfinished batches that lose something, and among them those of a closed generation.

    A batch that was committed since the accounts were read is not among them: its offsets are
    landed, and nothing of it is cut.
    """
    cut_ids = sorted({each.batch_id for each in changes.cuts})
    closed_ids = [each.generation_id for each in changes.closed]
    if not cut_ids and not closed_ids:
        return [], []
    rows = transaction.rows(
        "lock_batches_to_change", feed=feed, batch_ids=cut_ids, closed_ids=closed_ids
    )
    return [row.batch_id for row in rows], [row.batch_id for row in rows if row.claims_closed]


def cut_claims(
    transaction: Transaction, cuts: Sequence[CutClaim], batch_ids: Sequence[str]
) -> bool:
    """True when all claims that are to be cut stood: they are cut, else none is.

    The batches and their generations are locked.
    """
    if not cuts:
        return True
    claims = claims_of(transaction, batch_ids)
    if not {(each.batch_id, each.generation_id) for each in cuts} <= {
        (each.batch_id, each.generation_id) for each in claims
    }:
        return False
    transaction.partitions = {each.generation_id: str(each.offsets.partition) for each in claims}
    split = split_claims(claims, cuts)
    _shrink(transaction, split)
    _advance(transaction, {each.claim.generation_id for each in split.changed})
    return True


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


def _shrink(transaction: Transaction, split: SplitClaims) -> None:
    changed, entered = split.changed, split.entered
    transaction.change(
        "shrink_claims",
        range_ids=[each.claim.range_id for each in changed],
        from_offsets=[each.offsets.from_offset for each in changed],
        until_offsets=[each.offsets.until_offset for each in changed],
        states=[each.state.value for each in changed],
        loss_codes=[each.loss_code for each in changed],
    )
    transaction.change(
        "insert_ranges",
        **offset_columns([(each.claim.generation_id, each.offsets) for each in entered]),
        states=[each.state.value for each in entered],
        batch_ids=[each.claim.batch_id for each in entered],
        loss_codes=[each.loss_code for each in entered],
        loss_evidences=[None for _ in entered],
    )


def _lose(transaction: Transaction, lost: Sequence[LostRange]) -> None:
    if not lost:
        return
    transaction.partitions = {each.generation_id: str(each.offsets.partition) for each in lost}
    ranges = [(each.generation_id, each.offsets) for each in lost]
    _ask_again(transaction, ranges)
    transaction.change(
        "insert_ranges",
        **offset_columns(ranges),
        states=[RangeState.LOST.value for _ in lost],
        batch_ids=[None for _ in lost],
        loss_codes=[each.code.value for each in lost],
        loss_evidences=[evidence_json(each.evidence) for each in lost],
    )
    _advance(transaction, {each.generation_id for each in lost})


def _ask_again(
    transaction: Transaction, offsets: Sequence[tuple[GenerationId, OffsetRange]]
) -> None:
    """What could not be read in these offsets is set aside no more."""
    if offsets:
        transaction.change("release_unreadable", **offset_columns(offsets))


def _advance(transaction: Transaction, generation_ids: Collection[int]) -> None:
    transaction.change("advance_frontiers", generation_ids=sorted(generation_ids))


def _end(
    transaction: Transaction,
    feed: FeedName,
    ended: Sequence[EndedGeneration],
    state: GenerationState,
) -> None:
    if not ended:
        return
    changed = transaction.change(
        "end_generations",
        feed=feed,
        state=state.value,
        generation_ids=[each.generation_id for each in ended],
        codes=[each.code.value for each in ended],
        reasons=[each.reason for each in ended],
    )
    if changed != len(ended):
        named = ", ".join(str(each.generation_id) for each in ended)
        raise LedgerRefused("end_generations", f"not all of {named} belong to feed {feed}")


def _open(
    transaction: Transaction, feed: FeedName, changes: LogChanges
) -> Mapping[int, GenerationId]:
    """The new generations' ids, by partition."""
    of_life: defaultdict[tuple[object, ...], list[OpenedGeneration]] = defaultdict(list)
    for each in changes.opened:
        life = each.partition.topic, each.cluster_id, each.topic_id, each.ordinal
        of_life[life].append(each)
    rows = [
        row
        for (topic, cluster_id, topic_id, ordinal), opened in of_life.items()
        for row in transaction.rows(
            "open_generations",
            feed=feed,
            topic=topic,
            cluster_id=cluster_id,
            topic_id=topic_id,
            ordinal=ordinal,
            partitions=[each.partition.partition for each in opened],
            first_offsets=[each.first_offset for each in opened],
            are_unseen=[each.begins_unseen for each in opened],
            seen_until=[each.seen_until for each in opened],
            seen_epochs=[each.seen_epoch for each in opened],
            reasons=[each.reason for each in opened],
        )
    ]
    return {row.partition: GenerationId(row.generation_id) for row in rows}
