"""Lists the directories in which readers find batches, and which of them the ledger lacks.

Storage is listed first and the ledger asked afterwards: it knows of each batch before readers do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tallystick.domain.paths import BatchPath
from tallystick.errors import FileMissing
from tallystick.workflows.services import Services

_LEVELS = ("gen=", "dt=", "hour=", "batch=")


def feed_roots(services: Services, more: Collection[str] = ()) -> tuple[str, ...]:
    """Every directory below which the feed's batches may lie: today's, the ledger's, and `more`."""
    return tuple(sorted({services.root, *services.ledger.roots(services.feed_name), *more}))


def unknown_batches(services: Services, roots: Collection[str]) -> list[BatchPath]:
    """The published batches below these roots that the ledger has not committed, sorted.

    Each holds a `_tally.json`: a directory without one is no batch, whatever its name.
    """
    found = {str(each): each for root in roots for each in batch_paths(services, root)}
    ids = sorted({each.batch_id for each in found.values()})
    known = set(services.ledger.committed_among(services.feed_name, ids)) if ids else set()
    return [
        path
        for _, path in sorted(found.items())
        if path.batch_id not in known and services.store.status(path.manifest) is not None
    ]


def batch_paths(services: Services, root: str) -> Iterator[BatchPath]:
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
                (f"{directory}/{name}", level + 1)
                for name in _directories(services, directory)
                if name.startswith(_LEVELS[level])
            ]


def _directories(services: Services, directory: str) -> list[str]:
    try:
        entries = services.store.entries(directory)
    except FileMissing:
        return []
    return [each.name for each in entries if each.is_directory]
