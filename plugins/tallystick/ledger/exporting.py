"""The whole ledger as lines of JSON, as of one instant. docs/ledger-export.md names every column.

Rows stream from the server a few at a time: memory grows neither with the ledger nor with a slow
reader. Nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from tallystick.domain.identities import FeedName
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import LedgerConnection, schema_found
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.rows import account_text
from tallystick.ledger.texts import decompressed

FORMAT: Final = "tallystick-ledger-lines-1"

# As the story goes: which logs there are, what was seen, planned, tried, proven, committed,
# replaced, found, reported. What a row refers to stands before it, but for a batch's proof.
TABLES: Final = (
    "schema_version",
    "feed",
    "feed_retirement",
    "generation",
    "broker_snapshot",
    "plan",
    "batch",
    "moved_batch",
    "plan_batch",
    "attempt",
    "verification",
    "offset_range",
    "tail_anchor",
    "file",
    "stored_anew",
    "hole",
    "folded_holes",
    "replaced_file",
    "file_retraction",
    "commit_link",
    "finding",
    "waiver_request",
    "waiver",
    "waiver_ending",
    "batch_check",
    "file_fingerprint",
    "report",
    "completeness",
    "hour_look",
    "directory_look",
    "told",
)
# A row of these may take megabytes.
_WIDE: Final = frozenset({"broker_snapshot", "verification", "hole", "report"})
# What is kept compressed comes beside the line, for it is exported as the text that it was.
_COMPRESSED: Final = {
    "broker_snapshot": ("shown",),
    "verification": ("manifest", "hashes"),
    "report": ("document",),
}
_ROWS_AT_A_TIME: Final = 1000
_WIDE_ROWS_AT_A_TIME: Final = 10


@dataclass(frozen=True, slots=True)
class ExportedRow:
    """One line, without its end."""

    table: str
    line: str


def exported(dsn: str, feed: FeedName | None) -> Iterator[ExportedRow]:
    """Every row of the ledger, or of one feed; a line about the export first, and one at the end.

    Raises LedgerUnavailable, SchemaOutOfDate, LedgerRefused for what can't be read, and for a
    manifest whose hash is not the one on record. Without the last line the export is not whole.
    """
    with (
        closing(LedgerConnection(ledger_address(dsn))) as connection,
        connection.reading() as transaction,
    ):
        head = {
            "format": FORMAT,
            "schema": schema_found(transaction),
            "feed": feed,
            "exported_at": transaction.one("clock").instant.isoformat(),
        }
        yield _row("export", json.dumps(head))
        count = 0
        for table in TABLES:
            at_a_time = _WIDE_ROWS_AT_A_TIME if table in _WIDE else _ROWS_AT_A_TIME
            parameters = {} if table == "schema_version" else {"feed": feed}
            for row in transaction.streamed(f"export_{table}", at_a_time, **parameters):
                count += 1
                yield _row(table, _whole(table, row))
        yield _row("end", json.dumps({"rows": count}))


def _whole(table: str, row: Any) -> str:
    line = str(row.line)
    for column in _COMPRESSED.get(table, ()):
        try:
            whole = _decompressed(column, row)
        except ValueError as error:
            raise LedgerRefused("export", f"a {column} can't be read: {error}") from error
        line = f"{line[:-1]}, {json.dumps(column)}: {json.dumps(whole)}}}"
    return line


def _decompressed(column: str, row: Any) -> object:
    kept = getattr(row, column)
    match column:
        case _ if kept is None:
            return None
        case "shown":
            return json.loads(decompressed(kept))
        case "manifest":
            return account_text(row)
        case _:
            return decompressed(kept)


def _row(table: str, content: str) -> ExportedRow:
    """The row's own text with its table's name before everything else."""
    return ExportedRow(table, f'{{"table": {json.dumps(table)}, {content[1:]}')
