"""A command answers with text or JSON and an exit code; every error ends here.

Standard output carries the answer and nothing else; logs, progress and errors go to standard error.
Text for people has tables on a terminal, plain aligned lines elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO, TypeAlias

import typer

from tallystick.errors import CheckFailed, ConfigurationError, FeedFileInvalid, IngestionError
from tallystick.report.documents import Document, ErrorDetails, ErrorDocument
from tallystick.report.safe_text import visible, visible_lines
from tallystick.report.wording import grouped

CLEAN: Final = 0
FINDINGS: Final = 1
WRONG_USE: Final = 2
COULD_NOT: Final = 3
INTERRUPTED: Final = 130

MOST_ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers; a header that ends with `#` is a column of numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


Block: TypeAlias = str | Table


@dataclass(frozen=True, slots=True)
class Answer:
    """One command's result, for a program and for a person."""

    document: Document
    blocks: Sequence[Block]
    exit_code: int = CLEAN
    notes: Sequence[str] = field(default=())
    """Said on standard error, whatever the form of the answer."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """One command's result as one text, shown as it is."""

    text: str
    """Empty when it was written elsewhere."""
    exit_code: int = CLEAN
    notes: Sequence[str] = field(default=())
    """Said on standard error."""


def deliver(
    work: Callable[[], Answer | WrittenAnswer], *, as_json: bool, is_verbatim: bool = False
) -> None:
    """Do the work, show its answer, and end the program with the answer's exit code.

    With `is_verbatim` standard output carries nothing but the answer, though it is no JSON.
    """
    try:
        with _reserved_stdout(as_json or is_verbatim):
            answer = work()
    except IngestionError as error:
        raise typer.Exit(_tell(error, as_json=as_json)) from error
    except KeyboardInterrupt:
        _say("Interrupted. What is committed stays committed; the next run takes up the rest.")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # the edge: a defect is shown whole, and is no finding
        _say(traceback.format_exc().rstrip("\n"))
        if as_json:
            _print(_defect(error).as_json())
        raise typer.Exit(COULD_NOT) from error
    for note in answer.notes:
        _say(note)
    if isinstance(answer, WrittenAnswer):
        _write(answer.text)
    elif as_json:
        _print(answer.document.as_json())
    else:
        with closed_pipes_ignored():
            show_blocks(answer.blocks)
    raise typer.Exit(answer.exit_code)


def exit_code_of(error: IngestionError) -> int:
    """1 for findings, 2 for wrong use or settings, 3 for everything that could not be done."""
    if isinstance(error, CheckFailed):
        return FINDINGS
    return WRONG_USE if isinstance(error, ConfigurationError) else COULD_NOT


def error_details(error: IngestionError) -> ErrorDetails:
    """The error for a program."""
    return ErrorDetails(
        kind=type(error).__name__,
        what=error.describe(),
        next_step=error.next_step,
        may_retry=error.retry,
        problems=error.problems if isinstance(error, FeedFileInvalid) else (),
    )


def _tell(error: IngestionError, *, as_json: bool) -> int:
    """Prints the error on standard error; returns the exit code."""
    code = exit_code_of(error)
    _say(f"error: {error.describe()}")
    _say(f"next: {error.next_step}")
    if as_json:
        _print(ErrorDocument(error=error_details(error), exit_code=code).as_json())
    return code


def _defect(error: Exception) -> ErrorDocument:
    details = ErrorDetails(
        kind=type(error).__name__,
        what=f"a defect: {error}",
        next_step="Report it with the traceback on standard error.",
        may_retry=False,
    )
    return ErrorDocument(error=details, exit_code=COULD_NOT)


def _say(text: str) -> None:
    print(visible_lines(text), file=sys.stderr, flush=True)  # noqa: T201  the edge speaks


def _print(text: str) -> None:
    with closed_pipes_ignored():
        print(text, flush=True)  # noqa: T201  the edge speaks


def _write(text: str) -> None:
    with closed_pipes_ignored():
        sys.stdout.write(text)
        sys.stdout.flush()


@contextlib.contextmanager
def closed_pipes_ignored() -> Iterator[None]:
    """Leave quietly when the reader has gone: `tallystick files orders | head` is no error."""
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output once more at exit, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def whole_file(out: Path) -> Iterator[TextIO]:
    """A file that appears under its name only when it is whole.

    Raises ConfigurationError where it can't be written.
    """
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with partial.open("w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(out)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError("--out", str(out), f"a file that can be written ({reason})") from (
            error
        )
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _reserved_stdout(is_reserved: bool) -> Iterator[None]:
    """Send to standard error what others print meanwhile, child processes included."""
    if not is_reserved:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr):
        try:
            kept = os.dup(1)
        except OSError:
            kept = None
        if kept is None:
            yield
            return
        os.dup2(2, 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def to_second(instant: datetime | None) -> str:
    """The instant in ISO 8601, to the second; a dash where there is none."""
    return instant.isoformat(timespec="seconds") if instant else "-"


def hole_count(holes: Mapping[str, int] | None) -> str:
    """How many holes, of all classes; a dash where nobody knows."""
    return grouped(None if holes is None else sum(holes.values()))


def show_blocks(blocks: Iterable[Block]) -> None:
    """Print the blocks on standard output, in the way that fits it."""
    if sys.stdout.isatty():
        _show_on_terminal(blocks)
        return
    for block in blocks:
        for line in [block] if isinstance(block, str) else plain_lines(block):
            print(visible_lines(line))  # noqa: T201  the edge speaks
    sys.stdout.flush()


def plain_lines(table: Table) -> list[str]:
    """The table as aligned lines, the header first; the rows beyond the bound are counted."""
    rows, left = _bounded(table)
    headers = [header.removesuffix("#") for header in table.headers]
    rows = [[visible(cell) for cell in row] for row in rows]
    columns = list(zip(headers, *rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    lines = [
        "  ".join(
            cell.rjust(width) if header.endswith("#") else cell.ljust(width)
            for header, cell, width in zip(table.headers, row, widths, strict=True)
        ).rstrip()
        for row in (headers, *rows)
    ]
    return [*lines, left] if left else lines


def _show_on_terminal(blocks: Iterable[Block]) -> None:
    from rich.console import Console  # a pipe never needs it
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False)
    for block in blocks:
        if isinstance(block, str):
            # The terminal wraps: a path that Rich has broken can't be copied.
            console.print(Text(visible_lines(block)), soft_wrap=True)
            continue
        rows, left = _bounded(block)
        if _is_too_wide(block.headers, rows, console.width):
            for line in _records(block.headers, rows):
                console.print(Text(line), soft_wrap=True)
        else:
            table = RichTable(box=None, pad_edge=False, header_style="bold")
            for header in block.headers:
                is_number = header.endswith("#")
                table.add_column(
                    header.removesuffix("#"),
                    justify="right" if is_number else "left",
                    min_width=_longest_word([header, *(row[len(table.columns)] for row in rows)]),
                )
            for row in rows:
                table.add_row(*(Text(visible(cell)) for cell in row))
            console.print(table)
        if left:
            console.print(Text(left))


def _longest_word(texts: Iterable[str]) -> int:
    return max((len(word) for text in texts for word in visible(text).split()), default=1)


def _is_too_wide(headers: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """True where a word, such as a path, would have to be broken to fit into its column."""
    columns = zip(headers, *rows, strict=True)
    return sum(_longest_word(each) for each in columns) + 2 * (len(headers) - 1) > width


def _records(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Each row as lines of its own, each cell under its header's name."""
    names = [header.removesuffix("#") for header in headers]
    widest = max(map(len, names))
    lines: list[str] = []
    for row in rows:
        cells = zip(names, row, strict=True)
        lines += [f"{name.ljust(widest)}  {visible(cell)}".rstrip() for name, cell in cells]
        lines.append("")
    return lines


def _bounded(table: Table) -> tuple[Sequence[Sequence[str]], str]:
    """The rows that are shown, and a word about the others."""
    left = len(table.rows) - MOST_ROWS
    return table.rows[
        :MOST_ROWS
    ], f"... and {grouped(left)} more (--json shows all)" if left > 0 else ""
