"""Reads the offset columns of committed batches again, those first whose last try is longest ago.

A few batches in each reconcile, so that all of them come round within the feed's `scrub_every`, and
a long history costs no more than a short one. What a full read has proven counts as a look, too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.domain.rules.file_findings import is_of_batch_rows
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.landed_files import offset_findings
from tallystick.domain.rules.u1_could_not_tell import STORAGE, could_not_tell
from tallystick.errors import FileMissing, ManifestMismatch, StorageError
from tallystick.workflows.place import counted
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# About ten seconds of one core: 10 to 40 million rows are read in each.
_MOST_ROWS: Final = 100_000_000
_MOST_BATCHES: Final = 500


@dataclass(frozen=True, slots=True)
class OffsetsLook:
    """What reading offset columns again has shown."""

    findings: Sequence[Finding] = ()
    read: Mapping[BatchId, bool] = field(default_factory=dict)
    """Batches that were read, and if nothing was found in their rows."""
    unheard: Sequence[Finding] = ()
    """What could not be told, and why: UNKNOWN, not on record."""


def look_at_offsets(services: Services, sick: Collection[object] = ()) -> OffsetsLook:
    """What the rows of the batches that are due say against the ledger; the looks are on record.

    `sick` are batches of which something is told already: they are not read, and stay due.
    A batch that can't be read now, or that a repair has changed meanwhile, stays due: its files are
    told by the comparison with storage. Raises StorageUnavailable when nothing answers.
    """
    feed, ledger = services.feed_name, services.ledger
    found: list[Finding] = []
    unheard: list[Finding] = []
    read: dict[BatchId, bool] = {}
    unread: list[BatchId] = []
    rows = 0
    standing = [each.finding for each in ledger.findings(feed)]
    in_trouble = batches_in_trouble(each for each in standing if not is_of_batch_rows(each))
    all_due = ledger.offsets_due(feed, services.feed.reconcile.scrub_every, _MOST_BATCHES)
    for due in counted(services, "read offsets again", "batches", all_due):
        if rows and rows + due.record_count > _MOST_ROWS:
            break
        if due.batch_id in sick:
            unread.append(due.batch_id)
            continue
        rows += due.record_count
        try:
            told = _of_batch(services, due.batch_id)
        except StorageError as error:
            services.store.status(services.root)
            unheard.append(_unread(services, due.batch_id, error.describe()))
            unread.append(due.batch_id)
            continue
        if told is None:
            unread.append(due.batch_id)
            continue
        read[due.batch_id] = not told
        found += told
        if told:
            ledger.record_findings(feed, told)
        is_clean = not told and due.batch_id not in in_trouble
        ledger.record_offsets_look(due.batch_id, is_clean=is_clean)
    if unread:
        ledger.record_unread(unread, Level.L2)
    if read:
        log.info("Feed %s: the offsets of %d batches were read again.", feed, len(read))
    return OffsetsLook(found, read, unheard)


def _unread(services: Services, batch_id: BatchId, reason: str) -> Finding:
    return could_not_tell(
        STORAGE,
        services.feed_name,
        services.topic,
        reason,
        seen_at=services.clock.now(),
        what=f"the rows of batch {batch_id}",
    )


def _of_batch(services: Services, batch_id: BatchId) -> Sequence[Finding] | None:
    """What the batch's rows say; None where its files are not as committed, or change just now.

    Raises StorageError when they can't be read.
    """
    batch = services.ledger.committed_batch(batch_id)
    if batch is None:
        return None
    directory = str(BatchPath.of(batch.plan))
    before = services.ledger.replacements(services.feed_name)
    try:
        read = services.store.read_back(directory)
    except (FileMissing, ManifestMismatch):
        return None
    gone = {each.name for each in before if each.batch_id == batch_id}
    standing = [each for each in batch.manifest.files if each.name not in gone]
    is_as_committed = _bytes_of(read.files) == _bytes_of(standing)
    if not is_as_committed or services.ledger.replacements(services.feed_name) != before:
        return None
    return list(offset_findings(batch.manifest, gone, read))


def _bytes_of(files: Iterable[LandedFile]) -> set[tuple[str, str]]:
    """Which bytes these are: a checksum is of all of a file's."""
    return {(each.name, each.checksum) for each in files}
