"""Asks if a log is still the one that a landing began to read: when it has ended, and at its proof.

A leader may change between the two, and its old epoch expire: nobody can tell any more then. So the
first answer is kept in staging, before anything is read back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.log_answer import LogAnswer
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import LogCheck
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import FileMissing, LedgerUnavailable, SourceError, StorageError
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staged_attempts import landing_plan

log = logging.getLogger(__name__)


def checked_as_read(
    services: Services,
    plan: BatchPlan,
    landing: LandingPlan,
    snapshot: BrokerSnapshot,
    logs: Iterable[GenerationAccount],
) -> Mapping[int, LogCheck]:
    """By partition: was all of its range read from one log? Asks the leader epoch of the landing.

    `logs` are those that the plan claims of. A partition that had no epoch is left out.
    """
    ends = {each.offsets.partition.partition: each.offsets.until_offset for each in plan.ranges}
    as_read = [
        replace(each, seen_epoch=epoch, last_seen_until=ends[partition], anchor=None)
        for each in logs
        if (partition := each.partition.partition) in ends
        and (epoch := landing.leader_epochs.get(partition)) is not None
    ]
    return checked_logs(services, snapshot, as_read)


def keep_answer(services: Services, attempt: Attempt, plan: BatchPlan) -> None:
    """Ask at once, and keep the answer beside the files; the proof asks all the same.

    A failure to ask, or to write, is only logged: what Spark has written is worth more.
    """
    staging = StagingPath.of(plan, attempt.attempt_id)
    try:
        landing = landing_plan(services, staging)
        if landing is None:
            return
        snapshot = services.broker.snapshot(plan.topic)
        logs = services.ledger.claimed_logs(plan.batch_id)
        checks = checked_as_read(services, plan, landing, snapshot, logs)
        same = tuple(
            each.offsets
            for each in plan.ranges
            if (check := checks.get(each.offsets.partition.partition))
            and check.holds_below(each.offsets.until_offset)
        )
        answer = LogAnswer(snapshot.cluster_id, snapshot.topic_id, snapshot.taken_at, same)
        services.store.write(staging.log_answer, answer.to_json().encode())
    except (SourceError, StorageError, LedgerUnavailable) as error:
        log.warning("What the broker says of the log could not be kept: %s", error)


def kept_answer(services: Services, staging: StagingPath) -> LogAnswer | None:
    """What the broker said when the application had ended; None when nobody asked."""
    try:
        return LogAnswer.from_json(services.store.read(staging.log_answer).decode())
    except (FileMissing, ValueError):
        return None
