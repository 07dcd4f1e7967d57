"""Which directories are as they were when their files and manifests were asked last.

A listing says of each file when it was written, and if it is another one now. It is digested
together with what the ledger has of the directory. While the digest is the one on record, nothing
in the directory is asked again until the feed's `scrub_every` is over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

from tallystick.domain.identities import BatchId
from tallystick.ports.file_store import StoredEntry
from tallystick.ports.proofs import CommittedDirectory
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import Tree


@dataclass(frozen=True, slots=True)
class Listing:
    """The published directories of a listing, by batch."""

    digests: dict[BatchId, bytes]
    as_before: frozenset[BatchId]
    """Those in which nothing has changed, and nothing is due to be asked."""

    @classmethod
    def of(
        cls, services: Services, directories: Sequence[CommittedDirectory], tree: Tree
    ) -> Listing:
        """What this listing says of them, against the looks on record."""
        every = services.feed.reconcile.scrub_every
        before = services.ledger.directory_looks(services.feed_name, every)
        digests = {
            each.batch_id: _digest(each, entries)
            for each in directories
            if each.is_published and (entries := tree.entries.get(str(each.path))) is not None
        }
        same = (batch for batch, digest in digests.items() if before.get(batch) == digest)
        return cls(digests, frozenset(same))

    def note(self, services: Services, others: Collection[BatchId]) -> None:
        """Keep that all were as committed, but for these."""
        asked = {
            batch: digest
            for batch, digest in self.digests.items()
            if batch not in self.as_before and batch not in others
        }
        if asked or others:
            services.ledger.note_directory_looks(asked, sorted(others))


def _digest(directory: CommittedDirectory, entries: Sequence[StoredEntry]) -> bytes:
    facts = [
        directory.manifest_sha256.hex(),
        sorted((name, file.length_bytes, file.checksum) for name, file in directory.files.items()),
        sorted((each.name, each.length_bytes, each.version) for each in entries),
    ]
    return sha256(json.dumps(facts).encode()).digest()
