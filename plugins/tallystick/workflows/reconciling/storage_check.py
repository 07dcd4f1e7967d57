"""Level L2: lists what readers see, reads the manifests, and compares it all with the ledger.

1. Storage is listed first, and the ledger asked for the files of what was listed, and again about
   everything that looks wrong: batches are published, files replaced, and manifests written anew,
   while this goes on.
2. A directory that can't be listed is UNKNOWN by its path; what lies below it is not called lost.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.a8_committed_file_missing import in_doubt
from tallystick.domain.rules.a9_stray_file import landed_inside, stray_files
from tallystick.domain.rules.a10_ledger_behind import ledger_behind
from tallystick.domain.rules.b2_landed_twice import shared_with_stray
from tallystick.domain.rules.evidence import file_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.n3_unfinished_batch import LostManifest, without_manifest
from tallystick.domain.rules.storage_witness import missing_or_changed
from tallystick.domain.rules.u1_could_not_tell import (
    DIRECTORY,
    MANIFEST,
    OTHER_FEED,
    STRAY,
    unread_paths,
)
from tallystick.domain.rules.waivers import as_far_as_asked
from tallystick.errors import FileMissing, ManifestMismatch, StorageError
from tallystick.ledger.proofs import BatchPlace, CommittedDirectory, FileState
from tallystick.ledger.publishing import CommittedBatch
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.place import counted
from tallystick.workflows.services import Services
from tallystick.workflows.stored.as_before import Listing, Recorded
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.readers_tree import Tree, ask_all, asking, listed_tree
from tallystick.workflows.stored.stored_files import (
    lost_manifest,
    made_again,
    stored_file,
)
from tallystick.workflows.stored.stray_check import look_at_strays

log = logging.getLogger(__name__)


def storage_findings(
    services: Services, places: Sequence[BatchPlace], *, reads_in_full: bool = False
) -> list[Finding]:
    """Missing, changed and foreign files, and batches that the ledger has never heard of.

    `places` are of all committed batches. Raises StorageUnavailable when nothing can be said; a
    part that is refused is a finding.
    """
    feed, topic = services.feed_name, services.topic
    recorded = Recorded.of(services, places)
    tops = [f"{root}/{feed}" for root in feed_roots(services)]
    with asking() as pool:
        tree = listed_tree(services, tops, pool, recorded.is_as_shown)
        others = [each.batch_id for each in places if str(each.path) not in tree.passed]
        directories = services.ledger.directories(feed, others)
        seen = [each for each in directories if not tree.hides(str(each.path))]
        listing = Listing.of(recorded, seen, tree)
        asked = [each for each in seen if each.batch_id not in listing.as_before]
        told = partial(counted, services, "compare files", "directories")
        are_well = ask_all(pool, lambda each: _is_as_listed(services, each, tree), asked, told)
        doubted = [each for each, is_well in zip(asked, are_well, strict=True) if not is_well]
        looks = [
            look for look in ask_all(pool, lambda each: _unlike(services, each), doubted) if look
        ]
        if reads_in_full:
            looks = list(_bytes_compared(services, looks))
        manifests = _look_at_manifests(services, directories, tree, listing, pool)
    listing.note(services, {each.batch_id for each in doubted} | manifests.doubted)
    unlike = {file for look in looks for file in look.unlike}
    unasked = {file for look in looks for file in look.unasked}
    missing = [state for look in looks for state in look.missing]
    listed = {CommittedFile(each.batch_id, name) for each in seen for name in each.files}
    strays = look_at_strays(
        services,
        places,
        directories,
        tree,
        missing,
        is_kept=partial(_is_kept, services, listing, unlike, listed - unasked),
    )
    found = [each for look in looks for each in _file_findings(services, look)]
    found = in_doubt(found, strays.unexplained, [*strays.refused, *strays.unread])
    found += [
        *landed_inside(feed, topic, strays.others.known),
        *unread_paths(OTHER_FEED, feed, topic, strays.others.unread),
        *stray_files(feed, topic, strays.told),
        *(each for stray in strays.strays for each in shared_with_stray(feed, topic, stray)),
        *unread_paths(STRAY, feed, topic, strays.unread),
        *ledger_behind(feed, topic, strays.behind, strays.bare),
    ]
    found += manifests.findings
    found += unread_paths(DIRECTORY, feed, topic, strays.refused)
    on_record = [each.finding for each in services.ledger.findings(feed)]
    return [as_far_as_asked(each, on_record) for each in found]


def _is_kept(
    services: Services,
    listing: Listing,
    unlike: Collection[CommittedFile],
    asked: Collection[CommittedFile],
    batch: CommittedBatch,
    file: LandedFile,
) -> bool | None:
    """True for a file in its place, as it was committed; None where nobody can tell.

    In a directory that is as before nothing was asked, so what a stray meets there is asked now.
    """
    named = CommittedFile(batch.plan.batch_id, file.name)
    if named.batch_id not in listing.as_before:
        return named not in unlike if named in asked else None
    path = f"{BatchPath.of(batch.plan)}/{file.name}"
    found = stored_file(services, path, file.length_bytes, file.checksum)
    if found and found.trouble is not None:
        return None
    return found is not None and found.is_as_committed(file)


@dataclass(frozen=True, slots=True)
class _Manifests:
    """What the manifests of directories have said."""

    findings: Sequence[Finding]
    doubted: frozenset[BatchId]
    """The batches whose manifest was not as committed when it was first read."""


def _look_at_manifests(
    services: Services,
    directories: Sequence[CommittedDirectory],
    tree: Tree,
    listing: Listing,
    pool: ThreadPoolExecutor,
) -> _Manifests:
    """Of a directory that is there; of one that is gone its files are missed, if it had any."""
    asked = [
        each
        for each in directories
        if each.is_published
        and each.batch_id not in listing.as_before
        and (str(each.path) in tree.entries or not (each.files or tree.hides(str(each.path))))
    ]
    first = wrong = _wrong_manifests(services, asked, pool)
    if first:
        # A repair or a rebuild may be writing one just now: what looks wrong is read once more.
        wrong = _wrong_manifests(services, [each for each, _ in first], pool)
    lost = {str(each.path): found for each, found in wrong if isinstance(found, LostManifest)}
    unread = {
        f"{each.path}/{MANIFEST_NAME}": found for each, found in wrong if isinstance(found, str)
    }
    feed, topic = services.feed_name, services.topic
    found = [*without_manifest(feed, topic, lost), *unread_paths(MANIFEST, feed, topic, unread)]
    return _Manifests(found, frozenset(each.batch_id for each, _ in first))


def _wrong_manifests(
    services: Services, directories: Sequence[CommittedDirectory], pool: ThreadPoolExecutor
) -> list[tuple[CommittedDirectory, LostManifest | str]]:
    answers = ask_all(pool, lambda each: lost_manifest(services, each), directories)
    return [(each, found) for each, found in zip(directories, answers, strict=True) if found]


@dataclass(frozen=True, slots=True)
class _Unlike:
    """A batch's directory that is not as it was committed, where most of it lies now."""

    directory: CommittedDirectory
    place: str
    stored: Mapping[str, StoredFile]

    @property
    def unlike(self) -> Mapping[CommittedFile, FileState]:
        """Its files that are missing, changed, or could not be asked."""
        return {
            CommittedFile(self.directory.batch_id, name): file
            for name, file in self.directory.files.items()
            if self.stored.get(name) != StoredFile(file.length_bytes, file.checksum)
        }

    @property
    def unasked(self) -> Collection[CommittedFile]:
        """Its files that are there, and could not be asked."""
        return [each for each in self.unlike if self._is_unasked(each.name)]

    def _is_unasked(self, name: str) -> bool:
        found = self.stored.get(name)
        return found is not None and found.trouble is not None

    @property
    def missing(self) -> Sequence[FileState]:
        """Its files that are not there, and held rows."""
        return [
            file
            for each, file in self.unlike.items()
            if each.name not in self.stored and file.record_count
        ]


def _is_as_listed(services: Services, directory: CommittedDirectory, tree: Tree) -> bool:
    """True when the files that were listed in the directory are those that were committed."""
    target = str(directory.path)
    listed = tree.entries.get(target)
    return listed is not None and _compared(services, directory, target, listed) is None


def _unlike(services: Services, directory: CommittedDirectory) -> _Unlike | None:
    """What is there instead of what was committed; None when all is well.

    The rename may come between two looks, so the target is looked at again after staging. A
    published batch is looked at twice too: a file may go between its listing and its checksum.
    """
    target, staging = str(directory.path), directory.staging
    worst: _Unlike | None = None
    for place in (target,) if directory.is_published else (staging, target):
        try:
            look = _compared(services, directory, place, services.store.entries(place))
        except FileMissing:
            look = _Unlike(directory, place, {}) if directory.files else None
        if look is None:
            return None
        if worst is None or len(look.stored) > len(worst.stored):
            worst = look
    return worst


def _compared(
    services: Services,
    directory: CommittedDirectory,
    place: str,
    entries: Sequence[StoredEntry],
) -> _Unlike | None:
    lengths = {each.name: each.length_bytes for each in entries if not each.is_directory}
    stored: dict[str, StoredFile] = {}
    for name, file in directory.files.items():
        if name in lengths:
            found = stored_file(services, f"{place}/{name}", lengths[name], file.checksum)
            if found is not None:
                stored[name] = found
    as_committed = {
        name: StoredFile(file.length_bytes, file.checksum) for name, file in directory.files.items()
    }
    return None if stored == as_committed else _Unlike(directory, place, stored)


def _bytes_compared(services: Services, looks: Sequence[_Unlike]) -> Iterator[_Unlike]:
    """The same looks, without the files whose bytes are those that were committed, though their
    checksum is another one: it is on record from now on.

    Reads as many bytes as a scrub may, and one file at least; the others wait.
    """
    left = services.feed.reconcile.scrub_budget
    # One that can't be settled is read each time: each day begins with another one.
    first = services.present().toordinal() % max(1, len(looks))
    for look in (*looks[first:], *looks[:first]):
        stored = dict(look.stored)
        for name, found in look.stored.items():
            file, path = look.directory.files[name], f"{look.place}/{name}"
            if not (found.is_stored_anew and found.length_bytes == file.length_bytes and left > 0):
                continue
            left -= found.length_bytes
            try:
                made = made_again(services, path, found, file.checksum)
            except (StorageError, ManifestMismatch):
                # One that can't be read hides no other: it stays as it was told. Does any answer?
                services.store.status(look.place)
                continue
            if made is not None:
                stored[name] = StoredFile(found.length_bytes, made)
            if made == file.checksum:
                batch_id = look.directory.batch_id
                services.ledger.record_checksum(batch_id, name, str(found.checksum))
                log.info("%s has the bytes that were committed, stored in another way.", path)
        told = replace(look, stored=stored)
        if told.unlike:
            yield told


def _file_findings(services: Services, look: _Unlike) -> Iterator[Finding]:
    """What is wrong with a batch's files, those left out that were replaced in the meantime."""
    batch = services.ledger.committed_batch(look.directory.batch_id)
    if batch is None:
        return
    replaced = services.ledger.replacements(services.feed_name)
    files = (CommittedFile(look.directory.batch_id, name) for name in look.directory.files)
    standing = {each for each in files if each not in replaced}
    for finding in missing_or_changed(batch.manifest, look.place, look.stored):
        if file_in(finding.evidence) in standing:
            yield finding
