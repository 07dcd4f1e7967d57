"""Verify and commit: read back from HDFS what is there, account for every offset, then commit.

1. Nothing is committed that was not read back from closed files.
2. The manifest lies beside the data before the commit, so the renamed directory explains itself.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.accounting import (
    RangeHoles,
    accounted,
    holes_in,
    problems_in,
    unexplained_in,
)
from tallystick.domain.batch import Attempt, BatchPlan
from tallystick.domain.landed import ReadBack
from tallystick.domain.landing import LandingPlan
from tallystick.domain.manifest import AccountedRange, Manifest, TailAnchor
from tallystick.domain.paths import StagingPath
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.states import CommitAnswer, HoleClass
from tallystick.errors import FileMissing, VerificationFailed
from tallystick.workflows.heartbeat import held
from tallystick.workflows.landing import failing
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


def verify_and_commit(services: Services, attempt: Attempt) -> CommitReport | None:
    """What is in the ledger now; None when this attempt had committed before.

    Raises VerificationFailed with every problem: nothing is committed then. AttemptFenced: another
    attempt has the batch. CommitOutcomeUnknown: run again, the attempt is looked up first.
    """
    with at(services, "verify", attempt.batch_id):
        if services.ledger.outcome_of(attempt.attempt_id):
            log.info("Batch %s: this attempt has committed before.", attempt.batch_id)
            return None
        plan = services.ledger.batch(attempt.batch_id).plan
    with at(services, "verify", plan), failing(services, attempt), held(services, attempt):
        manifest = _proven(services, attempt, plan)
        staging = _staging(services, attempt)
        services.store.write(staging.manifest, manifest.to_json().encode())
        services.ledger.record_verified(attempt, manifest)
        answer = services.ledger.commit(attempt)
    report = CommitReport(
        manifest.plan, answer, manifest.record_count, _hole_counts(manifest), len(manifest.files)
    )
    _tell(report)
    return report


def _staging(services: Services, attempt: Attempt) -> StagingPath:
    return StagingPath(services.root, attempt.batch_id, attempt.attempt_id)


def _proven(services: Services, attempt: Attempt, plan: BatchPlan) -> Manifest:
    """The manifest of an attempt whose every planned offset is accounted for."""
    staging = _staging(services, attempt)
    landing = LandingPlan.from_json(services.store.read(staging.plan).decode())
    try:
        found = services.store.read_back(staging.data)
    except FileMissing as error:
        raise VerificationFailed(attempt.batch_id, [error.describe()]) from error
    problems = [*problems_in(plan.ranges, found), *_identity_problems(services, plan)]
    ranges: list[AccountedRange] = []
    anchors = _Anchors(services, plan, landing, staging, found)
    gaps = holes_in(plan.ranges, found)
    evidence = anchors.evidence(gaps)
    for each in gaps:
        explained = _explained(services, each)
        rest = unexplained_in(each, explained)
        if rest:
            problems.append(
                f"{each.planned.offsets}: {rest.count} offsets are not landed, and no cause is"
                f" proven: {rest.described()}"
            )
            continue
        problem, anchor = anchors.of(each, evidence)
        problems.extend(problem)
        if not problem and not problems:
            ranges.append(accounted(each, explained, anchor))
    if problems:
        raise VerificationFailed(attempt.batch_id, problems)
    return Manifest(plan, attempt, landing.isolation, tuple(ranges), found.files)


def _identity_problems(services: Services, plan: BatchPlan) -> Sequence[str]:
    """The topic must still be the planned one; offsets of another log prove nothing."""
    after = services.broker.snapshot(services.topic)
    if (after.cluster_id, after.topic_id) == (plan.cluster_id, plan.topic_id):
        return ()
    return (f"topic {plan.topic} was re-created while the batch was landed",)


def _explained(services: Services, gaps: RangeHoles) -> Mapping[HoleClass, OffsetRuns]:
    if not gaps.holes:
        return {}
    return services.broker.explain_holes(gaps.planned.offsets, gaps.holes, services.isolation)


class _Anchors:
    """The last landed record of each range: hashed by the broker, or by the landed row where
    needed.

    A record whose leader epoch is not newer than the epoch before the read is the record that was
    read: a log is cut at a change of leaders only. Otherwise the landed row itself must agree.
    """

    def __init__(
        self,
        services: Services,
        plan: BatchPlan,
        landing: LandingPlan,
        staging: StagingPath,
        found: ReadBack,
    ) -> None:
        self._services, self._landing = services, landing
        self._staging, self._found, self._topic = staging, found, plan.topic

    def evidence(self, gaps: Sequence[RangeHoles]) -> Mapping[int, TailAnchor]:
        """The broker's record at each range's last landed offset, where it still has one."""
        offsets = {
            each.planned.offsets.partition.partition: each.landed.last_offset
            for each in gaps
            if each.landed.last_offset is not None
        }
        records = self._services.broker.records_at(self._topic, offsets) if offsets else {}
        return {
            partition: TailAnchor(record.offset, record.leader_epoch, record.content_hash)
            for partition, record in records.items()
        }

    def of(
        self, gaps: RangeHoles, evidence: Mapping[int, TailAnchor]
    ) -> tuple[Sequence[str], TailAnchor | None]:
        """Problems, and the range's anchor; no anchor where no record was landed."""
        offset = gaps.landed.last_offset
        if offset is None:
            return (), None
        partition = gaps.planned.offsets.partition.partition
        anchor = evidence.get(partition)
        if anchor and self._was_there_before(partition, anchor):
            return (), anchor
        landed = self._landed_hash(partition, offset)
        if anchor is None:
            return (), TailAnchor(offset, None, landed)
        if landed != anchor.content_hash:
            return (
                f"{gaps.planned.offsets}: the record at offset {offset} is not the one that was"
                " landed; the log changed during the read",
            ), None
        return (), anchor

    def _was_there_before(self, partition: int, anchor: TailAnchor) -> bool:
        before = self._landing.leader_epochs.get(partition)
        return (
            before is not None and anchor.leader_epoch is not None and anchor.leader_epoch <= before
        )

    def _landed_hash(self, partition: int, offset: int) -> bytes:
        name = next(
            file.name
            for file in self._found.files
            for part in file.slices
            if part.partition == partition and part.first_offset <= offset <= part.last_offset
        )
        return self._services.store.landed_record_hash(self._staging.data, name, partition, offset)


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
