"""Show frontiers to tools that watch lag, behind a publication: best effort, never read back."""

from __future__ import annotations

import logging

from tallystick.errors import IngestionError
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def show_frontiers(services: Services) -> None:
    """Commit what the ledger has to the group of `source.export_group`, if the feed names one.

    A failure is a warning: the ledger alone says what is landed, and the next batch shows it.
    """
    if services.frontier_group is None:
        return
    try:
        logs = services.ledger.newest_logs(services.feed_name)
        frontiers = {each.partition: each.frontier for each in logs if each.state == "open"}
        if frontiers:
            services.frontier_group.show(services.feed.name, services.topic, frontiers)
    except IngestionError as error:
        log.warning(
            "Feed %s: the group %s does not show what is landed: %s",
            services.feed.name,
            services.feed.source.export_group,
            error.describe(),
        )
