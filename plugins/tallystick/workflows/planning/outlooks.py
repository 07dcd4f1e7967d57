"""What rules need beside a snapshot: batch headers at frontiers, and how ends moved before.

Asked for logs with something unread or undecided only, so an idle feed costs no request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot
from tallystick.domain.rules.witnesses import Terms
from tallystick.errors import SourceRefused
from tallystick.settings.cadence import longest_pause
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def terms(services: Services) -> Terms:
    """By what the feed is judged now."""
    feed, now = services.feed, services.present()
    return Terms(
        isolation=services.isolation,
        warn_time_to_loss=feed.reconcile.warn_time_to_loss,
        run_period=longest_pause(feed.schedule.cron, now),
        now=now,
    )


def outlook(
    services: Services, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> Outlook:
    """The evidence for near losses and hung transactions."""
    known = {
        partition: (account, bounds)
        for partition, account in generations.items()
        if snapshot.is_of(account) and (bounds := snapshot.partitions.get(partition))
    }
    unread = {
        partition: max(account.frontier, bounds.log_start_offset)
        for partition, (account, bounds) in known.items()
        if max(account.frontier, bounds.log_start_offset) < bounds.high_watermark
    }
    undecided = {
        partition: bounds.last_stable_offset
        for partition, (_, bounds) in known.items()
        if bounds.last_stable_offset < bounds.high_watermark
    }
    is_bounded = snapshot.retention_ms is not None or snapshot.retention_bytes is not None
    looked_back = undecided.keys() | (unread.keys() if snapshot.retention_bytes else set())
    at_frontier = _heads(services, unread if is_bounded else {})
    return Outlook(
        at_frontier=at_frontier or {},
        not_told=unread.keys() if at_frontier is None else (),
        at_stable=_heads(services, undecided) or {},
        past=services.ledger.past_bounds(services.feed_name, snapshot.topic_id, looked_back),
        longest_transaction=services.broker.longest_transaction() if undecided else None,
        idle=services.ledger.idle(services.feed_name) if unread else None,
    )


def _heads(services: Services, offsets: Mapping[int, int]) -> Mapping[int, BatchHead] | None:
    """None when the broker did not tell."""
    if not offsets:
        return {}
    try:
        return services.broker.batch_heads(services.topic, offsets)
    except SourceRefused as error:
        log.warning("Batch headers can't be read, so nothing is said of them: %s", error)
        return None
