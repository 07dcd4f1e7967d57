"""What another feed has landed inside this feed's directories, because its root lies there.

The ledger or the batch's own manifest vouches for that. A directory that was copied or moved by
hand says of itself that it lies elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.errors import ConfigurationError, FileMissing, StorageRefused
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def require_root_outside(services: Services) -> None:
    """Refuse to begin where another feed's readers would find this feed's rows.

    Raises ConfigurationError before the first landing below a root that lies in another feed's
    directory. A feed that has landed there goes on: what it does not read in time would be lost.
    """
    with at(services, "plan"):
        outer = next(_feeds_around(services), None)
        if outer is None:
            return
        directory = f"{outer.root}/{outer.feed}"
        error = ConfigurationError(
            "target.root",
            services.root,
            f"a directory outside of {directory}, where feed {outer.feed} lands",
            where=f"feed {services.feed_name}",
        )
        if services.root not in services.ledger.roots(services.feed_name):
            raise error
    log.warning("Readers of feed %s find the rows of this feed too: %s", outer.feed, error)


def _feeds_around(services: Services) -> Iterator[BatchPlan]:
    """A batch of each feed in whose directory this feed's root lies, as far as we may read."""
    root = PurePosixPath(services.root)
    for directory in (root, *root.parents)[:-1]:
        # A feed's first generation is 1: one question for each directory, and seldom a listing.
        generation = f"{directory}/gen=1"
        with suppress(StorageRefused):
            if services.store.status(generation) is not None:
                asked = (
                    batch_of_another(services, each) for each in _batches_in(services, generation)
                )
                yield from islice((each for each in asked if each), 1)


def _batches_in(services: Services, generation: str) -> Iterator[str]:
    for day in _names(services, generation):
        for hour in _names(services, f"{generation}/{day}"):
            for batch in _names(services, f"{generation}/{day}/{hour}"):
                yield f"{generation}/{day}/{hour}/{batch}"


def _names(services: Services, directory: str) -> list[str]:
    try:
        return [each.name for each in services.store.entries(directory) if each.is_directory]
    except FileMissing:
        return []


@dataclass(frozen=True, slots=True)
class OtherFeeds:
    """Directories of other feeds."""

    known: dict[str, str] = field(default_factory=dict)
    """Each with the feed's name."""
    unread: dict[str, str] = field(default_factory=dict)
    """What may be one, each with the reason why nobody can tell; nothing is moved on that."""


def other_feeds_among(services: Services, directories: Iterable[str]) -> OtherFeeds:
    """The directories of other feeds in which some of these lie."""
    found = OtherFeeds()
    for directory in directories:
        if is_below(directory, found.known):
            continue
        try:
            plan = batch_of_another(services, directory)
        except StorageRefused as error:
            path = BatchPath.parse(directory)
            found.unread[f"{path.root}/{path.feed}"] = error.sentence()
            continue
        if plan:
            found.known[f"{plan.root}/{plan.feed}"] = plan.feed
    return found


def is_below(path: str, directories: Iterable[str]) -> bool:
    """True for one of the directories, and for what lies in or below one."""
    return any(f"{path}/".startswith(f"{each}/") for each in directories)


def batch_of_another(services: Services, directory: str) -> BatchPlan | None:
    """The batch of another feed that lies exactly here by its ledger or its manifest; None without.

    Raises StorageRefused for a manifest that may not be read.
    """
    try:
        path = BatchPath.parse(directory)
        if path.feed == services.feed_name:
            return None
        known = services.ledger.committed_batch(path.batch_id)
        manifest = known.manifest if known else _manifest_of(services, path)
    except (ValueError, FileMissing):
        return None
    return manifest.plan if BatchPath.of(manifest.plan) == path else None


def _manifest_of(services: Services, path: BatchPath) -> Manifest:
    return Manifest.from_json(services.store.read(path.manifest).decode())
