"""All lives of the feed's logs that the ledger knows."""

from __future__ import annotations

from tallystick.domain.rebuilding.plan import Logs
from tallystick.workflows.services import Services


def logs_of(services: Services) -> Logs:
    """The logs, by partition and ordinal."""
    return {
        (each.partition.partition, each.ordinal): each
        for of_partition in services.ledger.generations(services.feed_name).values()
        for each in of_partition
    }
