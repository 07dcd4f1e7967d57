"""Level L2: all that storage says of the feed, in one look."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange, overlaps_in
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.b2_landed_twice import HeldOffsets, shared_by_batches
from tallystick.domain.rules.evidence import batch_in, batches_in_trouble
from tallystick.domain.rules.file_findings import is_of_batch_rows
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.storage_witness import offset_findings
from tallystick.domain.rules.u1_could_not_tell import STORAGE, could_not_tell, is_unlisted
from tallystick.errors import FileMissing, ManifestMismatch, StorageError
from tallystick.ledger.evidence import SettledRanges
from tallystick.ledger.proofs import BatchPlace
from tallystick.workflows.place import counted
from tallystick.workflows.reconciling.storage_check import storage_findings
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


# Level L2: where two ranges of the ledger overlap, are the rows there twice as well?
#
# Verification proves that a batch holds each offset once, and the schema that two batches share
# none. So only where the ledger contradicts its schema are the offset columns read again.


def doubled_findings(
    services: Services, unsound: Sequence[SettledRanges], places: Sequence[BatchPlace]
) -> list[Finding]:
    """Offsets of overlapping ranges that are in rows of two batches; raises StorageError."""
    return [
        finding
        for each in unsound
        for overlap in overlaps_in(each.ranges)
        for finding in shared_by_batches(
            services.feed_name,
            each.account,
            list(_held(services, each.account.ordinal, overlap, places)),
        )
    ]


def _held(
    services: Services,
    generation: int,
    overlap: OffsetRange,
    places: Sequence[BatchPlace],
) -> Iterator[HeldOffsets]:
    """What each batch's files really hold of the overlap."""
    partition, bounds = overlap.partition.partition, (overlap.from_offset, overlap.until_offset)
    holding = set(
        services.ledger.batches_holding(services.feed_name, generation, partition, *bounds)
    )
    for each in places:
        if each.batch_id not in holding:
            continue
        place = str(each.path) if each.is_published else each.staging
        try:
            read = services.store.read_back(place)
        except FileMissing:
            continue
        yield HeldOffsets(
            each.batch_id,
            place,
            read.landed.get(partition, OffsetRuns()).clipped(*bounds),
            read.doubled.get(partition, OffsetRuns()).clipped(*bounds),
        )


# Reads the offset columns of committed batches again, those first whose last try is longest ago.
#
# A few batches in each reconcile, so that all of them come round within the feed's `scrub_every`,
# and a long history costs no more than a short one. What a full read has proven counts as a look,
# too.

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


@dataclass(frozen=True, slots=True)
class StorageLook:
    """What was found, and how far storage has answered."""

    found: Sequence[Finding] = ()
    """Of files and directories."""
    rows: OffsetsLook = field(default_factory=OffsetsLook)
    """Of the rows in the batches whose files are in order."""
    failure: StorageError | None = None
    """Why it fell silent; None when it answered, or was not asked."""
    has_listed: bool = False
    """True when every directory was listed that is not as it was shown before."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that was found, until it fell silent."""
        return (*self.found, *self.rows.findings)


def look_at_storage(
    services: Services,
    places: Sequence[BatchPlace],
    unsound: Sequence[SettledRanges],
    *,
    reads_in_full: bool,
) -> StorageLook:
    """A look at files, then at rows; `unsound` are ranges that contradict the ledger's schema.

    Files that are stored in another way than they were committed are read where it reads in full.
    """
    found: list[Finding] = []
    try:
        found += storage_findings(services, places, reads_in_full=reads_in_full)
        found += doubled_findings(services, unsound, places)
        rows = look_at_offsets(services, {batch_in(each.evidence) for each in found})
    except StorageError as error:
        return StorageLook(found, failure=error)
    return StorageLook(found, rows, has_listed=not any(is_unlisted(each) for each in found))
