"""A command answers with text or JSON and an exit code; every error ends here.

Standard output carries the answer and nothing else; logs, progress and errors go to standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import typer

from tallystick.cli.documents import Document, ErrorDetails, ErrorDocument
from tallystick.cli.text import Block, show_blocks
from tallystick.errors import CheckFailed, ConfigurationError, FeedFileInvalid, IngestionError
from tallystick.report.safe_text import visible_lines

CLEAN: Final = 0
FINDINGS: Final = 1
WRONG_USE: Final = 2
COULD_NOT: Final = 3
INTERRUPTED: Final = 130


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
