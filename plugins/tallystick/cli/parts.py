"""Values of the domain and the workflows, as parts of documents. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.cli.documents import (
    AcceptedPart,
    AccountedRangePart,
    AttemptPart,
    BatchPart,
    FilePart,
    FindingPart,
    HeldBatchPart,
    LedgerRebuildDocument,
    LeftOutPart,
    OpenedLogPart,
    OpenFindingPart,
    PartitionPart,
    PlannedBatchPart,
    ProblemPart,
    RangePart,
    RebuiltBatchPart,
    WindowPart,
)
from tallystick.domain.batches.batch import BatchPlan, BatchStatus, PlannedRange
from tallystick.domain.batches.manifest import AccountedRange
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import AttemptRecord, BatchRecord, FileRecord
from tallystick.settings.problems import FeedProblem
from tallystick.workflows.rebuilding.rebuild import EnteredBatch, RebuildReport
from tallystick.workflows.reconciling.reconciliation import PartitionAccount
from tallystick.workflows.stored.current_files import path_of


def window_part(window: Window | None) -> WindowPart | None:
    """The window; None for a run without one."""
    if window is None:
        return None
    return WindowPart(from_instant=window.from_instant, until_instant=window.until_instant)


def problem_part(problem: FeedProblem) -> ProblemPart:
    """One problem of a feed file."""
    return ProblemPart(
        file=problem.file,
        line=problem.line,
        key=problem.key,
        what=problem.words,
        value=problem.value,
        accepted=problem.accepted,
        nearest=problem.nearest,
    )


def finding_part(finding: Finding, number: int | None = None) -> FindingPart:
    """One finding, with its code's name, and its number where it is on record."""
    return FindingPart(
        number=number,
        code=finding.code.value,
        name=finding.code.name.lower().replace("_", " "),
        verdict=finding.verdict.value,
        level=finding.level.value,
        feed=finding.feed,
        topic=finding.topic,
        generation=finding.generation,
        partition=finding.partition,
        from_offset=finding.from_offset,
        until_offset=finding.until_offset,
        cause=finding.cause,
        next_step=finding.next_step,
        evidence=dict(finding.evidence),
        subject=finding.subject,
    )


def open_finding_part(stored: StoredFinding) -> OpenFindingPart:
    """A finding that stands open on record, with when it was first seen."""
    plain = finding_part(stored.finding, stored.finding_id)
    return OpenFindingPart(**plain.model_dump(), first_seen_at=stored.first_seen_at)


def accepted_part(stored: StoredFinding) -> AcceptedPart:
    """A waived finding, with the end of its waiver."""
    finding = stored.finding
    return AcceptedPart(
        finding=stored.finding_id,
        code=finding.code.value,
        verdict=finding.verdict.value,
        topic=finding.topic,
        generation=finding.generation,
        partition=finding.partition,
        from_offset=finding.from_offset,
        until_offset=finding.until_offset,
        expires_at=stored.waiver.expires_at if stored.waiver else None,
    )


def planned_batch_part(plan: BatchPlan, *, is_named: bool) -> PlannedBatchPart:
    """A batch of a plan; a dry run's batches have no name that lasts."""
    return PlannedBatchPart(
        batch=plan.batch_id if is_named else None,
        generation=plan.ordinal,
        window=window_part(plan.window),
        offsets=plan.span,
        ranges=[
            RangePart(
                partition=each.offsets.partition.partition,
                from_offset=each.offsets.from_offset,
                until_offset=each.offsets.until_offset,
            )
            for each in plan.ranges
        ],
    )


def held_batch_part(status: BatchStatus) -> HeldBatchPart:
    """A batch that is left to the run that holds it."""
    return HeldBatchPart(
        batch=status.plan.batch_id,
        offsets=status.plan.span,
        held_by=status.holder,
        seconds_left=round(max(0.0, status.lease_seconds_left), 1),
    )


def holes_part(holes: Mapping[HoleClass, int]) -> dict[str, int]:
    """Holes by class, every class named."""
    return {kind.value: holes.get(kind, 0) for kind in HoleClass}


def batch_part(record: BatchRecord) -> BatchPart:
    """One batch; rows and holes are known from its commit on."""
    status = record.status
    plan = status.plan
    ranges = [_accounted_part(each) for each in record.ranges]
    if not ranges:
        ranges = [_unaccounted_part(each) for each in plan.ranges]
    totals = dict.fromkeys(HoleClass, 0)
    for each in record.ranges:
        for kind, runs in each.holes.items():
            totals[kind] += runs.count
    is_accounted = bool(record.ranges)
    is_held = status.state.is_unfinished and status.lease_seconds_left > 0
    return BatchPart(
        batch=plan.batch_id,
        state=status.state.value,
        generation=plan.ordinal,
        window=window_part(plan.window),
        planned_at=record.planned_at,
        committed_at=record.committed_at,
        published_at=record.published_at,
        held_by=status.holder if is_held else None,
        directory=str(BatchPath.of(plan)),
        offsets=plan.span,
        rows=sum(each.record_count for each in record.ranges) if is_accounted else None,
        holes=holes_part(totals) if is_accounted else None,
        ranges=ranges,
        attempts=[_attempt_part(each) for each in record.attempts],
    )


def _accounted_part(accounted: AccountedRange) -> AccountedRangePart:
    offsets = accounted.planned.offsets
    return AccountedRangePart(
        partition=offsets.partition.partition,
        from_offset=offsets.from_offset,
        until_offset=offsets.until_offset,
        rows=accounted.record_count,
        holes=holes_part({kind: runs.count for kind, runs in accounted.holes.items()}),
    )


def _unaccounted_part(planned: PlannedRange) -> AccountedRangePart:
    return AccountedRangePart(
        partition=planned.offsets.partition.partition,
        from_offset=planned.offsets.from_offset,
        until_offset=planned.offsets.until_offset,
        rows=None,
        holes=None,
    )


def _attempt_part(record: AttemptRecord) -> AttemptPart:
    return AttemptPart(
        attempt=record.attempt.attempt_id,
        token=record.attempt.token,
        owner=record.attempt.owner,
        application=record.application_id,
        started_at=record.started_at,
        ended_at=record.ended_at,
        outcome=record.outcome,
    )


def file_parts(record: FileRecord) -> list[FilePart]:
    """One entry for each partition that the file holds rows of."""
    plan = record.plan
    return [
        FilePart(
            path=path_of(record),
            partition=each.partition,
            from_offset=each.first_offset,
            until_offset=each.last_offset + 1,
            rows=each.record_count,
            bytes=record.file.length_bytes,
            published=record.is_published,
            generation=plan.ordinal,
            batch=record.batch_id,
            checksum=record.file.checksum,
        )
        for each in record.file.slices
    ]


def partition_part(account: PartitionAccount) -> PartitionPart:
    """One partition's account."""
    generation = account.account
    return PartitionPart(
        partition=generation.partition.partition,
        generation=generation.ordinal,
        state=generation.state.value,
        verdict=account.verdict.value,
        first_offset=generation.first_offset,
        frontier=generation.frontier,
        log_start_offset=account.log_start_offset,
        readable_until=account.readable_until,
        lag=account.lag,
        rows=account.record_count,
        holes=holes_part(account.holes),
        lost=account.lost_count,
    )


def rebuild_document(report: RebuildReport) -> LedgerRebuildDocument:
    """What a rebuild did, or would do."""
    return LedgerRebuildDocument(
        feed=report.feed,
        topic=report.topic,
        is_dry_run=report.is_dry_run,
        entered=[_rebuilt_part(each) for each in report.entered],
        opened=[
            OpenedLogPart(
                partition=each.partition.partition,
                generation=each.ordinal,
                topic_id=each.topic_id,
                first_offset=each.first_offset,
            )
            for each in report.opened
        ],
        abandoned=[each.plan.batch_id for each in report.abandoned],
        left_out=[
            LeftOutPart(directory=each.directory, batch=each.batch_id, reasons=each.reasons)
            for each in report.left_out
        ],
        findings=[finding_part(each) for each in report.findings],
        staged=list(report.staged),
        not_known=list(report.not_known),
    )


def _rebuilt_part(entered: EnteredBatch) -> RebuiltBatchPart:
    batch = entered.batch
    return RebuiltBatchPart(
        batch=batch.plan.batch_id,
        generation=batch.plan.ordinal,
        directory=str(BatchPath.of(batch.plan)),
        offsets=batch.plan.span,
        rows=batch.record_count,
        holes=holes_part(batch.holes),
        files=batch.file_count,
        notes=entered.notes,
    )
