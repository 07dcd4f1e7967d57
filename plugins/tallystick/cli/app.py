"""The command line: every command, by name. The workflows are the very same that Airflow runs.

A command's module is imported when the command is asked for: all of them take longer than a small
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from tallystick import __version__

EPILOG = (
    "\b\n"
    "Exit codes: 0 clean, 1 findings, 2 wrong use or settings, 3 could not tell or do.\n"
    "\n"
    "\b\n"
    "In a checkout the script ./tallystick also has:\n"
    "  demo                         the whole thing on this machine, through Airflow\n"
    "  sandbox up|down|status|env   Kafka, HDFS, PostgreSQL and Airflow on this machine\n"
    "  airflow ...                  the command line of that sandbox's Airflow\n"
    "  test [KIND]                  the tests: unit, trouble, clusters, installed, or the rest\n"
)

_COMMANDS: Final = {
    "feed": ("feeds", "app"),
    "doctor": ("doctor", "doctor"),
    "plan": ("run", "plan"),
    "land": ("run", "land"),
    "batches": ("records", "batches"),
    "files": ("records", "files"),
    "reconcile": ("report", "reconcile"),
    "report": ("report", "report"),
    "complete": ("report", "complete"),
    "findings": ("findings", "findings"),
    "explain": ("findings", "explain"),
    "repair": ("repair", "repair"),
    "waive": ("findings", "waive"),
    "unwaive": ("findings", "unwaive"),
    "kafka-secrets": ("feeds", "kafka_secrets"),
    "ledger": ("ledger", "app"),
    "jars": ("jars", "jars"),
}
"""The module of each beside this one, and its name there; in the order in which help shows them."""


@cache
def _command(name: str) -> Any:
    """The command, or the group of commands; KeyError for one that is none."""
    module, attribute = _COMMANDS[name]
    found = getattr(import_module(f"tallystick.cli.{module}"), attribute)
    around = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name)
    else:
        around.command(name)(found)
    return get_group(around).commands[name]


class _MadeWhenAsked(Mapping[str, Any]):
    """All commands by name."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _MadeWhenAsked()  # type: ignore[assignment]  # none is added later


app = typer.Typer(
    name="tallystick",
    cls=_Commands,
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
