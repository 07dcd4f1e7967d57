"""What a run sees of the broker: a snapshot, tail anchors, and where the start policy begins."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.log_changes import Accounts, AnchorCheck, Observation
from tallystick.domain.snapshot import (
    BatchHead,
    BrokerSnapshot,
    PartitionBounds,
    RecordEvidence,
)
from tallystick.errors import AnotherCluster, BrokerUnavailable, SourceRefused
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# A short regress right after a leader change is normal; a log that was cut stays cut.
_LOOKS_AT_A_REGRESS: Final = 4
_PAUSE_SECONDS: Final = 2.0


def observe(services: Services, accounts: Accounts) -> Observation:
    """One look at the topic, against what the ledger knows of it.

    The ledger was read before: a frontier can then only be behind the snapshot, never ahead of it.
    Raises AnotherCluster, and BrokerUnavailable for a broker that answers with a topic of the past.
    """
    generations = accounts.generations
    snapshot = _settled_snapshot(services, generations)
    _require_present_log(services, accounts, snapshot)
    checked = _checked_anchors(services, snapshot, generations)
    while not checked.are_all_intact:
        # Records are asked for by the topic's name: a topic that was re-created a moment ago
        # answers with records of another log.
        after = _settled_snapshot(services, generations)
        if (after.cluster_id, after.topic_id) == (snapshot.cluster_id, snapshot.topic_id):
            break
        _require_present_log(services, accounts, after)
        snapshot, checked = after, _checked_anchors(services, after, generations)
    return Observation(
        snapshot=snapshot,
        anchors=checked.anchors,
        start_offsets={} if generations else _start_offsets(services, snapshot),
        first_batches=_first_batches(services, snapshot, generations),
        cut_at=checked.cut_at,
    )


def _first_batches(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> Mapping[int, BatchHead]:
    """With what the logs begin whose start has passed the frontier: it tells who moved it."""
    starts = {
        account.partition.partition: bounds.log_start_offset
        for account in _comparable(snapshot, generations)
        if (bounds := snapshot.partitions.get(account.partition.partition))
        and account.frontier < bounds.log_start_offset < bounds.high_watermark
    }
    if not starts:
        return {}
    try:
        return services.broker.batch_heads(services.topic, starts)
    except SourceRefused as error:
        log.warning("The first batches can't be read, so who deleted is not known: %s", error)
        return {}


def _require_present_log(services: Services, accounts: Accounts, snapshot: BrokerSnapshot) -> None:
    """The log must be the feed's own, or a newer life of it: never an earlier one again.

    Offsets of a log that comes back would be landed twice, under another generation.
    """
    clusters = {
        each.cluster_id
        for each in accounts.generations.values()
        if each.state is not GenerationState.CLOSED
    }
    if clusters and snapshot.cluster_id not in clusters:
        raise AnotherCluster(services.feed_name, min(clusters), snapshot.cluster_id)
    if snapshot.topic_id in accounts.retired_topic_ids:
        raise BrokerUnavailable(
            services.servers,
            f"it answers with topic id {snapshot.topic_id} for {snapshot.topic!r}, which was"
            " deleted and re-created since",
        )


def _settled_snapshot(
    services: Services, generations: Mapping[int, GenerationAccount]
) -> BrokerSnapshot:
    """A snapshot in which no log seems to be cut, or the last of several that all say so."""
    snapshot = services.broker.snapshot(services.topic)
    for _ in range(_LOOKS_AT_A_REGRESS - 1):
        if not _has_regressed(snapshot, generations):
            break
        services.clock.pause(_PAUSE_SECONDS)
        snapshot = services.broker.snapshot(services.topic)
    return snapshot


def _has_regressed(snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]) -> bool:
    return any(
        bounds.high_watermark < account.readable_before
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


@dataclass(frozen=True, slots=True)
class _Checked:
    """What became of the logs that were read before, by partition."""

    anchors: Mapping[int, AnchorCheck]
    cut_at: Mapping[int, int]

    @property
    def are_all_intact(self) -> bool:
        is_read_intact = all(check is AnchorCheck.INTACT for check in self.anchors.values())
        return is_read_intact and not self.cut_at


def _checked_anchors(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> _Checked:
    """For each log that was read before: is it still the same up to where it was read?

    Two witnesses: the leader epochs, which cover everything up to the read's end, and the last
    landed record itself. One that says no is believed; one that says yes is enough.
    """
    checks: dict[int, AnchorCheck] = {}
    cut_at: dict[int, int] = {}
    records = _anchor_records(services, snapshot, generations)
    for account in _comparable(snapshot, generations):
        partition = account.partition.partition
        bounds = snapshot.partitions.get(partition)
        if bounds is None:
            continue
        seen_until = _seen_until(services, account, bounds)
        if seen_until is not None and seen_until < account.last_seen_until:
            cut_at[partition] = seen_until
        if account.read_until is None:
            continue
        same_until = _same_until(services, account, bounds)
        said = {_said_by_epochs(account.read_until, same_until)}
        if same_until is not None and same_until < account.read_until:
            cut_at[partition] = same_until
        record = records.get(partition)
        if record and account.anchor:
            is_same = record.content_hash == account.anchor.content_hash
            said.add(AnchorCheck.INTACT if is_same else AnchorCheck.DIFFERS)
        checks[partition] = next(
            each
            for each in (AnchorCheck.DIFFERS, AnchorCheck.INTACT, AnchorCheck.GONE)
            if each in said
        )
    return _Checked(checks, cut_at)


def _same_until(
    services: Services, account: GenerationAccount, bounds: PartitionBounds
) -> int | None:
    """How far the log still is the one that was read; None where no epoch can tell.

    A log is cut at a change of leaders only, and then epochs end earlier than before (KIP-101).
    When it was read, the log reached past `read_until` in the epoch `read_epoch`.
    """
    if account.read_epoch is None or bounds.leader_epoch == account.read_epoch:
        return None if account.read_epoch is None else account.read_until
    return services.broker.epoch_end(account.partition, account.read_epoch)


def _seen_until(
    services: Services, account: GenerationAccount, bounds: PartitionBounds
) -> int | None:
    """As `_same_until`, of all that was seen to be readable, landed or not."""
    if account.seen_epoch is None or account.last_seen_until <= (account.read_until or 0):
        return None
    if bounds.leader_epoch == account.seen_epoch:
        return account.last_seen_until
    return services.broker.epoch_end(account.partition, account.seen_epoch)


def _said_by_epochs(read_until: int, same_until: int | None) -> AnchorCheck:
    if same_until is None:
        return AnchorCheck.GONE
    return AnchorCheck.INTACT if same_until >= read_until else AnchorCheck.DIFFERS


def _anchor_records(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> Mapping[int, RecordEvidence]:
    """The records that the anchors name, where the log still reaches over them."""
    wanted = {
        account.partition.partition: account.anchor.offset
        for account in _comparable(snapshot, generations)
        if account.anchor
        and (bounds := snapshot.partitions.get(account.partition.partition))
        and bounds.log_start_offset <= account.anchor.offset < bounds.high_watermark
    }
    if not wanted:
        return {}
    try:
        return services.broker.records_at(services.topic, wanted)
    except SourceRefused as error:
        log.warning("A record can't be read; each partition is asked for alone: %s", error)
    found: dict[int, RecordEvidence] = {}
    for partition, offset in wanted.items():
        # One unreadable record must not stop the other partitions; its epochs are witness enough.
        with suppress(SourceRefused):
            found |= services.broker.records_at(services.topic, {partition: offset})
    return found


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
