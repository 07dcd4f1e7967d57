"""What gives way when a repair commits, in its transaction: ranges, their holes, files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import KeptFiles, places_for
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.replacing import rows_given_up
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.offsets.ranges import OffsetRange, subtract, union_of
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.log_findings import lost_finding
from tallystick.ledger.batches import generations
from tallystick.ledger.connection import Transaction
from tallystick.ledger.findings import record_findings
from tallystick.ledger.hole_rows import unfold_holes
from tallystick.ledger.rows import claims_of, offset_columns, offsets_in

_Held = Mapping[GenerationId, Sequence[OffsetRange]]


def retract(
    transaction: Transaction,
    repair: Manifest,
    replaced: Mapping[BatchId, Manifest],
    kept: Collection[KeptFiles],
) -> None:
    """The committed ranges, holes and files that the repair replaces give way, but for remainders.

    `replaced` are the proofs of the batches that it takes files of, whose logs are locked.
    Rows of these files that the repair does not claim are lost from here on: their file is gone,
    and the broker has them no more. Each such loss is a finding from the same instant on, and names
    those of the `kept` files that may hold the rows. Raises LedgerRefused when another repair was
    faster.
    """
    batch_id = repair.plan.batch_id
    claimed = _by_generation(
        (each.generation_id, each.offsets) for each in claims_of(transaction, [batch_id])
    )
    unfold_holes(transaction, replaced.values())
    lost = _not_replaced(transaction, batch_id)
    taken = {
        generation_id: (*claimed.get(generation_id, ()), *lost.get(generation_id, ()))
        for generation_id in {*claimed, *lost}
    }
    _take(transaction, batch_id, taken)
    _enter_lost(transaction, batch_id, lost)
    _tell_lost(transaction, repair, replaced, lost, kept)
    transaction.change("retract_files", batch_id=batch_id)


def _by_generation(
    pairs: Iterable[tuple[GenerationId, OffsetRange]],
) -> dict[GenerationId, list[OffsetRange]]:
    found: defaultdict[GenerationId, list[OffsetRange]] = defaultdict(list)
    for generation_id, offsets in pairs:
        found[generation_id].append(offsets)
    return dict(found)


def _not_replaced(
    transaction: Transaction, batch_id: BatchId
) -> dict[GenerationId, list[OffsetRange]]:
    return _by_generation(
        (
            GenerationId(row.generation_id),
            offsets_in(row),
        )
        for row in transaction.rows("parts_not_replaced", batch_id=batch_id)
    )


def _take(transaction: Transaction, batch_id: BatchId, taken: _Held) -> None:
    """Retract these offsets and no others; at most one part of each generation at a time, so that a
    range of which two parts are taken is cut twice.
    """
    waiting = {generation_id: union_of(ranges) for generation_id, ranges in taken.items()}
    while any(waiting.values()):
        parts = {generation_id: ranges[0] for generation_id, ranges in waiting.items() if ranges}
        _take_parts(transaction, batch_id, parts)
        waiting = {generation_id: ranges[1:] for generation_id, ranges in waiting.items()}


def _take_parts(
    transaction: Transaction, batch_id: BatchId, parts: Mapping[GenerationId, OffsetRange]
) -> None:
    offsets = offset_columns([*parts.items()])
    rows = transaction.rows("retract_ranges", **offsets)
    transaction.change("retract_holes", batch_id=batch_id, **offsets)
    left: list[tuple[GenerationId, OffsetRange]] = []
    cut: list[_Cut] = []
    for row in rows:
        part = parts[GenerationId(row.generation_id)]
        whole = OffsetRange(part.partition, row.from_offset, row.until_offset)
        rest = subtract(whole, [part])
        left += [(GenerationId(row.generation_id), each) for each in rest]
        if rest:
            cut.append(_Cut(row.range_id, row.generation_id, whole, part, row.hole_count))
    kept = transaction.rows("keep_remainders", **offset_columns(left))
    transaction.change(
        "shrink_retracted",
        range_ids=[each.range_id for each in cut],
        from_offsets=[each.taken.from_offset for each in cut],
        until_offsets=[each.taken.until_offset for each in cut],
        hole_counts=[
            each.hole_count
            - sum(
                row.hole_count
                for row in kept
                if row.generation_id == each.generation_id and row.from_offset in each.whole
            )
            for each in cut
        ],
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """A committed range of which a part is taken."""

    range_id: int
    generation_id: int
    whole: OffsetRange
    part: OffsetRange
    hole_count: int

    @property
    def taken(self) -> OffsetRange:
        """The offsets of the range that are retracted."""
        shared = self.whole.intersection(self.part)
        if shared is None:
            raise ValueError(f"{self.part} takes nothing of {self.whole}")
        return shared


def _enter_lost(transaction: Transaction, batch_id: BatchId, lost: _Held) -> None:
    flat = [(generation_id, each) for generation_id, ranges in lost.items() for each in ranges]
    if not flat:
        return
    transaction.change(
        "insert_ranges",
        **offset_columns(flat),
        states=[RangeState.LOST.value for _ in flat],
        batch_ids=[batch_id for _ in flat],
        loss_codes=[FindingCode.COMMITTED_FILE_MISSING.value for _ in flat],
        loss_evidences=[None for _ in flat],
    )


def _tell_lost(
    transaction: Transaction,
    repair: Manifest,
    replaced: Mapping[BatchId, Manifest],
    lost: _Held,
    kept: Collection[KeptFiles],
) -> None:
    """One finding for each run of rows that the replaced files held, and the repair does not.

    What the log's cleaner has removed is a hole of the repair, and no lost range.
    """
    gone = [(generation_id, each) for generation_id, ranges in lost.items() for each in ranges]
    gone += _cleaned(repair, replaced)
    if not gone:
        return
    feed = repair.plan.feed
    accounts = generations(transaction, feed)
    found = []
    for number, each in gone:
        places = places_for(kept, accounts[number].topic_id, each)
        evidence = LostRows(repair.plan.batch_id, tuple(places)).as_json()
        found.append(
            lost_finding(feed, accounts[number], each, FindingCode.COMMITTED_FILE_MISSING, evidence)
        )
    record_findings(transaction, feed, found)


def _cleaned(
    repair: Manifest, replaced: Mapping[BatchId, Manifest]
) -> list[tuple[GenerationId, OffsetRange]]:
    ids = {each.planned.offsets.partition: each.planned.generation_id for each in repair.ranges}
    return [
        (ids[each.partition], OffsetRange(each.partition, from_offset, until_offset))
        for each in rows_given_up(repair, replaced)
        for from_offset, until_offset in each.cleaned
    ]
