"""The command line: every command, by name. The workflows are the very same that Airflow runs."""

from __future__ import annotations

from typing import Annotated

import typer

from tallystick import __version__
from tallystick.cli import feeds, findings, ledger, reconcile, records, repair, report, run

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


app.add_typer(feeds.app, name="feed")
app.command("plan")(run.plan)
app.command("land")(run.land)
app.command("batches")(records.batches)
app.command("files")(records.files)
app.command("reconcile")(reconcile.reconcile)
app.command("report")(report.report)
app.command("complete")(report.complete)
app.command("findings")(findings.findings)
app.command("explain")(findings.explain)
app.command("repair")(repair.repair)
app.command("waive")(findings.waive)
app.command("kafka-secrets")(feeds.kafka_secrets)
app.add_typer(ledger.app, name="ledger")
