"""Who was told what: a row for each recipient, locked while they are told."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from tallystick.domain.identities import FeedName
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.report.news import Told
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import read_finding


class Telling:
    """One recipient's turn: nobody else tells them anything meanwhile.

    A turn that dies leaves everything as it was.
    """

    def __init__(self, transaction: Transaction, feed: FeedName, recipient: str) -> None:
        self._transaction, self._feed, self._recipient = transaction, feed, recipient
        transaction.change("enter_recipient", feed=feed, recipient=recipient)
        row = transaction.one("lock_recipient", feed=feed, recipient=recipient)
        self.told = from_plain(Told, row.known) if row.known else None
        """What they were told last; None before the first time."""

    def keep(self, told: Told) -> None:
        """Remember it once the turn ends well."""
        self._transaction.change(
            "keep_told",
            feed=self._feed,
            recipient=self._recipient,
            known=json.dumps(to_plain(told)),
        )
        self.told = told


class News(Tables):
    """What recipients of alerts were told."""

    @contextmanager
    def telling(self, feed: FeedName, recipient: str) -> Iterator[Telling]:
        """The recipient's turn; waits for another one to end. The ledger is not asked inside it."""
        with self._connection.writing() as transaction:
            yield Telling(transaction, feed, recipient)

    def ended_findings(
        self, feed: FeedName, numbers: Collection[int], after: int
    ) -> Mapping[int, StoredFinding]:
        """Those of these numbers, and of larger ones than `after`, that do not stand open."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("ended_since", feed=feed, numbers=sorted(numbers), after=after)
            found = [read_finding(transaction, row.finding_id) for row in rows]
        return {each.finding_id: each for each in found if each}

    def newest_finding(self, feed: FeedName) -> int:
        """The largest number that a finding of the feed has; 0 where it never had one."""
        return int(self._connection.one("newest_finding", feed=feed).newest)
