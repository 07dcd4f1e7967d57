"""Which files under the readers' paths no committed batch owns, and what each of them is: of a
batch that the ledger has forgotten, or a stray. While files are missing, what readers skip counts,
too, but for what is known to be ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.paths import (
    MANIFEST_NAME,
    QUARANTINE_NAME,
    BatchPath,
    directory_of,
    own_directories,
)
from tallystick.domain.batches.stored_file import UnknownDirectories
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.identities import BatchId
from tallystick.ledger.proofs import BatchPlace, CommittedDirectory, FileState
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.services import Services
from tallystick.workflows.stored.other_feeds import OtherFeeds, is_below, other_feeds_among
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.readers_tree import Tree, asking, listed_files, listed_tree
from tallystick.workflows.stored.stray_rows import IsKept, stray_at


@dataclass(frozen=True, slots=True)
class StraysLook:
    """What lies under the readers' paths beside the committed files."""

    strays: Sequence[StrayFile]
    behind: UnknownDirectories
    """Directories of batches that the ledger does not know, with a manifest."""
    bare: UnknownDirectories
    """The same without a manifest."""
    others: OtherFeeds
    hidden: Sequence[StrayFile]
    """What no reader reads, and may hold rows of missing files; asked for while one is missing."""
    refused: Mapping[str, str]
    """Directories that could not be listed, each with the reason."""

    @property
    def unexplained(self) -> list[str]:
        """The files that may hold the only copy of a missing one's rows: all that no batch owns,
        but for those whose every row a committed file in its place holds, too.
        """
        both = (*self.strays, *self.hidden)
        return [each.path for each in both if each.may_be_only_copy and not each.trouble]

    @property
    def unread(self) -> dict[str, str]:
        """The files of which nobody could tell, each with the reason."""
        both = (*self.strays, *self.hidden)
        return {each.path: each.trouble for each in both if each.trouble is not None}

    @property
    def told(self) -> list[StrayFile]:
        """The strays that are none of a directory that the ledger does not know."""
        unknown = self.bare.keys() | self.behind.keys()
        return [each for each in self.strays if directory_of(each.path) not in unknown]


@dataclass(slots=True)
class _Places:
    """Where something lies that no batch of the ledger has there."""

    files: dict[str, StoredEntry] = field(default_factory=dict)
    """By path."""
    unknown: set[str] = field(default_factory=set)
    """Directories of batches that the ledger does not know, without a manifest."""
    behind: list[str] = field(default_factory=list)
    others: OtherFeeds = field(default_factory=OtherFeeds)


def look_at_strays(
    services: Services,
    places: Sequence[BatchPlace],
    directories: Sequence[CommittedDirectory],
    tree: Tree,
    missing: Collection[FileState],
    is_kept: IsKept | None = None,
) -> StraysLook:
    """What each file is that no committed batch owns; `missing` are looked for where no reader
    looks, too.

    `places` are of all committed batches, `directories` of those in the tree. Raises
    StorageUnavailable.
    """
    shown = {each.batch_id for each in places if each.is_published}
    found = _places(services, shown, directories, tree)
    hidden, refused = (
        _hidden(services, tree, found.others, missing, is_kept) if missing else ([], {})
    )
    strays = [
        replace(
            stray_at(services, path, is_kept),
            length_bytes=each.length_bytes,
            changed_ms=each.changed_ms,
        )
        for path, each in found.files.items()
    ]
    bare = {
        directory
        for each in strays
        if (directory := directory_of(each.path)) in found.unknown and each.is_news_to_ledger
    }
    return StraysLook(
        strays,
        {each: listed_files(tree.entries[each]) for each in found.behind},
        {each: listed_files(tree.entries[each]) for each in sorted(bare)},
        found.others,
        hidden,
        {**tree.refused, **refused},
    )


def _places(
    services: Services,
    shown: Collection[BatchId],
    directories: Sequence[CommittedDirectory],
    tree: Tree,
) -> _Places:
    owned = {str(each.path): each.files for each in directories}
    places = _Places(
        others=other_feeds_among(
            services, (each for each in sorted(tree.entries) if each not in owned)
        )
    )
    for directory, entries in sorted(tree.entries.items()):
        if is_below(directory, places.others.known):
            continue
        files = {each.name: each for each in entries if each.is_read}
        files = {name: each for name, each in files.items() if not each.is_directory}
        if not files or set(files) <= owned.get(directory, {}).keys():
            continue
        known = _names_in_ledger(services, directory, shown)
        if known is None and _batch_of(directory):
            # Its files are compared, too: readers read them, and a manifest is no proof.
            if _has_manifest(entries):
                places.behind.append(directory)
            else:
                places.unknown.add(directory)
        for name, each in files.items():
            if name not in (known or ()):
                places.files[f"{directory}/{name}"] = each
    return places


def _names_in_ledger(
    services: Services, directory: str, shown: Collection[BatchId]
) -> frozenset[str] | None:
    """The files that a batch of the ledger has in this directory; None if it knows no such batch.

    Asked for now: since the ledger was read, a batch may have been committed and published, and the
    ledger knows of each batch before readers do. `shown` were published before storage was listed:
    a file that any other repair replaces was still in its place then, and the only one to be read.
    """
    batch_id = _batch_of(directory)
    batch = services.ledger.committed_batch(batch_id) if batch_id else None
    if batch is None:
        return None
    if str(BatchPath.of(batch.plan)) != directory:
        return frozenset()
    replaced = services.ledger.replacements(services.feed_name)
    names = (each.name for each in batch.manifest.files)
    return frozenset(
        each
        for each in names
        if replaced.get(CommittedFile(batch.plan.batch_id, each)) not in shown
    )


def _batch_of(directory: str) -> BatchId | None:
    try:
        return BatchPath.parse(directory).batch_id
    except ValueError:
        return None


def _has_manifest(entries: Iterable[StoredEntry]) -> bool:
    return any(each.name == MANIFEST_NAME for each in entries)


def _hidden(
    services: Services,
    tree: Tree,
    others: OtherFeeds,
    missing: Collection[FileState],
    is_kept: IsKept | None,
) -> tuple[list[StrayFile], Mapping[str, str]]:
    """The files that no reader reads, and the directories that could not be listed.

    What is known to be ours, or another feed's, is left out, but for quarantined files that are as
    long as a missing one: it may have been moved there before it was missed.
    """
    roots = feed_roots(services)
    own_roots = {*roots, *map(directory_of, others.known)}
    ours = [*others.known, *(each for root in own_roots for each in own_directories(root))]
    kept = [f"{each}/{QUARANTINE_NAME}/{services.feed_name}" for each in roots]
    hidden = {
        path: each
        for path, each in _by_path(tree).items()
        if not (each.is_read or is_below(path, ours))
    }
    with asking() as pool:
        tops = [*kept, *(path for path, each in hidden.items() if each.is_directory)]
        below = listed_tree(services, tops, pool, hidden=True)
    lengths = {each.length_bytes for each in missing}
    files: list[StrayFile] = []
    for path, each in sorted({**hidden, **_by_path(below)}.items()):
        if each.is_directory or each.name == MANIFEST_NAME:
            continue
        if not is_below(path, kept):
            files.append(stray_at(services, path, is_kept))
        elif each.length_bytes in lengths:
            files.append(StrayFile(path, None))
    return files, below.refused


def _by_path(tree: Tree) -> dict[str, StoredEntry]:
    return {
        f"{directory}/{each.name}": each
        for directory, entries in tree.entries.items()
        for each in entries
    }
