"""``./tallystick sandbox``: up, down, status, env. Parses and prints; the work is the stack's."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from sandbox.clusters.known import CLUSTER_NAMES
from sandbox.entry.console import SetupFailed
from sandbox.errors import SandboxError, WrongUse
from sandbox.stack import GROUPS, Sandbox

INTERRUPTED = 130
TABLE_WIDTH = 500
_CLUSTERS = ", ".join(CLUSTER_NAMES)
app = typer.Typer(
    name="sandbox",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kafka, HDFS, PostgreSQL, Airflow and Spark on this machine, on loopback.",
)
narrator = Console(stderr=True, soft_wrap=True, highlight=False)


@app.command()
def up(
    only: Annotated[
        str | None, typer.Option(help=f"Start less: a comma-separated list of {', '.join(GROUPS)}.")
    ] = None,
    beside: Annotated[
        str,
        typer.Option("--with", help=f"Start more: a comma-separated list of {_CLUSTERS}."),
    ] = "",
) -> None:
    """Start everything that does not run yet, and wait until it is ready."""
    sandbox = Sandbox()
    try:
        with narrator.status("starting services"):
            sandbox.up(
                None if only is None else _names(only),
                beside=_names(beside),
                report=narrator.print,
            )
    except KeyboardInterrupt:
        narrator.print(
            "Interrupted. What was started keeps running. Next: ./tallystick sandbox up, or down."
        )
        raise typer.Exit(INTERRUPTED) from None
    _print_table(sandbox)


@app.command()
def down(
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete data, logs and passwords as well.")
    ] = False,
) -> None:
    """Stop everything; data is kept for the next start."""
    with narrator.status("stopping services"):
        ended = Sandbox().down(purge=purge)
    narrator.print(f"{ended} processes ended, none is left" if ended else "nothing was running")


@app.command()
def status() -> None:
    """Show each service; exit 1 unless all that was asked for is ready."""
    sandbox = Sandbox()
    ready = _print_table(sandbox)
    if not ready:
        raise typer.Exit(1)


@app.command()
def env() -> None:
    """Print addresses and passwords as shell exports: eval "$(./tallystick sandbox env)"."""
    found = Sandbox().env()
    if not found:
        raise WrongUse("the sandbox is not running. Next: ./tallystick sandbox up")
    for name, value in found.items():
        typer.echo(f"export {name}={shlex.quote(value)}")


def main() -> None:
    """Run the command line; what goes wrong is told in plain words."""
    try:
        app(prog_name="tallystick sandbox")
    except (SandboxError, SetupFailed) as failure:
        narrator.print(str(failure), markup=False)
        raise SystemExit(failure.exit_code) from failure


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _print_table(sandbox: Sandbox) -> bool:
    """Show every service; True if all that were asked for are ready."""
    table = Table("service", "state", "address", "memory limit", "pid", "log", box=None)
    all_ready = bool(sandbox.wanted)
    for group, services in sandbox.groups.items():
        if group in CLUSTER_NAMES and group not in sandbox.wanted:
            continue  # most people never ask for one
        for service in services:
            lack = service.missing() if service.is_running else "not running"
            all_ready = all_ready and (lack is None or group not in sandbox.wanted)
            facts = (
                (service.address, service.memory, str(service.pid))
                if service.is_running
                else ("", "", "")
            )
            table.add_row(service.name, lack or "ready", *facts, str(service.log))
    # Never cut: paths and addresses are there to be copied.
    Console(width=TABLE_WIDTH).print(table)
    return all_ready
