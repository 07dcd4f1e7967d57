"""Lists the directories in which readers find batches, and which of them the ledger lacks.

Storage is listed first and the ledger asked afterwards: it knows of each batch before readers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.stored_file import UnknownDirectories
from tallystick.domain.rules.a10_ledger_behind import ledger_behind
from tallystick.errors import FileMissing, LedgerBehind
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import listed_files
from tallystick.workflows.stored.stray_rows import is_news_to_ledger

_LEVELS = ("gen=", "dt=", "hour=", "batch=")
_HOURS: Final = 2


def feed_roots(services: Services, more: Collection[str] = ()) -> tuple[str, ...]:
    """Every directory below which the feed's batches may lie: today's, the ledger's, and `more`."""
    return tuple(sorted({services.root, *services.ledger.roots(services.feed_name), *more}))


@dataclass(frozen=True, slots=True)
class UnknownBatches:
    """Directories of batches that the ledger has not committed, sorted."""

    told: Sequence[BatchPath]
    """With a manifest."""
    bare: Sequence[BatchPath]
    """Without one, and with rows, or what may be rows, that the ledger has not committed."""

    def __bool__(self) -> bool:
        return bool(self.told or self.bare)


def unknown_batches(services: Services, roots: Collection[str]) -> UnknownBatches:
    """The published batches below these roots that the ledger has not committed."""
    return _unknown(services, [each for root in roots for each in batch_paths(services, root)])


def _unknown(services: Services, paths: Collection[BatchPath]) -> UnknownBatches:
    found = {str(each): each for each in paths}
    ids = sorted({each.batch_id for each in paths})
    known = set(services.ledger.committed_among(services.feed_name, ids)) if ids else set()
    unknown = [path for _, path in sorted(found.items()) if path.batch_id not in known]
    told = [each for each in unknown if services.store.status(each.manifest) is not None]
    left = (each for each in unknown if each not in told)
    return UnknownBatches(told, [each for each in left if _has_news(services, str(each))])


def _has_news(services: Services, directory: str) -> bool:
    """True for a directory with rows that the ledger has not committed."""
    return any(
        is_news_to_ledger(services, f"{directory}/{each.name}")
        for each in _entries(services, directory)
        if each.is_read and not each.is_directory
    )


def why_behind(services: Services, *, is_dry_run: bool = False) -> LedgerBehind | None:
    """Says that the storage has published batches that the ledger lacks; None where it has none.

    The finding is on record then, but for a dry run.

    Hours in which nothing has changed since they were compared with this very ledger are passed: a
    ledger that was restored remembers an older look, and one that is new remembers none.
    """
    behind: list[BatchPath] = []
    bare: list[BatchPath] = []
    compared = services.ledger.compared_hours(services.feed_name)
    hours = _Hours(compared, services.store.clock_ms())
    for root in feed_roots(services):
        unknown = _unknown(services, list(batch_paths(services, root, hours)))
        behind += unknown.told
        bare += unknown.bare
    if behind or bare:
        told, untold = (_as_listed(services, paths) for paths in (behind, bare))
        if not is_dry_run:
            found = ledger_behind(services.feed_name, services.topic, told, untold)
            services.ledger.record_findings(services.feed_name, found)
        return LedgerBehind(services.feed_name, [*told, *untold])
    if hours.listed and not is_dry_run:
        services.ledger.note_hours(services.feed_name, hours.listed)
    return None


def _as_listed(services: Services, paths: Iterable[BatchPath]) -> UnknownDirectories:
    return {str(each): listed_files(_entries(services, str(each))) for each in paths}


@dataclass(slots=True)
class _Hours:
    """The hours' directories, as a listing of their days shows them."""

    compared: Mapping[str, str]
    """The versions in which they were compared before, by path."""
    now_ms: int | None
    """By the file system's clock; None if it tells none."""
    listed: dict[str, str] = field(default_factory=dict)
    """The versions of those that are compared now, where the next change will show."""

    def is_due(self, path: str, hour: StoredEntry) -> bool:
        """True for an hour's directory in which something may have changed."""
        version = hour.settled_version(self.now_ms)
        if version and self.compared.get(path) == version:
            return False
        if version:
            self.listed[path] = version
        return True


def batch_paths(services: Services, root: str, hours: _Hours | None = None) -> Iterator[BatchPath]:
    """Every directory of the feed below the root that bears a batch's name."""
    waiting = [(f"{root}/{services.feed_name}", 0)]
    while waiting:
        directory, level = waiting.pop()
        if level == len(_LEVELS):
            try:
                yield BatchPath.parse(directory)
            except ValueError:
                continue
        else:
            waiting += [
                (path, level + 1)
                for each in _directories(services, directory)
                if each.name.startswith(_LEVELS[level])
                and (path := f"{directory}/{each.name}")
                and (level != _HOURS or hours is None or hours.is_due(path, each))
            ]


def _directories(services: Services, directory: str) -> list[StoredEntry]:
    return [each for each in _entries(services, directory) if each.is_directory]


def _entries(services: Services, directory: str) -> Sequence[StoredEntry]:
    """None of a directory that is gone."""
    try:
        return services.store.entries(directory)
    except FileMissing:
        return ()
