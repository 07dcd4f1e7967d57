"""The ledger: the record of what was claimed, committed and lost, in PostgreSQL.

One class for each family of tables, which knows its statements. Every promise is proven by
tests/contract/test_ledger_*.py.
"""

from __future__ import annotations

from datetime import timedelta

from tallystick.domain.identities import FeedName
from tallystick.domain.report.document import KEPT_FOR
from tallystick.ledger.attempts import Attempts
from tallystick.ledger.batches import Batches
from tallystick.ledger.commits import Commits
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.evidence import Evidence
from tallystick.ledger.extents import Extents
from tallystick.ledger.findings import Findings, News
from tallystick.ledger.history import History
from tallystick.ledger.hole_rows import fold_holes
from tallystick.ledger.metrics import Metrics
from tallystick.ledger.overview import Overview
from tallystick.ledger.planning import Planning
from tallystick.ledger.proofs import Proofs
from tallystick.ledger.publishing import Publishing
from tallystick.ledger.reports import Reports
from tallystick.ledger.scrubs import Scrubs
from tallystick.ledger.waivers import Waivers


class Ledger(
    Attempts,
    Batches,
    Commits,
    Evidence,
    Extents,
    Findings,
    History,
    Metrics,
    News,
    Overview,
    Planning,
    Proofs,
    Publishing,
    Reports,
    Scrubs,
    Waivers,
):
    """All families of tables, over one connection, which is opened when first used.

    Every method raises LedgerUnavailable (retry), SchemaOutOfDate, or LedgerRefused. Leases are
    read by the database's clock, and nothing but adoption depends on them. With `patience` nothing
    waits longer for the server, neither to connect nor for a statement.
    """

    def __init__(self, dsn: str, patience: timedelta | None = None) -> None:
        super().__init__(LedgerConnection(ledger_address(dsn, patience), patience=patience))

    def __repr__(self) -> str:
        return f"Ledger({self._connection})"

    def fold(self, feed: FeedName) -> int:
        """How many ranges now stand for several: contiguous, published, below their frontier.

        Offsets, counts and proofs stay as they are; the history only takes fewer rows. Then a part
        of the holes of old batches is folded, too, and what may be forgotten by now is.
        """
        with self._connection.writing() as transaction:
            transaction.rows("lock_generations_of", feed=feed)
            folded = transaction.change("fold_ranges", feed=feed)
        with self._connection.writing() as transaction:
            transaction.rows("lock_generations_of", feed=feed)
            fold_holes(transaction, feed)
            for each in ("forget_hashes", "thin_looks", "thin_reports"):
                transaction.change(each, feed=feed, kept=KEPT_FOR)
        return folded

    def close(self) -> None:
        """Give the connection back; the ledger opens another one when it is used again."""
        self._connection.close()
