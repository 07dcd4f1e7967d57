"""The NewsRecord port on PostgreSQL: a row for each recipient, locked while they are told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from tallystick.domain.identities import FeedName
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.report.news import Told
from tallystick.ledger import finding_rows
from tallystick.ledger.connection import LedgerConnection, Transaction
from tallystick.ports.findings import StoredFinding


class PostgresTelling:
    """Fulfils `Telling`; lives as long as its transaction."""

    def __init__(self, transaction: Transaction, feed: FeedName, recipient: str) -> None:
        self._transaction, self._feed, self._recipient = transaction, feed, recipient
        transaction.change("enter_recipient", feed=feed, recipient=recipient)
        row = transaction.one("lock_recipient", feed=feed, recipient=recipient)
        self._told = from_plain(Told, row.known) if row.known else None

    @property
    def told(self) -> Told | None:
        """What they were told last."""
        return self._told

    def keep(self, told: Told) -> None:
        """Remember it."""
        self._transaction.change(
            "keep_told",
            feed=self._feed,
            recipient=self._recipient,
            known=json.dumps(to_plain(told)),
        )
        self._told = told


class PostgresNews:
    """Fulfils `NewsRecord`; see there for every promise."""

    _connection: LedgerConnection

    @contextmanager
    def telling(self, feed: FeedName, recipient: str) -> Iterator[PostgresTelling]:
        """The recipient's turn."""
        with self._connection.writing() as transaction:
            yield PostgresTelling(transaction, feed, recipient)

    def ended_findings(
        self, feed: FeedName, numbers: Collection[int], after: int
    ) -> Mapping[int, StoredFinding]:
        """What does not stand open."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("ended_since", feed=feed, numbers=sorted(numbers), after=after)
            found = [finding_rows.finding(transaction, row.finding_id) for row in rows]
        return {each.finding_id: each for each in found if each}

    def newest_finding(self, feed: FeedName) -> int:
        """The largest number."""
        with self._connection.reading() as transaction:
            return int(transaction.one("newest_finding", feed=feed).newest)
