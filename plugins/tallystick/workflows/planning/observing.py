"""What a run sees of the broker: bounds, what became of the logs, where the start policy begins.

Then what the time index answers to a decision.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.deciding.decide import Decision, FirstBatches
from tallystick.domain.deciding.plan import Plan
from tallystick.domain.logs.generation import GenerationAccount, GenerationState, unlisted_in
from tallystick.domain.logs.sameness import LogCheck, Sameness
from tallystick.domain.logs.snapshot import (
    CLOCKS_MAY_DIFFER,
    BatchHead,
    BrokerSnapshot,
    WindowBorder,
)
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.window_cuts import FirstOffsets
from tallystick.errors import (
    AnotherCluster,
    BrokerUnavailable,
    PartitionsLeaderless,
    SourceError,
    SourceRefused,
    TopicGone,
    TopicUnknown,
)
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# A short regress right after a leader change is normal; a log that was cut stays cut.
_LOOKS_AT_A_REGRESS: Final = 4
_PAUSE_SECONDS: Final = 2.0
# A producer's clock may be ahead of ours by this much before its records count as from the future.
_FAR_AHEAD: Final = timedelta(hours=1)


def observe(services: Services, accounts: Accounts) -> Observation:
    """One look at the topic, against what the ledger knows of it.

    The ledger was read before: a frontier can then only be behind the snapshot, never ahead of it.
    Raises AnotherCluster, and BrokerUnavailable for a broker that answers with a topic of the past.
    """
    snapshot, logs = _looked(services, accounts)
    while any(each.sameness is not Sameness.SAME for each in logs.values()):
        # Records are asked for by the topic's name: a topic that was re-created a moment ago
        # answers with records of another log.
        before, (snapshot, logs) = snapshot, _looked(services, accounts)
        if snapshot.is_of(before):
            break
    generations = accounts.generations
    return Observation(
        snapshot=_with_border(services, snapshot, generations),
        logs=logs,
        start_offsets={} if generations else _start_offsets(services, snapshot),
        first_batches=_first_batches(services, snapshot, generations),
    )


def _with_border(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> BrokerSnapshot:
    """The snapshot, for a feed that lands by windows with where the newest one has ended."""
    windows = services.feed.windows
    if windows is None:
        return snapshot
    border = WindowBorder(windows.at_or_before(snapshot.taken_at))
    try:
        border = _border_told(services, snapshot, border.instant, generations)
    except SourceError as error:
        log.warning("Where the window's end lies is not known: %s", error)
    return replace(snapshot, border=border)


def _border_told(
    services: Services,
    snapshot: BrokerSnapshot,
    instant: datetime,
    generations: Mapping[int, GenerationAccount],
) -> WindowBorder:
    """The border that the time index tells. It is asked by the topic's name, of whoever leads:
    where that has changed since the snapshot, nothing is known. Raises SourceError.
    """
    broker, topic, known = services.broker, services.topic, snapshot.partitions
    first = broker.offsets_at(topic, instant, tuple(known))
    more = [
        partition
        for partition, offset in first.items()
        if offset is not None and offset + 1 < known[partition].high_watermark
    ]
    ahead = _still_at(services, first, more, snapshot.taken_at + CLOCKS_MAY_DIFFER)
    from_future = _still_at(services, first, tuple(ahead), snapshot.taken_at + _FAR_AHEAD)
    after = broker.snapshot(topic)
    if not after.is_of(snapshot):
        return WindowBorder(instant)
    ends: dict[int, int] = {}
    for partition, bounds in known.items():
        now, offset = after.partitions.get(partition), first[partition]
        if now is None or now.leader_epoch != bounds.leader_epoch or partition in ahead:
            continue
        account = generations.get(partition)
        # A leader whose high watermark lags does not know how far the log was seen to reach.
        seen = account.last_seen_until if account and snapshot.is_of(account) else 0
        ends[partition] = max(bounds.high_watermark, seen) if offset is None else offset
    return WindowBorder(instant, first, ends, from_future)


def _still_at(
    services: Services, first: FirstOffsets, partitions: Sequence[int], instant: datetime
) -> dict[int, int]:
    """By partition, its first offset, where that is the first one as late as the instant, too."""
    if not partitions:
        return {}
    later = services.broker.offsets_at(services.topic, instant, partitions)
    return {each: at for each, at in later.items() if at is not None and at == first[each]}


def _looked(
    services: Services, accounts: Accounts
) -> tuple[BrokerSnapshot, Mapping[int, LogCheck]]:
    """A snapshot and what became of its logs; of several looks where one seems cut or is left out.

    Where the epochs can tell, the first look is enough, for a cut as for a high watermark that lags
    behind. Without them a log that stays shorter counts as cut, and a short regress does not.
    """
    looks = 0
    while True:
        snapshot = snapshot_of(services, accounts.generations)
        _require_present_log(services, accounts, snapshot)
        comparable = _comparable(snapshot, accounts.generations)
        logs = checked_logs(services, snapshot, comparable)
        looks += 1
        is_doubted = any(_is_shorter_for_no_reason(each, snapshot, logs) for each in comparable)
        if looks == _LOOKS_AT_A_REGRESS or not (snapshot.unlisted or is_doubted):
            return snapshot, logs
        services.clock.pause(_PAUSE_SECONDS)


def _is_shorter_for_no_reason(
    account: GenerationAccount, snapshot: BrokerSnapshot, logs: Mapping[int, LogCheck]
) -> bool:
    partition = account.partition.partition
    bounds, check = snapshot.partitions.get(partition), logs.get(partition)
    is_shorter = bounds is not None and bounds.high_watermark < account.readable_before
    return is_shorter and check is not None and check.sameness is Sameness.UNKNOWN


def _first_batches(
    services: Services, snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> Mapping[int, BatchHead]:
    """With what the logs begin whose start has passed the frontier: it tells who moved it."""
    starts = {
        account.partition.partition: bounds.log_start_offset
        for account in _comparable(snapshot, generations)
        if (bounds := snapshot.partitions.get(account.partition.partition))
        and account.state is GenerationState.OPEN
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


def snapshot_of(services: Services, generations: Mapping[int, GenerationAccount]) -> BrokerSnapshot:
    """A snapshot that names the partitions which the broker should have listed, and did not.

    Raises TopicGone for a topic that has generations, TopicUnknown for another, AnotherCluster.
    """
    try:
        snapshot = services.broker.snapshot(services.topic)
    except TopicUnknown as error:
        clusters = {each.cluster_id for each in generations.values()}
        answering = error.cluster_id
        if clusters and answering and answering not in clusters:
            raise AnotherCluster(services.feed_name, min(clusters), answering) from error
        raise TopicGone(*error.args) if generations else error from error
    return replace(snapshot, unlisted=unlisted_in(snapshot, generations))


def _comparable(
    snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> list[GenerationAccount]:
    """The generations whose log the snapshot shows; stopped ones as they are since the cut."""
    return [
        account.since_cut
        for account in generations.values()
        if account.state is not GenerationState.CLOSED and snapshot.is_of(account)
    ]


def _start_offsets(services: Services, snapshot: BrokerSnapshot) -> dict[int, int]:
    """Where the feed's responsibility begins, by partition.

    Raises PartitionsLeaderless where one can't be asked now and would begin at its log start later.
    """
    source = services.feed.source
    earliest = {p: bounds.log_start_offset for p, bounds in snapshot.partitions.items()}
    if source.start == "earliest":
        return earliest
    if snapshot.leaderless:
        raise PartitionsLeaderless(
            services.servers,
            f"no leader can say where partitions {sorted(snapshot.leaderless)} begin by"
            f" source.start: {source.start}, and a feed begins with all of its partitions",
        )
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


def answered(services: Services, decision: Decision) -> Plan:
    """What the decision comes to when the broker answers its questions."""
    try:
        question = next(decision)
        while True:
            first: FirstOffsets
            if isinstance(question, FirstBatches):
                first = _first_batches_of(services, question.offsets)
            else:
                first = services.broker.offsets_at(
                    services.topic, question.instant, question.partitions
                )
            question = decision.send(first)
    except StopIteration as decided:
        plan: Plan = decided.value
        return plan


def _first_batches_of(services: Services, offsets: Mapping[int, int]) -> FirstOffsets:
    """Where the first batch behind each offset begins; a log that can't be read says nothing.

    It is asked to spare runs, and may hold up none: what is wrong with it is told by its landing.
    """
    try:
        heads = services.broker.batch_heads(services.topic, offsets)
    except SourceRefused as error:
        if len(offsets) > 1:
            alone = [_first_batches_of(services, dict([each])) for each in offsets.items()]
            return {partition: first for each in alone for partition, first in each.items()}
        log.warning("The first batch of partition %d can't be read: %s", *offsets, error)
        return {}
    return {partition: head.base_offset for partition, head in heads.items()}
