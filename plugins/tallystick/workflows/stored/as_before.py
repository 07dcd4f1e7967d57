"""Which directories are as they were when their files and manifests were asked last.

A listing says of each file when it was written, and if it is another one now. It is digested
together with what the ledger has of the directory. While the digest is the one on record, and no
finding stands about the directory, nothing in it is asked again until it is due.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from tallystick.domain.batches.paths import directory_of
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.ports.file_store import StoredEntry
from tallystick.ports.proofs import CommittedDirectory
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import Tree

# No listing shows that a block has lost its last copy. Kafka keeps records for seven days unless
# told otherwise: what is found within one can be landed again.
_DUE_AFTER: Final = timedelta(days=1)
# To be raised with each change of what is digested, or how.
_DIGEST_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The published directories of a listing, by batch."""

    begun_at: datetime
    """By the ledger's clock."""
    digests: dict[BatchId, bytes]
    as_before: frozenset[BatchId]
    """Those in which nothing has changed by what their entries tell, that are not due, and of which
    no finding stands."""

    @classmethod
    def of(
        cls,
        services: Services,
        directories: Sequence[CommittedDirectory],
        tree: Tree,
        begun_at: datetime,
    ) -> Listing:
        """What this listing says of them, against the looks on record.

        A look that was overtaken by another may have put on record that a directory is well, of
        which the other has found something: only asking again ends that.
        """
        every = min(_DUE_AFTER, services.feed.reconcile.scrub_every)
        before = services.ledger.directory_looks(services.feed_name, every)
        standing = [each.finding for each in services.ledger.findings(services.feed_name)]
        in_trouble = batches_in_trouble(standing)
        places = {directory_of(each.subject) for each in standing}
        digests = {
            each.batch_id: _digest(each, entries)
            for each in directories
            if each.is_published and (entries := tree.entries.get(str(each.path))) is not None
        }
        same = (
            each.batch_id
            for each in directories
            if each.batch_id in digests
            and before.get(each.batch_id) == digests[each.batch_id]
            and each.batch_id not in in_trouble
            and str(each.path) not in places
            and all(entry.version for entry in tree.entries[str(each.path)])
        )
        return cls(begun_at, digests, frozenset(same))

    def note(self, services: Services, others: Collection[BatchId]) -> None:
        """Keep that all were as committed, but for these."""
        asked = {
            batch: digest
            for batch, digest in self.digests.items()
            if batch not in self.as_before and batch not in others
        }
        if asked or others:
            services.ledger.note_directory_looks(asked, sorted(others), compared_at=self.begun_at)


def _digest(directory: CommittedDirectory, entries: Sequence[StoredEntry]) -> bytes:
    facts = [
        _DIGEST_VERSION,
        directory.manifest_sha256.hex(),
        sorted((name, file.length_bytes, file.checksum) for name, file in directory.files.items()),
        sorted((each.name, each.length_bytes, each.version) for each in entries),
    ]
    return sha256(json.dumps(facts).encode()).digest()
