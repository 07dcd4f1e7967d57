"""The command line: every command, by name. The workflows are the very same that Airflow runs."""

from __future__ import annotations

from typing import Annotated

import typer

from tallystick import __version__
from tallystick.cli import (
    feed_commands,
    finding_commands,
    ledger_commands,
    record_commands,
    report_commands,
    run_commands,
)

EPILOG = (
    "\b\n"
    "Exit codes: 0 clean, 1 findings, 2 wrong use or settings, 3 could not tell or do.\n"
    "\n"
    "\b\n"
    "The script ./tallystick also has:\n"
    "  demo                         the whole thing on this machine, through Airflow\n"
    "  sandbox up|down|status|env   Kafka, HDFS, PostgreSQL and Airflow on this machine\n"
    "  test [unit|all]              the tests\n"
)

app = typer.Typer(
    name="tallystick",
    help="Kafka to HDFS, exactly once, with proof.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"tallystick {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    is_version_asked: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Kafka to HDFS, exactly once, with proof."""


app.add_typer(feed_commands.app, name="feed")
app.command("plan")(run_commands.plan)
app.command("land")(run_commands.land)
app.command("batches")(record_commands.batches)
app.command("files")(record_commands.files)
app.command("reconcile")(report_commands.reconcile)
app.command("report")(report_commands.report)
app.command("complete")(report_commands.complete)
app.command("findings")(finding_commands.findings)
app.command("explain")(finding_commands.explain)
app.command("repair")(finding_commands.repair)
app.command("waive")(finding_commands.waive)
app.command("kafka-secrets")(feed_commands.kafka_secrets)
app.add_typer(ledger_commands.app, name="ledger")
