"""Asks the broker if logs are still the ones that were seen: `domain.logs.sameness` judges.

Costs nothing where no leader has changed and nothing was landed; else one request for each broker's
epochs, and few for the last landed records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import LogCheck, check_log, needs_epoch_end
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds, RecordEvidence
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import BrokerUnavailable, SourceRefused
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def bounds_of(
    services: Services, snapshot: BrokerSnapshot, partition: TopicPartition
) -> PartitionBounds:
    """The partition's bounds; raises BrokerUnavailable for one that has no leader."""
    bounds = snapshot.partitions.get(partition.partition)
    if bounds is None:
        raise BrokerUnavailable(
            services.servers, f"no leader can say how far {partition} may be read"
        )
    return bounds


def checked_logs(
    services: Services, snapshot: BrokerSnapshot, accounts: Iterable[GenerationAccount]
) -> Mapping[int, LogCheck]:
    """For each partition of the accounts that the snapshot shows: is its log the one that was seen?

    The accounts are of the very topic and cluster of the snapshot. Raises BrokerUnavailable when a
    leader has gone since the snapshot.
    """
    asked = {
        account.partition.partition: (account, bounds)
        for account in accounts
        if (bounds := snapshot.partitions.get(account.partition.partition))
    }
    records = _anchor_records(
        services,
        {
            partition: account.anchor.offset
            for partition, (account, bounds) in asked.items()
            if account.anchor
            and bounds.log_start_offset <= account.anchor.offset < bounds.high_watermark
        },
    )
    # The epochs last: what they say holds for the records, too.
    epochs = {
        partition: account.seen_epoch
        for partition, (account, bounds) in asked.items()
        if account.seen_epoch is not None and needs_epoch_end(account, bounds)
    }
    ends = services.broker.epoch_ends(services.topic, epochs) if epochs else {}
    return {
        partition: check_log(account, bounds, ends.get(partition), records.get(partition))
        for partition, (account, bounds) in asked.items()
    }


def _anchor_records(services: Services, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
    """The records at the anchors' offsets; one that can't be read is absent."""
    if not offsets:
        return {}
    try:
        return services.broker.records_at(services.topic, offsets)
    except SourceRefused as error:
        log.warning("A record can't be read; each partition is asked for alone: %s", error)
    found: dict[int, RecordEvidence] = {}
    for partition, offset in offsets.items():
        # One unreadable record must not stop the other partitions; its epochs are witness enough.
        with suppress(SourceRefused):
            found |= services.broker.records_at(services.topic, {partition: offset})
    return found
