"""Level L2: all that storage says of the feed, in one look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import is_unlisted
from tallystick.errors import StorageError
from tallystick.ledger.evidence import SettledRanges
from tallystick.ledger.proofs import BatchPlace
from tallystick.workflows.reconciling.offsets_check import OffsetsLook, look_at_offsets
from tallystick.workflows.reconciling.overlap_check import doubled_findings
from tallystick.workflows.reconciling.storage_check import storage_findings
from tallystick.workflows.services import Services


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
