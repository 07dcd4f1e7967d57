"""`batches` and `files`: what is on record. Asks the ledger only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import typer

from tallystick.cli.answers import Answer, Block, Table, deliver, hole_count
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.batches.landed import LateRows
from tallystick.domain.batches.manifest import AccountedRange
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import FeedName
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.window import Window
from tallystick.ledger.batches import AttemptRecord, BatchRecord, FileRecord
from tallystick.report.documents import Document, Part, RangePart, holes_part, range_part
from tallystick.report.wording import counted, grouped, window_text
from tallystick.workflows.stored.current_files import path_of


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


class BatchesDocument(Document):
    """`batches`."""

    format: str = "tallystick-batches-1"
    feed: str
    batches: Sequence[BatchPart]


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


class FilesDocument(Document):
    """`files`: one entry for each file and partition."""

    format: str = "tallystick-files-1"
    feed: str
    file_count: int
    """Each file once, however many partitions it holds."""
    total_bytes: int
    """Of all files, each once."""
    files: Sequence[FilePart]


def batches(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's batches with state, attempts, ranges and holes. Asks the ledger only."""
    deliver(lambda: _batches(stage_of(context), feed), as_json=as_json)


def files(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's committed files with their offsets. Asks the ledger only."""
    deliver(lambda: _files(stage_of(context), feed), as_json=as_json)


def _batches(stage: Stage, name: str) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.batches(FeedName(name))
    document = BatchesDocument(feed=name, batches=[_batch_part(each) for each in found])
    return Answer(document, batches_view(document))


def _files(stage: Stage, name: str) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.files(FeedName(name))
    parts = [part for each in found for part in _file_parts(each)]
    document = FilesDocument(
        feed=name,
        file_count=len(found),
        total_bytes=sum(each.file.length_bytes for each in found),
        files=parts,
    )
    return Answer(document, files_view(document))


def _batch_part(record: BatchRecord) -> BatchPart:
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
    )


def _accounted_part(accounted: AccountedRange) -> AccountedRangePart:
    holes = holes_part({kind: runs.count for kind, runs in accounted.holes.items()})
    return _range_part(accounted.planned.offsets, accounted.record_count, holes)


def _range_part(
    offsets: OffsetRange, rows: int | None = None, holes: Mapping[str, int] | None = None
) -> AccountedRangePart:
    return AccountedRangePart(**vars(range_part(offsets)), rows=rows, holes=holes)


def _file_parts(record: FileRecord) -> list[FilePart]:
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
            batch_id=record.batch_id,
            checksum=record.file.checksum,
        )
        for each in record.file.slices
    ]


def batches_view(document: BatchesDocument) -> list[Block]:
    """All batches, one row each."""
    if not document.batches:
        return [f"Feed {document.feed} has no batch yet."]
    headers = (
        "batch", "state", "gen#", "window (UTC)", "parts#", "offsets#", "rows#", "holes#", "tries#"
    )  # fmt: skip
    rows = [
        [
            each.batch_id,
            each.state,
            str(each.generation),
            window_text(each.window),
            grouped(len(each.ranges)),
            grouped(each.offsets),
            grouped(each.rows),
            hole_count(each.holes),
            str(len(each.attempts)),
        ]
        for each in document.batches
    ]
    held = [
        f"Batch {each.batch_id} is held by {each.held_by}."
        for each in document.batches
        if each.held_by
    ]
    return [Table(headers, rows), *held]


def files_view(document: FilesDocument) -> list[Block]:
    """All committed files, one row for each partition in each."""
    if not document.files:
        return [f"Feed {document.feed} has no committed file yet."]
    headers = ("partition#", "from#", "until#", "rows#", "bytes#", "published", "path")
    rows: list[list[str]] = []
    told: set[str] = set()
    for each in document.files:
        # The length is the whole file's: it stands once, so that who adds up gets the right sum.
        length = "" if each.path in told else grouped(each.bytes)
        told.add(each.path)
        rows.append(
            [
                str(each.partition),
                grouped(each.from_offset),
                grouped(each.until_offset),
                grouped(each.rows),
                length,
                "yes" if each.published else "no",
                each.path,
            ]
        )
    many = counted("file", document.file_count)
    return [Table(headers, rows), f"{many}, {grouped(document.total_bytes)} bytes."]
