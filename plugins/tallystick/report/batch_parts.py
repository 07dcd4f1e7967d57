"""One batch and its files, as parts of JSON documents: for the command line and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tallystick.domain.batches.landed import LateRows
from tallystick.domain.batches.manifest import AccountedRange
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.window import Window
from tallystick.ledger.batches import (
    AttemptRecord,
    BatchRecord,
    CheckRecord,
    FileRecord,
    Replaced,
)
from tallystick.report.documents import Part, RangePart, holes_part, range_part


class AccountedRangePart(RangePart):
    """Offsets of one partition; rows and holes are null before the commit."""

    rows: int | None
    holes: Mapping[str, int] | None
    """By class: control, aborted, compacted."""


class BatchPart(Part):
    """One batch as the ledger has it."""

    batch_id: str
    state: str
    generation: int
    window: Window | None
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    held_by: str | None
    directory: str
    offsets: int
    rows: int | None
    holes: Mapping[str, int] | None
    late: LateRows | None
    """Rows that are older than the window."""
    ranges: Sequence[AccountedRangePart]
    attempts: Sequence[AttemptRecord]
    checks: Sequence[CheckRecord]
    """The newest deep look of each level."""
    replaces: Sequence[BatchId]
    """Batches of which it takes files' place, for it is a repair."""
    replaced: Replaced | None

    @property
    def is_replaced(self) -> bool:
        """True where readers read nothing of the batch, for repairs hold all of it."""
        return self.replaced is not None and self.replaced.is_whole


class FilePart(Part):
    """One committed file holds this of one partition."""

    path: str
    partition: int
    from_offset: int
    until_offset: int
    rows: int
    bytes: int
    """Of the whole file, whatever it holds of other partitions."""
    published: bool
    generation: int
    batch_id: str
    checksum: str
    replaced_by: BatchId | None
    """The repair that holds its offsets since; readers read it no more."""


def batch_part(record: BatchRecord) -> BatchPart:
    """One batch; rows and holes are known from its commit on."""
    status = record.status
    plan = status.plan
    ranges = [_accounted_part(each) for each in record.ranges]
    if not ranges:
        ranges = [_range_part(each.offsets) for each in plan.ranges]
    totals = dict.fromkeys(HoleClass, 0)
    for each in record.ranges:
        for kind, runs in each.holes.items():
            totals[kind] += runs.count
    is_accounted = bool(record.ranges)
    is_held = not status.state.is_over and status.is_held
    return BatchPart(
        batch_id=plan.batch_id,
        state=status.state.value,
        generation=plan.ordinal,
        window=plan.window,
        planned_at=record.planned_at,
        committed_at=record.committed_at,
        published_at=record.published_at,
        held_by=status.holder if is_held else None,
        directory=str(BatchPath.of(plan)),
        offsets=plan.span,
        rows=sum(each.record_count for each in record.ranges) if is_accounted else None,
        holes=holes_part(totals) if is_accounted else None,
        late=record.late,
        ranges=ranges,
        attempts=record.attempts,
        checks=record.checks,
        replaces=sorted({each.batch_id for each in plan.replaces}),
        replaced=record.replaced,
    )


def _accounted_part(accounted: AccountedRange) -> AccountedRangePart:
    holes = holes_part({kind: runs.count for kind, runs in accounted.holes.items()})
    return _range_part(accounted.planned.offsets, accounted.record_count, holes)


def _range_part(
    offsets: OffsetRange, rows: int | None = None, holes: Mapping[str, int] | None = None
) -> AccountedRangePart:
    return AccountedRangePart(**vars(range_part(offsets)), rows=rows, holes=holes)


def file_parts(record: FileRecord) -> list[FilePart]:
    """One entry for each partition that the file holds rows of."""
    plan = record.plan
    return [
        FilePart(
            path=record.path,
            partition=each.partition,
            from_offset=each.first_offset,
            until_offset=each.last_offset + 1,
            rows=each.record_count,
            bytes=record.file.length_bytes,
            published=record.is_published,
            generation=plan.ordinal,
            batch_id=record.batch_id,
            checksum=record.file.checksum,
            replaced_by=record.replaced_by,
        )
        for each in record.file.slices
    ]


def read_commands(feed: str, batch: BatchPart) -> list[str]:
    """What shows a published batch's files, and reads them."""
    return [
        f"hdfs dfs -ls {batch.directory}",
        f'spark.read.parquet("{batch.directory}")',
        f"tallystick files {feed} --find {batch.batch_id}",
    ]
