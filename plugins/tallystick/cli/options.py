"""Arguments and options that commands share, and what their texts mean."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError
from tallystick.settings import notation

FeedArgument: TypeAlias = Annotated[str, typer.Argument(help="The feed's name.")]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document (docs/cli.md) and nothing else.")
]
AtOption: TypeAlias = Annotated[
    str | None, typer.Option("--at", metavar="T", help="An instant, ISO 8601 with an offset.")
]
FormatOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--format", metavar="text|json|csv|html", help="The report's form."),
]
LevelOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--level",
        metavar="1|2|3|4",
        help=(
            "How deep: 1 ledger and broker, 2 storage too, 3 reads what is due in full by Spark,"
            " 4 compares a sample by another Kafka client."
        ),
    ),
]
OutOption: TypeAlias = Annotated[
    Path | None, typer.Option("--out", metavar="F", help="Write the report to this file.")
]
WindowStart: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="T", help="Start of the window (included), ISO 8601 with an offset."),
]
WindowEnd: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="T", help="End of the window (excluded), ISO 8601 with an offset."),
]

_ACCEPTED = "an instant such as 2026-11-01T06:00:00Z, or a date such as 2026-11-01 (midnight UTC)"


def window_of(start: str | None, end: str | None) -> Window | None:
    """The window, or None when neither end is given.

    Raises WindowIncomplete for half a window, ConfigurationError for a text that is no instant or a
    window that is empty.
    """
    names = ("--window-start", "--window-end")
    return Window.between(names, instant_of(names[0], start), instant_of(names[1], end))


def instant_of(option: str, text: str | None) -> datetime | None:
    """The instant; None for none. Raises ConfigurationError for a text that is no instant."""
    return None if text is None else given_instant(option, text)


def given_instant(option: str, text: str) -> datetime:
    """The instant; raises ConfigurationError for a text that is none."""
    try:
        return notation.instant(text)
    except ValueError as error:
        reason = f"; {error}" if str(error) else ""
        raise ConfigurationError(option, text, _ACCEPTED + reason) from None
