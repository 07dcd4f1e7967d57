"""*The* commit: one transaction, one compare-and-set, everything or nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tallystick.domain.attempts.last_copies import KeptFiles, places_for
from tallystick.domain.batches.batch import Attempt, BatchStatus
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.replacing import rows_given_up
from tallystick.domain.batches.states import BatchState, CommitAnswer, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.offsets.ranges import OffsetRange, subtract, union_of
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.log_findings import lost_finding
from tallystick.errors import CommitOutcomeUnknown, LedgerRefused
from tallystick.ledger.attempts import fenced, locked_batch, renew, require_newest
from tallystick.ledger.batches import batch_status, generations
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import record_findings
from tallystick.ledger.hole_rows import enter_holes, unfold_holes
from tallystick.ledger.rows import claims_of, manifest_of, manifests_of, offset_columns, offsets_in

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


_NAMED_RANGES: Final = 5


class Commits(Tables):
    """What a commit changes."""

    def commit(self, attempt: Attempt, kept: Collection[KeptFiles] = ()) -> CommitAnswer:
        """*The* commit: ranges, files, holes, anchors, frontiers of the verified manifest, at once.

        What a repair gives up with it is a finding, which names the `kept` files that may hold it.
        ALREADY_COMMITTED when this very attempt did it before. Raises AttemptFenced when its token
        is not the newest, CommitOutcomeUnknown when the connection died at COMMIT, LedgerRefused
        when the batch isn't verified by this attempt, or when its claims are not the manifest's
        ranges any more.
        """

        def unknown(reason: str) -> CommitOutcomeUnknown:
            return CommitOutcomeUnknown(attempt.batch_id, attempt.attempt_id, reason)

        with self._connection.writing(lost_commit=unknown) as transaction:
            batch = locked_batch(transaction, attempt.batch_id)
            if batch.committed_by == attempt.attempt_id:
                return CommitAnswer.ALREADY_COMMITTED
            manifest = _verified_manifest(transaction, attempt, batch)
            changed = transaction.change(
                "commit_batch",
                batch_id=attempt.batch_id,
                attempt_id=attempt.attempt_id,
                token=attempt.token,
                verification_id=batch.verification_id,
                record_count=manifest.record_count,
                hole_count=manifest.hole_count,
                byte_count=sum(each.length_bytes for each in manifest.files),
            )
            if changed != 1:
                raise fenced(transaction, attempt)
            _commit_ranges(transaction, manifest, kept)
            _commit_files(transaction, manifest)
            enter_holes(transaction, manifest)
            _move_anchors(transaction, manifest)
            transaction.change("end_attempt_committed", attempt_id=attempt.attempt_id)
            _link(transaction, manifest)
        return CommitAnswer.COMMITTED

    def take_up(self, attempt: Attempt, lease: timedelta) -> BatchStatus | None:
        """The attempt's batch, held for another while; None where this very attempt has committed
        it, which is for good. Raises AttemptFenced.

        Waits for the batch's row: a COMMIT whose answer was lost may still be on its way to the
        server, and an answer given before it arrives would be wrong a moment later.
        """
        with self._connection.writing() as transaction:
            batch = locked_batch(transaction, attempt.batch_id)
            if batch.committed_by == attempt.attempt_id:
                return None
            renew(transaction, attempt, lease)
            return batch_status(transaction, attempt.batch_id)


def _link(transaction: Transaction, manifest: Manifest) -> None:
    """Bind the commit to its manifest and to all commits of the feed before it."""
    transaction.rows("lock_chain", feed=manifest.plan.feed)
    transaction.change("link_commit", batch_id=manifest.plan.batch_id)


def _verified_manifest(transaction: Transaction, attempt: Attempt, batch: Any) -> Manifest:
    require_newest(transaction, attempt, batch)
    proof = (
        transaction.one("verification", verification_id=batch.verification_id)
        if batch.state == BatchState.VERIFIED.value
        else None
    )
    if proof is None or proof.attempt_id != attempt.attempt_id:
        raise LedgerRefused(
            "commit_batch",
            f"batch {attempt.batch_id} is {batch.state},"
            f" and not verified by attempt {attempt.attempt_id}",
        )
    return manifest_of(proof)


def _commit_ranges(
    transaction: Transaction, manifest: Manifest, kept: Collection[KeptFiles]
) -> None:
    batch_id = manifest.plan.batch_id
    ranges = manifest.ranges
    old = {each.batch_id for each in manifest.plan.replaces}
    replaced = manifests_of(transaction, sorted(old))
    ids = sorted(
        {
            each.planned.generation_id
            for one in (manifest, *replaced.values())
            for each in one.ranges
        }
    )
    # Before ranges are read for a frontier: a rival that commits beside us is seen, or waits.
    transaction.rows("lock_generations", generation_ids=ids)
    if manifest.plan.is_repair:
        retract(transaction, manifest, replaced, kept)
    changed = transaction.change(
        "commit_ranges",
        batch_id=batch_id,
        **offset_columns([(each.planned.generation_id, each.planned.offsets) for each in ranges]),
        record_counts=[each.record_count for each in ranges],
        hole_counts=[each.hole_count for each in ranges],
    )
    left = claims_of(transaction, [batch_id])
    if changed != len(ranges) or left:
        _refuse_other_ranges(manifest, changed, [each.offsets for each in left])
    transaction.change("advance_frontiers", generation_ids=ids)
    transaction.change(
        "move_read_ends",
        generation_ids=[each.planned.generation_id for each in ranges],
        read_untils=[each.planned.offsets.until_offset for each in ranges],
        read_epochs=[each.read_epoch for each in ranges],
    )


def _refuse_other_ranges(manifest: Manifest, changed: int, left: list[OffsetRange]) -> None:
    """The claims were cut since the manifest was written: say exactly what differs."""
    claimed = {each.partition: each for each in left}
    proven = [each.planned.offsets for each in manifest.ranges]
    differing = [each for each in proven if each.partition in claimed]
    without = len(proven) - changed - len(differing)
    named = [f"{each} is verified, {claimed[each.partition]} is claimed" for each in differing]
    strange = {each.partition for each in proven}
    named += [
        f"{each} is claimed and not verified" for each in left if each.partition not in strange
    ]
    more = len(named) - _NAMED_RANGES
    shown = named[:_NAMED_RANGES] + ([f"{more} more"] if more > 0 else [])
    if without:
        shown.append(f"{without} verified ranges are not claimed any more")
    raise LedgerRefused("commit_ranges", f"batch {manifest.plan.batch_id}: {'; '.join(shown)}")


def _commit_files(transaction: Transaction, manifest: Manifest) -> None:
    batch_id, files = manifest.plan.batch_id, manifest.files
    if not files:
        return
    slices = [(file.name, each) for file in files for each in file.slices]
    transaction.change(
        "commit_files",
        batch_id=batch_id,
        names=[each.name for each in files],
        lengths=[each.length_bytes for each in files],
        checksums=[each.checksum for each in files],
        record_counts=[each.record_count for each in files],
        late_counts=[each.late and each.late.rows for each in files],
        oldest_late_at=[each.late and each.late.oldest_at for each in files],
        slice_names=[name for name, _ in slices],
        slice_partitions=[each.partition for _, each in slices],
        first_offsets=[each.first_offset for _, each in slices],
        spans=[each.last_offset - each.first_offset + 1 for _, each in slices],
        row_counts=[each.record_count for _, each in slices],
    )


def _move_anchors(transaction: Transaction, manifest: Manifest) -> None:
    anchored = [
        (each.planned.generation_id, each.anchor)
        for each in manifest.ranges
        # A manifest that was written anew from an old account tells no hash.
        if each.anchor and each.anchor.content_hash is not None
    ]
    if not anchored:
        return
    transaction.change(
        "move_anchors",
        batch_id=manifest.plan.batch_id,
        generation_ids=[generation_id for generation_id, _ in anchored],
        record_offsets=[anchor.offset for _, anchor in anchored],
        leader_epochs=[anchor.leader_epoch for _, anchor in anchored],
        content_hashes=[anchor.content_hash for _, anchor in anchored],
        hash_versions=[anchor.hash_version for _, anchor in anchored],
    )
