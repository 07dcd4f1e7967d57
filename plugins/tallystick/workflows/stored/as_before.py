"""Which directories are as they were when their files and manifests were asked last.

1. Its parent's listing says of a directory when an entry came or went. While that is what it was
   before the last sound look, the directory is not listed, and its files are not read from the
   ledger, until it is due.
2. A listing says of each file when it was written, and if it is another one now. It is digested
   together with what the ledger has of the directory. While the digest is the one on record,
   nothing in the directory is asked again until it is due.

Both only where no finding stands about the directory.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from tallystick.domain.batches.paths import MANIFEST_NAME, directory_of
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.ledger.proofs import BatchPlace, CommittedDirectory, DirectoryLook
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import Tree

# No listing shows that a block has lost its last copy. Kafka keeps records for seven days unless
# told otherwise: what is found within one can be landed again. Where it was, the ledger counts so.
_DUE_AFTER: Final = timedelta(days=1)
# To be raised with each change of what is digested, or how.
_DIGEST_VERSION: Final = 2


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is on record of the directories, read before the first one is listed."""

    begun_at: datetime
    """By the ledger's clock."""
    places: Mapping[str, BatchPlace]
    """Published ones, by path."""
    looks: Mapping[BatchId, DirectoryLook]
    """Those that were as committed, and are not due."""
    troubled: frozenset[BatchId]
    """Those of which a finding stands."""
    now_ms: int | None
    """By the file system's clock; None if it tells none."""

    @classmethod
    def of(cls, services: Services, places: Sequence[BatchPlace]) -> Recorded:
        """What the ledger says now.

        A look that was overtaken by another may have put on record that a directory is well, of
        which the other has found something: only asking again ends that.
        """
        begun_at = services.ledger.clock()
        every = min(_DUE_AFTER, services.feed.reconcile.scrub_every)
        looks = services.ledger.directory_looks(services.feed_name, every)
        standing = [each.finding for each in services.ledger.findings(services.feed_name)]
        told = {path for each in standing for path in (each.subject, directory_of(each.subject))}
        return cls(
            begun_at,
            {str(each.path): each for each in places if each.is_published},
            looks,
            batches_in_trouble(standing) | {e.batch_id for e in places if str(e.path) in told},
            services.store.clock_ms(),
        )

    def is_as_shown(self, directory: str, entry: StoredEntry) -> bool:
        """True for a directory in which nothing came or went, by what its parent's listing says."""
        place = self.places.get(directory)
        look = self.looks.get(place.batch_id) if place else None
        if place is None or look is None or look.shown_as is None:
            return False
        return place.batch_id not in self.troubled and look.shown_as == self.shown_as(place, entry)

    def shown_as(self, place: BatchPlace, entry: StoredEntry) -> bytes | None:
        """A digest of the directory's own entry; None where it can't tell of the next change."""
        version = entry.settled_version(self.now_ms)
        return _digested(place.manifest_sha256.hex(), version) if version else None


@dataclass(frozen=True, slots=True)
class Listing:
    """The published directories of a listing, by batch."""

    recorded: Recorded
    looks: Mapping[BatchId, DirectoryLook]
    """How those that were listed are."""
    as_before: frozenset[BatchId]
    """Those in which nothing has changed by what is shown of them, that are not due, and of which
    no finding stands; most of them were not listed."""

    @classmethod
    def of(
        cls, recorded: Recorded, directories: Sequence[CommittedDirectory], tree: Tree
    ) -> Listing:
        """What this listing says of the directories that were listed, against what is on record."""
        looks = {
            each.batch_id: DirectoryLook(_digest(each, entries), _shown_as(recorded, each, tree))
            for each in directories
            if each.is_published and (entries := tree.entries.get(str(each.path))) is not None
        }
        same = {
            each.batch_id
            for each in directories
            if (look := looks.get(each.batch_id))
            and (before := recorded.looks.get(each.batch_id))
            and before.digest == look.digest
            and each.batch_id not in recorded.troubled
            and all(entry.version for entry in tree.entries[str(each.path)])
        }
        passed = {recorded.places[each].batch_id for each in tree.passed}
        return cls(recorded, looks, frozenset(same | passed))

    def note(self, services: Services, others: Collection[BatchId]) -> None:
        """Keep that all were as committed, but for these."""
        asked, shown = {}, {}
        for batch, look in self.looks.items():
            if batch not in self.as_before and batch not in others:
                asked[batch] = look
            elif batch in self.as_before and look != self.recorded.looks[batch]:
                shown[batch] = look
        if asked or others:
            begun_at = self.recorded.begun_at
            services.ledger.note_directory_looks(asked, sorted(others), compared_at=begun_at)
        if shown:
            services.ledger.note_shown_directories(shown)


def _shown_as(recorded: Recorded, directory: CommittedDirectory, tree: Tree) -> bytes | None:
    """How it was shown before it was listed; None where it holds anything that is to be told in
    each look, or that can change without it: a file that nobody committed, another directory.
    Hidden ones, too: rows of a file that goes missing later may be in one.
    """
    path = str(directory.path)
    others = {each.name for each in tree.entries[path]} - {MANIFEST_NAME}
    is_alone = others == directory.files.keys() and path in tree.shown
    return recorded.shown_as(directory, tree.shown[path]) if is_alone else None


def _digest(directory: CommittedDirectory, entries: Sequence[StoredEntry]) -> bytes:
    return _digested(
        directory.manifest_sha256.hex(),
        sorted((name, file.length_bytes, file.checksum) for name, file in directory.files.items()),
        sorted((each.name, each.length_bytes, each.version) for each in entries),
    )


def _digested(*facts: object) -> bytes:
    return sha256(json.dumps([_DIGEST_VERSION, *facts]).encode()).digest()
