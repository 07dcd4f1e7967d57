"""`ledger migrate` and `ledger status`: the ledger's schema."""

from __future__ import annotations

import typer

from tallystick.cli.answers import CLEAN, FINDINGS, Answer, deliver
from tallystick.cli.documents import LedgerMigrateDocument, LedgerStatusDocument
from tallystick.cli.options import JsonOption
from tallystick.cli.stage import Stage, stage_of

app = typer.Typer(no_args_is_help=True, help="The ledger's schema.")


@app.command("migrate")
def migrate(context: typer.Context, as_json: JsonOption = False) -> None:
    """Bring the ledger's schema to the number that this code needs; can be run again."""
    deliver(lambda: _migrated(stage_of(context)), as_json=as_json)


@app.command("status")
def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Say which schema the ledger has and which one this code needs. Exit 1 if they differ."""
    deliver(lambda: _status(stage_of(context)), as_json=as_json)


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
