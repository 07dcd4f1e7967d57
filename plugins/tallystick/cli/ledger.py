"""`ledger migrate`, `status`, `rebuild` and `export`: the ledger as a whole."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from tallystick.cli.answers import (
    CLEAN,
    FINDINGS,
    Answer,
    Block,
    Table,
    closed_pipes_ignored,
    deliver,
    whole_file,
)
from tallystick.cli.findings import finding_lines
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.progress import watched
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import FeedName
from tallystick.domain.rebuilding.plan import LeftOut
from tallystick.domain.report.finding_part import FindingPart, finding_part
from tallystick.report.documents import Document, Part, holes_part
from tallystick.report.wording import counted, grouped
from tallystick.workflows.rebuilding.rebuild import rebuild as rebuild_ledger
from tallystick.workflows.rebuilding.rebuild_report import EnteredBatch, RebuildReport

app = typer.Typer(no_args_is_help=True, help="The ledger: its schema, a rebuild, an export.")


class LedgerStatusDocument(Document):
    """`ledger status`."""

    format: str = "tallystick-ledger-status-1"
    ledger: str
    schema_found: int
    schema_needed: int
    is_current: bool


class GrantedPart(Part):
    """A role has these rights in the ledger."""

    role: str
    purpose: Literal["run", "read"]
    given: Sequence[str]
    """What it lacked, such as `INSERT on table batch`."""


class LedgerMigrateDocument(Document):
    """`ledger migrate`."""

    format: str = "tallystick-ledger-migrate-1"
    ledger: str
    applied: Sequence[str]
    schema_now: int
    granted: Sequence[GrantedPart]


class RebuiltBatchPart(Part):
    """A published batch that the ledger did not know."""

    batch_id: str
    generation: int
    directory: str
    offsets: int
    rows: int
    holes: Mapping[str, int]
    files: int
    notes: Sequence[str]
    """What differs between the directory and its manifest, and leaves its offsets proven."""


class OpenedLogPart(Part):
    """A log that the ledger did not know."""

    partition: int
    generation: int
    topic_id: str
    first_offset: int


class LedgerRebuildDocument(Document):
    """`ledger rebuild`."""

    format: str = "tallystick-ledger-rebuild-1"
    feed: str
    topic: str
    is_dry_run: bool
    entered: Sequence[RebuiltBatchPart]
    opened: Sequence[OpenedLogPart]
    abandoned: Sequence[str]
    """Unfinished batches that were in the way."""
    left_out: Sequence[LeftOut]
    findings: Sequence[FindingPart]
    staged: Sequence[str]
    """Proven attempts that stay in staging: others hold their offsets."""
    not_known: Sequence[str]
    """What no manifest holds, in sentences."""


class LedgerExportDocument(Document):
    """`ledger export --out`."""

    format: str = "tallystick-ledger-export-1"
    ledger: str
    feed: str | None
    out: str
    rows: Mapping[str, int]
    """By table."""


@app.command("migrate")
def migrate(
    context: typer.Context,
    grant_to: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Give a role all that running needs; repeat it."),
    ] = None,
    grant_read_to: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Let a role read everything; repeat it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the ledger's schema to the number that this code needs; can be run again."""
    deliver(
        lambda: _migrated(stage_of(context), grant_to or (), grant_read_to or ()), as_json=as_json
    )


@app.command("status")
def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Say which schema the ledger has and which one this code needs. Exit 1 if they differ."""
    deliver(lambda: _status(stage_of(context)), as_json=as_json)


@app.command("rebuild")
def rebuild(
    context: typer.Context,
    feed: FeedArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be entered; change nothing.")
    ] = False,
    root: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR", help="A directory where the feed has landed before; repeat it."
        ),
    ] = None,
    damaged: Annotated[
        bool,
        typer.Option(
            "--damaged", help="Also enter batches whose files no longer prove their manifest."
        ),
    ] = False,
    without_manifest: Annotated[
        bool,
        typer.Option(
            "--without-manifest",
            help="Also enter batches that have lost their manifest, from the rows of their files.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Enter published batches that the ledger lacks, from their manifests. Exit 1 if some can't."""
    deliver(
        lambda: _rebuilt(
            stage_of(context),
            feed,
            root or (),
            dry_run=dry_run,
            damaged=damaged,
            without_manifest=without_manifest,
        ),
        as_json=as_json,
    )


@app.command("export")
def export(
    context: typer.Context,
    feed: Annotated[str | None, typer.Argument(help="One feed alone; without it, all.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="F", help="Write to this file, whole or not at all.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write every row of the ledger as one line of JSON (docs/ledger-export.md)."""
    # Without a file the lines themselves are the answer, and already JSON.
    deliver(lambda: _exported(stage_of(context), feed, out), as_json=as_json and out is not None)


def _migrated(stage: Stage, to_run: Sequence[str], to_read: Sequence[str]) -> Answer:
    from tallystick.ledger import migrations
    from tallystick.ledger.dsn import ledger_address
    from tallystick.ledger.migrations import Purpose, grant

    dsn = stage.ledger_dsn()
    applied = migrations.migrate(dsn)
    found, _ = migrations.status(dsn)
    wanted = [(each, Purpose.RUN) for each in to_run] + [(each, Purpose.READ) for each in to_read]
    granted = [
        GrantedPart(role=role, purpose=purpose.value, given=grant(dsn, role, purpose))
        for role, purpose in wanted
    ]
    document = LedgerMigrateDocument(
        ledger=str(ledger_address(dsn)), applied=applied, schema_now=found, granted=granted
    )
    steps = [f"applied {each}" for each in applied]
    rights = [
        f"role {each.role} may {each.purpose}: {counted('grant', len(each.given))} made just now."
        for each in granted
    ]
    return Answer(document, [*steps, f"{document.ledger}: schema {found}, up to date.", *rights])


def _status(stage: Stage) -> Answer:
    from tallystick.ledger import migrations
    from tallystick.ledger.dsn import ledger_address

    dsn = stage.ledger_dsn()
    found, needed = migrations.status(dsn)
    document = LedgerStatusDocument(
        ledger=str(ledger_address(dsn)),
        schema_found=found,
        schema_needed=needed,
        is_current=found == needed,
    )
    words = f"{document.ledger}: schema {found}, this code needs {needed}"
    if document.is_current:
        return Answer(document, [f"{words}: up to date."], CLEAN)
    step = "run tallystick ledger migrate" if found < needed else "update Tallystick"
    return Answer(document, [f"{words}.", f"next: {step}"], FINDINGS)


def _rebuilt(
    stage: Stage,
    name: str,
    roots: Sequence[str],
    *,
    dry_run: bool,
    damaged: bool,
    without_manifest: bool,
) -> Answer:
    feed = stage.feed(name)
    with watched(stage, feed, f"rebuilding the ledger of {name}") as services:
        report = rebuild_ledger(
            services,
            roots,
            dry_run=dry_run,
            damaged=damaged,
            without_manifest=without_manifest,
        )
    document = _rebuild_document(report)
    return Answer(document, _rebuild_view(document), CLEAN if report.is_whole else FINDINGS)


def _exported(stage: Stage, name: str | None, out: Path | None) -> Answer:
    from tallystick.ledger.dsn import ledger_address
    from tallystick.ledger.exporting import exported

    if name:
        stage.feed(name)  # a mistyped name is told, not answered with an empty ledger
    dsn = stage.ledger_dsn()
    counts: Counter[str] = Counter()
    with _lines_to(out) as target:
        for row in exported(dsn, FeedName(name) if name else None):
            counts[row.table] += 1
            target.write(f"{row.line}\n")
    document = LedgerExportDocument(
        ledger=str(ledger_address(dsn)),
        feed=name,
        out=str(out) if out else "",
        rows={table: count for table, count in counts.items() if table not in ("export", "end")},
    )
    rows = grouped(sum(document.rows.values()))
    return Answer(document, [f"{out}: {rows} rows of {document.ledger}."] if out else [])


@contextmanager
def _lines_to(out: Path | None) -> Iterator[TextIO]:
    """Standard output, or the file."""
    if out is None:
        with closed_pipes_ignored():
            yield sys.stdout
            sys.stdout.flush()
        return
    with whole_file(out) as file:
        yield file


def _rebuild_document(report: RebuildReport) -> LedgerRebuildDocument:
    """Makes the document of a rebuild."""
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
        left_out=report.left_out,
        findings=[finding_part(each) for each in report.findings],
        staged=report.staged,
        not_known=report.not_known,
    )


def _rebuilt_part(entered: EnteredBatch) -> RebuiltBatchPart:
    batch = entered.batch
    return RebuiltBatchPart(
        batch_id=batch.plan.batch_id,
        generation=batch.plan.ordinal,
        directory=str(BatchPath.of(batch.plan)),
        offsets=batch.plan.span,
        rows=batch.record_count,
        holes=holes_part(batch.holes),
        files=batch.file_count,
        notes=entered.notes,
    )


def _rebuild_view(document: LedgerRebuildDocument) -> list[Block]:
    """Shows what was entered, what could not be, and what no manifest can tell."""
    count, rows = len(document.entered), sum(each.rows for each in document.entered)
    verb = "would be entered" if document.is_dry_run else "entered"
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}: {counted('published batch', count)}"
        f" that the ledger did not know {verb}, {grouped(rows)} rows."
    ]
    if count:
        headers = ("batch", "generation#", "offsets#", "rows#", "files#", "where")
        cells = [
            [each.batch_id, str(each.generation), grouped(each.offsets), grouped(each.rows),
             grouped(each.files), each.directory]
            for each in document.entered
        ]  # fmt: skip
        blocks.append(Table(headers, cells))
    blocks += [f"{each.directory}: {note}" for each in document.entered for note in each.notes]
    blocks += [f"batch {each} was in the way and is given up" for each in document.abandoned]
    for left in document.left_out:
        blocks.append(f"left out: {left.directory}: {'; '.join(left.reasons)}")
    if document.left_out:
        blocks.append(
            "--damaged also enters batches whose files no longer prove their manifest."
            " --without-manifest also enters batches that have lost their manifest."
        )
        blocks.append("next: docs/runbook.md, A10, says what to do with what was left out.")
    blocks += finding_lines(document.findings)
    if not (count or document.left_out):
        return blocks
    blocks.append("What manifests can't tell:")
    blocks += [f"  {each}" for each in document.not_known]
    return [
        *blocks,
        *(f"  {each} stays in staging: other batches hold its offsets" for each in document.staged),
    ]
