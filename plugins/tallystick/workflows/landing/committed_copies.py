"""Looks if committed files are there, before the rows that an attempt has of them are deleted.

A file may have gone from storage, have changed, or have lost its blocks since the last look that
compared all directories: then the ledger calls it committed, and the attempt's directory holds the
only copy.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy, relied_on
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.identities import BatchId
from tallystick.errors import FileMissing, StorageRefused
from tallystick.workflows.services import Services
from tallystick.workflows.stored.stored_files import stored_file

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CommittedCopies:
    """Of one sweep: each batch and file is asked about once, each directory listed once."""

    services: Services
    _listed: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _is_there: dict[str, bool] = field(default_factory=dict)
    _missing: dict[BatchId, list[str]] = field(default_factory=dict)

    def missing(self, batch_id: BatchId, at_risk: Sequence[AtRisk]) -> list[str]:
        """Paths of the files that an attempt of this batch may be the only copy of: they are not
        there as they were committed, or their blocks can't be read. Raises StorageUnavailable when
        nothing of the file system answers.
        """
        if batch_id not in self._missing:
            self._missing[batch_id] = self._looked_for(batch_id, at_risk)
        return self._missing[batch_id]

    def _looked_for(self, batch_id: BatchId, at_risk: Sequence[AtRisk]) -> list[str]:
        copies = relied_on(self.services.ledger.committed_copies(batch_id), at_risk)
        missing = sorted({each.path for each in copies if not self._is_as_committed(each)})
        if missing:
            log.warning(
                "What attempts at batch %s have in staging is kept: it may be the only copy of %s,"
                " which can't be read there as it was committed. Run a reconcile.",
                batch_id,
                "; ".join(missing[:20]),
            )
        return missing

    def _is_as_committed(self, copy: CommittedCopy) -> bool:
        """By length and checksum. A listing knows nothing of blocks; the checksum is read from
        them.
        """
        if copy.path not in self._is_there:
            length, expected = copy.length_bytes, StoredFile(copy.length_bytes, copy.checksum)
            self._is_there[copy.path] = (
                self._lengths(copy.directory).get(copy.name) == length
                and stored_file(self.services, copy.path, length, copy.checksum) == expected
            )
        return self._is_there[copy.path]

    def _lengths(self, directory: str) -> Mapping[str, int]:
        """By name; a directory that is not there, or may not be listed, shows nothing."""
        if directory not in self._listed:
            try:
                entries = self.services.store.entries(directory)
            except (FileMissing, StorageRefused):
                entries = ()
            self._listed[directory] = {
                each.name: each.length_bytes for each in entries if not each.is_directory
            }
        return self._listed[directory]
