"""What a ledger says of a feed, as a value that two ledgers can be compared by."""

from __future__ import annotations

from typing import Any

from tallystick.domain.ranges import union_of
from tallystick.workflows.services import Services


def account_of(services: Services) -> dict[str, Any]:
    """Committed offsets, counts, frontiers, anchors and current files; ids that a ledger gives out
    are left out, and so is what no manifest can hold.
    """
    ledger, feed = services.ledger, services.feed_name
    manifests = ledger.committed_manifests(feed)
    logs = {
        (each.partition.partition, each.ordinal): each
        for of_partition in ledger.generations(feed).values()
        for each in of_partition
    }
    committed: dict[tuple[int, int], list[Any]] = {}
    for manifest in manifests:
        for each in manifest.ranges:
            key = (each.planned.offsets.partition.partition, manifest.plan.ordinal)
            committed.setdefault(key, []).append(each.planned.offsets)
    return {
        "committed": {key: union_of(ranges) for key, ranges in sorted(committed.items())},
        "logs": {
            key: (
                account.cluster_id,
                account.topic_id,
                account.first_offset,
                account.frontier,
                account.beyond,
                account.anchor,
                account.read_until,
                account.read_epoch,
            )
            for key, account in sorted(logs.items())
        },
        "files": sorted(
            (each.batch_id, each.attempt_id, each.file, each.is_published)
            for each in ledger.files(feed)
        ),
    }
