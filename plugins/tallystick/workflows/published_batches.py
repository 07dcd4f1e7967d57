"""Lists the directories in which readers find batches, and which of them the ledger lacks.

Storage is listed first and the ledger asked afterwards: it knows of each batch before readers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from tallystick.domain.paths import BatchPath
from tallystick.domain.storage_rules import ledger_behind
from tallystick.errors import FileMissing, LedgerBehind
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

_LEVELS = ("gen=", "dt=", "hour=", "batch=")
_HOURS: Final = 2
# A batch may come into an hour while another hour is listed, and a NameNode that takes over has
# another clock: what changed this shortly before the newest change seen is listed again.
_LISTED_AGAIN_MS: Final = 3_600_000


def feed_roots(services: Services, more: Collection[str] = ()) -> tuple[str, ...]:
    """Every directory below which the feed's batches may lie: today's, the ledger's, and `more`."""
    return tuple(sorted({services.root, *services.ledger.roots(services.feed_name), *more}))


def unknown_batches(services: Services, roots: Collection[str]) -> list[BatchPath]:
    """The published batches below these roots that the ledger has not committed, sorted.

    Each holds a `_tally.json`: a directory without one is no batch, whatever its name.
    """
    return _unknown(services, [each for root in roots for each in batch_paths(services, root)])


def _unknown(services: Services, paths: Collection[BatchPath]) -> list[BatchPath]:
    found = {str(each): each for each in paths}
    ids = sorted({each.batch_id for each in paths})
    known = set(services.ledger.committed_among(services.feed_name, ids)) if ids else set()
    return [
        path
        for _, path in sorted(found.items())
        if path.batch_id not in known and services.store.status(path.manifest) is not None
    ]


def require_ledger_not_behind(services: Services, *, is_dry_run: bool = False) -> None:
    """Raise LedgerBehind, with its finding on record, for published batches that the ledger lacks.

    A dry run raises the same, and leaves nothing on record.

    Hours in which nothing has changed since they were compared with this very ledger are passed: a
    ledger that was restored remembers an older look, and one that is new remembers none.
    """
    behind: list[BatchPath] = []
    looks: dict[str, int] = {}
    with at(services, "plan"):
        for root in feed_roots(services):
            listing = _Listing(services.ledger.newest_look(services.feed_name, root))
            paths = list(batch_paths(services, root, listing))
            behind += _unknown(services, paths)
            if listing.newest_ms is not None:
                looks[root] = listing.newest_ms
        if behind:
            directories = [str(each) for each in behind]
            if not is_dry_run:
                found = ledger_behind(services.feed_name, services.topic, directories)
                services.ledger.record_findings(services.feed_name, found)
            raise LedgerBehind(services.feed_name, directories)
        for root, newest_ms in looks.items() if not is_dry_run else ():
            services.ledger.note_look(services.feed_name, root, newest_ms)


def why_behind(services: Services, *, is_dry_run: bool = False) -> LedgerBehind | None:
    """What `require_ledger_not_behind` raises, for who goes on without what this forbids."""
    try:
        require_ledger_not_behind(services, is_dry_run=is_dry_run)
    except LedgerBehind as error:
        return error
    return None


@dataclass(slots=True)
class _Listing:
    """What a listing may pass, and how far it came."""

    since_ms: int | None = None
    """The newest change that was compared before; None lists everything."""
    newest_ms: int | None = None

    def is_due(self, hour: StoredEntry) -> bool:
        """True for an hour's directory in which something may have changed."""
        self.newest_ms = max(self.newest_ms or 0, hour.changed_ms)
        return self.since_ms is None or hour.changed_ms > self.since_ms - _LISTED_AGAIN_MS


def batch_paths(
    services: Services, root: str, listing: _Listing | None = None
) -> Iterator[BatchPath]:
    """Every directory of the feed below the root that bears a batch's name."""
    listing = listing or _Listing()
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
                (f"{directory}/{each.name}", level + 1)
                for each in _directories(services, directory)
                if each.name.startswith(_LEVELS[level])
                and (level != _HOURS or listing.is_due(each))
            ]


def _directories(services: Services, directory: str) -> list[StoredEntry]:
    try:
        entries = services.store.entries(directory)
    except FileMissing:
        return []
    return [each for each in entries if each.is_directory]
