"""Lists what may hold the rows of missing files: all below the feed's roots that is unexplained,
whether readers read it or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tallystick.domain.batches.batch import CommittedFile
from tallystick.ledger.proofs import FileState
from tallystick.ledger.publishing import CommittedBatch
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.readers_tree import asking, listed_tree
from tallystick.workflows.stored.stray_check import look_at_strays


def unexplained_paths(
    services: Services, batches: Iterable[CommittedBatch], missing: Collection[CommittedFile]
) -> list[str]:
    """Give the paths that are unexplained or unread while files of these batches are missing.

    Storage is listed only if one is that held rows. Raises StorageUnavailable.
    """
    lost = [
        FileState.of(file)
        for batch in batches
        for file in batch.manifest.files
        if file.slices and CommittedFile(batch.plan.batch_id, file.name) in missing
    ]
    if not lost:
        return []
    directories = services.ledger.directories(services.feed_name)
    tops = [f"{root}/{services.feed_name}" for root in feed_roots(services)]
    with asking() as pool:
        tree = listed_tree(services, tops, pool)
    look = look_at_strays(services, directories, directories, tree, lost)
    return sorted({*look.refused, *look.unexplained, *look.unread})
