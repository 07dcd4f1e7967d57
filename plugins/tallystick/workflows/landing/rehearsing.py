"""Rehearses a landing with a Spark server that is shared: it may be another user of HDFS than ours.

What it writes must be ours to read, to add to, to rename and to delete. This is tried before it
reads anything, and once a day: the sweep takes away what says that it went well.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from tallystick.domain.batches.paths import MANIFEST_NAME, PROBE_PREFIX, STAGING_NAME
from tallystick.errors import StorageRefused
from tallystick.workflows.services import Services


def rehearse(services: Services, root: str, server: str, write: Callable[[str], object]) -> None:
    """Return if what the server writes can be taken over, or could be within the last day.

    `write` lets it write a small Parquet directory at a URI, and may raise what Spark raises.
    Raises StorageRefused, StorageUnavailable.
    """
    store, probe = services.store, f"{root}/{STAGING_NAME}/{PROBE_PREFIX}"
    went_well = f"{probe}{sha256(server.encode()).hexdigest()[:16]}"
    if store.status(went_well) is not None:
        return
    place = f"{probe}{services.new_id()}"
    write(store.uri(place))
    try:
        for each in store.entries(place):
            store.read(f"{place}/{each.name}")
        store.write(f"{place}/{MANIFEST_NAME}", b"")
        store.rename_exclusive(place, f"{place}-moved")
        store.delete(f"{place}-moved")
    except StorageRefused as error:
        reason = f"what the Spark server {server} writes is not ours; is it another user?"
        raise StorageRefused(place, f"{reason} {error.args[1]}") from error
    store.write(went_well, b"")
