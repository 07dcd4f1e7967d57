"""Batches that somebody has moved below another root: the ledger takes their new place on record.

Nothing in storage is changed, nothing is landed: a batch is entered where it lies whole, by length
and checksum of each file, or by its bytes where it is stored in another way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId, Owner
from tallystick.errors import FileMissing, RepairRefused
from tallystick.ledger.proofs import CommittedDirectory, FileState
from tallystick.workflows.place import at, counted
from tallystick.workflows.services import Services
from tallystick.workflows.stored.stored_files import made_again, stored_file

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MovedReport:
    """What was, or would be, entered."""

    feed: str
    topic: str
    is_dry_run: bool
    moved: Sequence[BatchId]
    left: Mapping[str, str]
    """By directory: why the ledger keeps it where it was."""


def enter_moved(
    services: Services, from_root: str, to_root: str, by: Owner, *, dry_run: bool
) -> MovedReport:
    """Enter the published batches that lie whole below the other root, and not below this one.

    Raises RepairRefused where the feed has no batch below `from_root`; StorageUnavailable.
    """
    feed = services.feed_name
    old, new = from_root.rstrip("/"), to_root.rstrip("/")
    with at(services, "repair"):
        found = [each for each in services.ledger.directories(feed) if each.path.root == old]
        if old == new or not found:
            raise RepairRefused(f"feed {feed} has no batch below {old} that could lie below {new}.")
        why_not = {
            each.path: _why_not(services, each, replace(each.path, root=new))
            for each in counted(services, "compare files", "directories", found)
        }
        moved = [path.batch_id for path, why in why_not.items() if why is None]
        if moved and not dry_run:
            services.ledger.record_move(moved, old, new, by)
            log.info("Feed %s: %d batches lie below %s by now.", feed, len(moved), new)
    left = {str(path): why for path, why in why_not.items() if why}
    return MovedReport(feed, services.topic, dry_run, moved, left)


def _why_not(services: Services, directory: CommittedDirectory, there: BatchPath) -> str | None:
    """Why it can't be entered at the other place; None if it lies there, whole, and only there."""
    if not directory.is_published:
        return "it is not published yet: the next run does that, below its own root."
    if services.store.status(str(directory.path)) is not None:
        return "it is still in its place."
    try:
        lengths = {each.name: each.length_bytes for each in services.store.entries(str(there))}
    except FileMissing:
        return f"{there} is not there."
    for name, file in directory.files.items():
        if lengths.get(name) != file.length_bytes or not _is(services, f"{there}/{name}", file):
            return f"{there}/{name} is not the file that was committed, or nobody can tell."
    return None


def _is(services: Services, path: str, file: FileState) -> bool:
    found = stored_file(services, path, file.length_bytes, file.checksum)
    if found is not None and found.is_stored_anew:
        return made_again(services, path, found, file.checksum) == file.checksum
    return found is not None and (found.checksum, found.trouble) == (file.checksum, None)
