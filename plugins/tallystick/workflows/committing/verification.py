"""Verify and commit: read back from HDFS what is there, account for every offset, then commit.

1. Nothing is committed that was not read back from closed files.
2. A repair takes no rows away: a file that holds what the log has no more stays where it is.
3. The manifest lies beside the data before the commit, so the renamed directory explains itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.batches.states import CommitAnswer, HoleClass
from tallystick.ports.progress import Progress
from tallystick.workflows.committing.failing import failing
from tallystick.workflows.committing.heartbeat import lease_renewed
from tallystick.workflows.committing.log_as_read import JustRead
from tallystick.workflows.committing.proving import proven
from tallystick.workflows.committing.taking_over import kept_beside, require_no_row_taken
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitReport:
    """What was committed, and how the ledger answered."""

    plan: BatchPlan
    answer: CommitAnswer
    record_count: int
    hole_counts: Mapping[HoleClass, int]
    file_count: int
    length_bytes: int


def verify_and_commit(
    services: Services, attempt: Attempt, *, just_read: JustRead | None = None
) -> CommitReport | None:
    """What is in the ledger now; None when this attempt had committed before.

    What was `just_read` is not read in staging again.
    Raises VerificationFailed with every problem: nothing is committed then. AttemptFenced: another
    attempt has the batch. CommitOutcomeUnknown: run again, the attempt is looked up first.
    """
    with at(services, "verify", attempt.batch_id):
        status = services.ledger.take_up(attempt, services.lease)
    if status is None:
        log.info("Batch %s: this attempt has committed before.", attempt.batch_id)
        return None
    plan = status.plan
    with at(services, "verify", plan), failing(services, attempt), lease_renewed(services, attempt):
        manifest = proven(services, attempt, plan, just_read)
        services.progress(Progress("commit"))
        require_no_row_taken(services, manifest)
        staging = StagingPath.of(plan, attempt.attempt_id)
        services.store.write(staging.manifest, manifest.to_json().encode())
        services.ledger.record_verified(attempt, manifest)
        answer = services.ledger.commit(attempt, kept_beside(services, attempt, manifest))
    report = CommitReport(
        manifest.plan,
        answer,
        manifest.record_count,
        _hole_counts(manifest),
        len(manifest.files),
        sum(each.length_bytes for each in manifest.files),
    )
    _tell(report)
    return report


def _hole_counts(manifest: Manifest) -> Mapping[HoleClass, int]:
    counts = dict.fromkeys(HoleClass, 0)
    for each in manifest.ranges:
        for kind, runs in each.holes.items():
            counts[kind] += runs.count
    return counts


def _tell(report: CommitReport) -> None:
    holes = ", ".join(
        f"{count} {kind.value}" for kind, count in report.hole_counts.items() if count
    )
    log.info(
        "Batch %s: %d offsets = %d rows + %d proven holes%s, in %d files. Ledger: %s.",
        report.plan.batch_id,
        report.plan.span,
        report.record_count,
        sum(report.hole_counts.values()),
        f" ({holes})" if holes else "",
        report.file_count,
        report.answer.value,
    )
