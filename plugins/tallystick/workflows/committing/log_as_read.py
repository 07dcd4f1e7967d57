"""Asks if a log is still the one that a landing began to read: when it has ended, and at its proof.

A leader may change between the two, and its old epoch expire: nobody can tell any more then. So the
first answer is kept in staging, before anything is read back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.log_answer import LogAnswer
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import LogCheck
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import FileMissing, SourceError, StorageError
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JustRead:
    """What lies beside an attempt's files, for who has just put it there."""

    landing: LandingPlan
    answer: LogAnswer | None
    """None: the broker could not be asked."""


def checked_as_read(
    services: Services,
    plan: BatchPlan,
    landing: LandingPlan,
    snapshot: BrokerSnapshot,
) -> Mapping[int, LogCheck]:
    """By partition: was all of its range read from one log? Asks the leader epoch of the landing,
    which is a witness of its own.

    A partition that had no epoch is left out.
    """
    as_read = [
        GenerationAccount(
            generation_id=each.generation_id,
            partition=each.offsets.partition,
            cluster_id=plan.cluster_id,
            topic_id=plan.topic_id,
            ordinal=plan.ordinal,
            state=GenerationState.OPEN,
            first_offset=each.offsets.from_offset,
            frontier=each.offsets.from_offset,
            beyond=(),
            last_seen_until=each.offsets.until_offset,
            anchor=None,
            seen_epoch=epoch,
        )
        for each in plan.ranges
        if (epoch := landing.leader_epochs.get(each.offsets.partition.partition)) is not None
    ]
    return checked_logs(services, snapshot, as_read)


def answer_after_read(
    services: Services, plan: BatchPlan, landing: LandingPlan
) -> LogAnswer | None:
    """What the broker says at once, when the application has ended; the proof asks all the same.

    None after a failure to ask, which is only logged: what Spark has written is worth more.
    """
    try:
        snapshot = services.broker.snapshot(plan.topic)
        checks = checked_as_read(services, plan, landing, snapshot)
    except SourceError as error:
        log.warning("What the broker says of the log could not be heard: %s", error)
        return None
    same = tuple(
        each.offsets
        for each in plan.ranges
        if (check := checks.get(each.offsets.partition.partition))
        and check.holds_below(each.offsets.until_offset)
    )
    return LogAnswer(snapshot.cluster_id, snapshot.topic_id, snapshot.taken_at, same)


def keep_answer(services: Services, staging: StagingPath, answer: LogAnswer) -> None:
    """Write it beside the files; a failure is only logged."""
    try:
        services.store.write(staging.log_answer, answer.to_json().encode())
    except StorageError as error:
        log.warning("What the broker says of the log could not be kept: %s", error)


def kept_answer(services: Services, staging: StagingPath) -> LogAnswer | None:
    """What the broker said when the application had ended; None when nobody asked."""
    try:
        return LogAnswer.from_json(services.store.read(staging.log_answer).decode())
    except (FileMissing, ValueError):
        return None
