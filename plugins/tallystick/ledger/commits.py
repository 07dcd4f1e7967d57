"""*The* commit: one transaction, one compare-and-set, everything or nothing."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.batch import Attempt, BatchStatus
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import BatchState, CommitAnswer
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.errors import CommitOutcomeUnknown, LedgerRefused
from tallystick.ledger.attempts import fenced, locked_batch, renew, require_newest
from tallystick.ledger.batches import batch_status
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.hole_rows import enter_holes
from tallystick.ledger.retractions import retract
from tallystick.ledger.rows import claims_of, manifest_of, manifests_of, offset_columns

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
