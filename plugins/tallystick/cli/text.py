"""Text for people: tables on a terminal, plain aligned lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from tallystick.report.safe_text import visible, visible_lines
from tallystick.report.wording import grouped

MOST_ROWS: Final = 100


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers; a header that ends with `#` is a column of numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


Block: TypeAlias = str | Table


def counted(noun: str, count: int) -> str:
    """So many of them.

    >>> counted("batch", 1), counted("batch", 1200), counted("finding", 0)
    ('1 batch', '1 200 batches', '0 findings')
    """
    many = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{grouped(count)} {noun if count == 1 else many}"


def to_second(instant: datetime | None) -> str:
    """The instant in ISO 8601, to the second; a dash where there is none."""
    return instant.isoformat(timespec="seconds") if instant else "-"


def hole_count(holes: Mapping[str, int] | None) -> str:
    """Counts holes of all classes; a dash where nobody knows."""
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
