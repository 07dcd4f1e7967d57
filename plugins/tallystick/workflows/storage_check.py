"""Level L2: lists what readers see, and compares it with what the ledger committed.

1. Storage is listed first, and the ledger asked again about everything that looks wrong: batches
   are published, and files replaced, while this goes on.
2. A directory that can't be listed is UNKNOWN by its path; what lies below it is not called lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tallystick.domain.batch import BatchPlan, CommittedFile
from tallystick.domain.findings import Finding, FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.manifest import Manifest
from tallystick.domain.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.storage_rules import (
    StoredFile,
    generation_in,
    is_read,
    landed_inside,
    ledger_behind,
    missing_or_changed,
    perhaps_forgotten,
    stray_files,
    stray_rows_twice,
    unlisted,
    without_manifest,
)
from tallystick.errors import FileMissing, ManifestMismatch, StorageError, StorageRefused
from tallystick.ports.file_store import StoredEntry
from tallystick.ports.proofs import CommittedDirectory, FileState
from tallystick.workflows.other_feeds import is_below, other_feeds_among
from tallystick.workflows.published_manifests import manifest_at
from tallystick.workflows.services import Services

T = TypeVar("T")
R = TypeVar("R")

# A NameNode answers each in a millisecond or so; these overlap the waiting, and no more.
_ASKING_AT_ONCE: Final = 8


@dataclass(slots=True)
class Tree:
    """The readers' directories as they were listed."""

    entries: dict[str, Sequence[StoredEntry]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Directories that could not be listed, each with the reason."""

    def hides(self, directory: str) -> bool:
        """True for what lies in, or below, a directory that could not be listed."""
        return is_below(directory, self.refused)


def storage_findings(
    services: Services, directories: Sequence[CommittedDirectory]
) -> list[Finding]:
    """Missing, changed and foreign files, and batches that the ledger has never heard of.

    Raises StorageUnavailable when nothing can be said; a part that is refused is a finding.
    """
    roots = {services.root, *(each.path.root for each in directories)}
    with ThreadPoolExecutor(_ASKING_AT_ONCE, thread_name_prefix="storage-check") as pool:
        tree = _listed(services, sorted(f"{root}/{services.feed_name}" for root in roots), pool)
        seen = [each for each in directories if not tree.hides(str(each.path))]
        looks = _all(pool, lambda each: _unlike(services, each, tree), seen)
    found = [each for look in looks if look for each in _file_findings(services, look)]
    found += _strays(services, directories, tree)
    found += _without_manifest(services, directories, tree)
    found += unlisted(services.feed_name, services.topic, tree.refused)
    return perhaps_forgotten(found, list(_unknown_plans(services, found)))


def _without_manifest(
    services: Services, directories: Sequence[CommittedDirectory], tree: Tree
) -> Sequence[Finding]:
    """Of a directory that is there; of one that is gone its files are missed, if it had any."""
    bare: dict[str, str] = {}
    for each in directories:
        entries = tree.entries.get(str(each.path))
        is_told = entries is None and (each.files or tree.hides(str(each.path)))
        if each.is_published and not is_told:
            trouble = _trouble_of_manifest(services, each, entries or ())
            if trouble:
                bare[str(each.path)] = trouble
    return without_manifest(services.feed_name, services.topic, bare)


def _trouble_of_manifest(
    services: Services, directory: CommittedDirectory, entries: Sequence[StoredEntry]
) -> str | None:
    """What became of it; it is looked for again, for a repair may have written it meanwhile."""
    found = next((each for each in entries if each.name == MANIFEST_NAME), None)
    if found is None or found.length_bytes != directory.manifest_bytes:
        with suppress(StorageRefused):
            found = services.store.status(directory.path.manifest)
    if found is None:
        return "is gone"
    if found.length_bytes != directory.manifest_bytes:
        return f"has {found.length_bytes} bytes, {directory.manifest_bytes} were committed"
    return None


def _unknown_plans(services: Services, found: Sequence[Finding]) -> Iterator[BatchPlan]:
    """What the batches say they hold that the ledger does not know, if their manifests are read."""
    for each in found:
        if each.code is FindingCode.LEDGER_BEHIND:
            try:
                manifest = manifest_at(services, BatchPath.parse(each.subject))
            except StorageRefused:
                continue
            if isinstance(manifest, Manifest):
                yield manifest.plan


def _all(pool: ThreadPoolExecutor, ask: Callable[[T], R], of: Sequence[T]) -> list[R]:
    """The answers in order; the first error ends the asking."""
    asked = [pool.submit(ask, each) for each in of]
    try:
        return [each.result() for each in asked]
    except BaseException:
        for each in asked:
            each.cancel()
        raise


def _listed(services: Services, tops: Sequence[str], pool: ThreadPoolExecutor) -> Tree:
    """Every directory below `tops` that Spark and Hive would step into."""
    tree, waiting = Tree(), list(tops)

    def entries_of(directory: str) -> Sequence[StoredEntry] | str | None:
        try:
            return services.store.entries(directory)
        except FileMissing:
            return None
        except StorageRefused as error:
            return error.sentence()

    while waiting:
        answers = _all(pool, entries_of, waiting)
        listed = dict(zip(waiting, answers, strict=True))
        waiting = []
        for directory, answer in listed.items():
            if isinstance(answer, str):
                tree.refused[directory] = answer
            elif answer is not None:
                tree.entries[directory] = answer
                waiting += [
                    f"{directory}/{each.name}"
                    for each in answer
                    if each.is_directory and is_read(each.name)
                ]
    return tree


@dataclass(frozen=True, slots=True)
class _Unlike:
    """A batch's directory that is not as it was committed, where most of it lies now."""

    directory: CommittedDirectory
    place: str
    stored: Mapping[str, StoredFile]


def _unlike(services: Services, directory: CommittedDirectory, tree: Tree) -> _Unlike | None:
    """What is there instead of what was committed; None when all is well.

    The rename may come between two looks, so the target is looked at again after staging. A
    published batch is looked at twice too: a file may go between its listing and its checksum.
    """
    target, staging = str(directory.path), directory.staging
    worst: _Unlike | None = None
    listed = tree.entries.get(target)
    if listed is not None:
        worst = _compared(services, directory, target, listed)
        if worst is None:
            return None
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
            found = _looked_at(services, f"{place}/{name}", file, lengths[name])
            if found is not None:
                stored[name] = found
    as_committed = {
        name: StoredFile(file.length_bytes, file.checksum) for name, file in directory.files.items()
    }
    return None if stored == as_committed else _Unlike(directory, place, stored)


def _looked_at(services: Services, path: str, file: FileState, length: int) -> StoredFile | None:
    """The file with its checksum, which is not asked for where the length differs; None if gone.

    One that can't be read for itself hides no other. Raises StorageUnavailable when nothing of the
    file system answers.
    """
    if length != file.length_bytes:
        return StoredFile(length, None)
    try:
        return StoredFile(length, services.store.checksum(path))
    except FileMissing:
        return None
    except (StorageError, ManifestMismatch) as error:
        services.store.status(path.rpartition("/")[0])
        return StoredFile(length, None, error.sentence())


def _file_findings(services: Services, look: _Unlike) -> Iterator[Finding]:
    """What is wrong with a batch's files, those left out that were replaced in the meantime."""
    batch = services.ledger.committed_batch(look.directory.batch_id)
    if batch is None:
        return
    replaced = services.ledger.replacements(services.feed_name)
    standing = {
        name
        for name in look.directory.files
        if CommittedFile(look.directory.batch_id, name) not in replaced
    }
    for finding in missing_or_changed(batch.manifest, look.place, look.stored):
        if finding.evidence.get("file") in standing:
            yield finding


def _strays(
    services: Services, directories: Sequence[CommittedDirectory], tree: Tree
) -> list[Finding]:
    owned = {str(each.path): each.files for each in directories}
    shown = {each.batch_id for each in directories if each.is_published}
    others = other_feeds_among(
        services, (each for each in sorted(tree.entries) if each not in owned)
    )
    strays: list[str] = []
    behind: list[str] = []
    for directory, entries in sorted(tree.entries.items()):
        if is_below(directory, others):
            continue
        names = [each.name for each in entries if is_read(each.name) and not each.is_directory]
        if not names or set(names) <= owned.get(directory, {}).keys():
            continue
        known = _names_in_ledger(services, directory, shown)
        if known is None and _is_published_batch(directory, entries):
            behind.append(directory)
        else:
            strays += [f"{directory}/{each}" for each in names if each not in (known or ())]
    return [
        *landed_inside(services.feed_name, services.topic, others),
        *stray_files(services.feed_name, services.topic, strays),
        *(each for path in strays for each in _twice(services, path)),
        *ledger_behind(services.feed_name, services.topic, behind),
    ]


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


def _is_published_batch(directory: str, entries: Sequence[StoredEntry]) -> bool:
    """True for a directory of ours that holds a manifest."""
    return _batch_of(directory) is not None and any(each.name == MANIFEST_NAME for each in entries)


def _twice(services: Services, path: str) -> Sequence[Finding]:
    """The committed offsets that readers of the plain directories find in a stray file too."""
    directory, _, name = path.rpartition("/")
    generation = generation_in(path)
    if generation is None:
        return ()
    try:
        held = services.store.read_back_file(directory, name).landed
    except (ManifestMismatch, FileMissing, StorageRefused):
        return ()
    committed = {
        partition: services.ledger.committed_within(
            services.feed_name,
            generation,
            partition,
            offsets.from_offsets[0],
            offsets.until_offsets[-1],
        )
        for partition, offsets in held.items()
        if offsets
    }
    return stray_rows_twice(services.feed_name, services.topic, path, held, committed)
