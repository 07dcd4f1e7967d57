"""What a run sees of the broker: a snapshot, tail anchors, and where the start policy begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.log_changes import AnchorCheck, Observation
from tallystick.domain.manifest import TailAnchor
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.workflows.services import Services

# A short regress right after a leader change is normal; a log that was cut stays cut.
_LOOKS_AT_A_REGRESS: Final = 4
_PAUSE_SECONDS: Final = 2.0


def observe(services: Services, generations: Mapping[int, GenerationAccount]) -> Observation:
    """One look at the topic, against what the ledger knows of it.

    The ledger was read before: a frontier can then only be behind the snapshot, never ahead of it.
    """
    snapshot = services.broker.snapshot(services.topic)
    for _ in range(_LOOKS_AT_A_REGRESS - 1):
        if not _has_regressed(snapshot, generations):
            break
        services.clock.pause(_PAUSE_SECONDS)
        snapshot = services.broker.snapshot(services.topic)
    return Observation(
        snapshot=snapshot,
        anchors=_checked_anchors(services, snapshot, generations),
        start_offsets={} if generations else _start_offsets(services, snapshot),
    )


def _has_regressed(snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]) -> bool:
    return any(
        bounds.high_watermark < account.accounted_until
        for account in _comparable(snapshot, generations)
        if (bounds := snapshot.partitions.get(account.partition.partition))
    )


def _comparable(
    snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> list[GenerationAccount]:
    """The generations that are open and whose log the snapshot shows."""
    return [
        account
        for account in generations.values()
        if account.state is GenerationState.OPEN
        and (account.cluster_id, account.topic_id) == (snapshot.cluster_id, snapshot.topic_id)
    ]


def _checked_anchors(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> dict[int, AnchorCheck]:
    anchors: dict[int, TailAnchor] = {
        account.partition.partition: account.anchor
        for account in _comparable(snapshot, generations)
        if account.anchor
    }
    readable = {
        partition: anchor.offset
        for partition, anchor in anchors.items()
        if (bounds := snapshot.partitions.get(partition))
        and bounds.log_start_offset <= anchor.offset < bounds.high_watermark
    }
    records = services.broker.records_at(services.topic, readable) if readable else {}
    checks: dict[int, AnchorCheck] = {}
    for partition, anchor in anchors.items():
        record = records.get(partition)
        if record is None:
            account = generations[partition]
            checks[partition] = _check_by_epoch(services, account, anchor)
        else:
            is_same = record.content_hash == anchor.content_hash
            checks[partition] = AnchorCheck.INTACT if is_same else AnchorCheck.DIFFERS
    return checks


def _check_by_epoch(
    services: Services, account: GenerationAccount, anchor: TailAnchor
) -> AnchorCheck:
    """Without the record itself: the leader's log must still reach past it in the record's epoch.

    KIP-101: the end of an epoch in the leader's log is where a log that was cut diverges.
    """
    if anchor.leader_epoch is None:
        return AnchorCheck.GONE
    until = services.broker.epoch_end(account.partition, anchor.leader_epoch)
    if until is None:
        return AnchorCheck.GONE
    return AnchorCheck.INTACT if until > anchor.offset else AnchorCheck.DIFFERS


def _start_offsets(services: Services, snapshot: BrokerSnapshot) -> dict[int, int]:
    """Where the feed's responsibility begins, by partition."""
    source = services.feed.source
    earliest = {p: bounds.log_start_offset for p, bounds in snapshot.partitions.items()}
    if source.start == "earliest":
        return earliest
    latest = {
        p: bounds.readable_until(services.isolation) for p, bounds in snapshot.partitions.items()
    }
    if not isinstance(source.start, datetime):
        return latest
    found = services.broker.offsets_at(services.topic, source.start, tuple(snapshot.partitions))
    return {
        p: latest[p] if (offset := found.get(p)) is None else max(offset, earliest[p])
        for p in snapshot.partitions
    }
