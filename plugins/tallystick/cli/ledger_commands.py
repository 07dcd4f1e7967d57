"""`ledger migrate`, `status`, `rebuild` and `export`: the ledger as a whole."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from tallystick.cli.answers import CLEAN, FINDINGS, Answer, closed_pipes_ignored, deliver
from tallystick.cli.documents import (
    LedgerExportDocument,
    LedgerMigrateDocument,
    LedgerStatusDocument,
)
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.parts import rebuild_document
from tallystick.cli.progress import told
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.text import number
from tallystick.cli.views import rebuild_view
from tallystick.domain.identities import FeedName
from tallystick.errors import ConfigurationError
from tallystick.workflows.rebuilding.rebuild import rebuild as rebuild_ledger

app = typer.Typer(no_args_is_help=True, help="The ledger: its schema, a rebuild, an export.")


@app.command("migrate")
def migrate(context: typer.Context, as_json: JsonOption = False) -> None:
    """Bring the ledger's schema to the number that this code needs; can be run again."""
    deliver(lambda: _migrated(stage_of(context)), as_json=as_json)


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
            "--damaged", help="Enter also batches whose files do not prove their manifest any more."
        ),
    ] = False,
    without_manifest: Annotated[
        bool,
        typer.Option(
            "--without-manifest",
            help="Enter also batches that have lost their manifest, from the rows of their files.",
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


def _migrated(stage: Stage) -> Answer:
    from tallystick.ledger import migrations
    from tallystick.ledger.dsn import ledger_address

    dsn = stage.ledger_dsn()
    applied = migrations.migrate(dsn)
    found, _ = migrations.status(dsn)
    document = LedgerMigrateDocument(
        ledger=str(ledger_address(dsn)), applied=applied, schema_now=found
    )
    steps = [f"applied {each}" for each in applied]
    return Answer(document, [*steps, f"{document.ledger}: schema {found}, up to date."])


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
    step = "run ./tallystick ledger migrate" if found < needed else "update Tallystick"
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
    with told(f"rebuilding the ledger of {name}"), stage.services(feed) as services:
        report = rebuild_ledger(
            services,
            roots,
            dry_run=dry_run,
            damaged=damaged,
            without_manifest=without_manifest,
        )
    document = rebuild_document(report)
    return Answer(document, rebuild_view(document), CLEAN if report.is_whole else FINDINGS)


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
    rows = number(sum(document.rows.values()))
    return Answer(document, [f"{out}: {rows} rows of {document.ledger}."] if out else [])


@contextmanager
def _lines_to(out: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears under its name only when it is whole."""
    if out is None:
        with closed_pipes_ignored():
            yield sys.stdout
            sys.stdout.flush()
        return
    partial = out.with_name(f"{out.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(out)
    except OSError as error:
        accepted = f"a file that can be written ({error.strerror})"
        raise ConfigurationError("--out", str(out), accepted) from error
    finally:
        partial.unlink(missing_ok=True)
