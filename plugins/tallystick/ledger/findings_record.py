"""The FindingsRecord port on PostgreSQL: opens transactions around the rows of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.waivers import Waiver
from tallystick.ledger import finding_rows, setting_aside
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.rows import in_utc
from tallystick.ports.findings import StoredFinding


class PostgresFindings:
    """Fulfils `FindingsRecord`; see there for every promise."""

    _connection: LedgerConnection

    def record_findings(self, feed: FeedName, findings: Sequence[Finding]) -> None:
        """Keep findings."""
        with self._connection.writing() as transaction:
            finding_rows.record_findings(transaction, feed, findings)

    def findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """The feed's standing findings."""
        with self._connection.reading() as transaction:
            return finding_rows.standing_findings(transaction, feed)

    def all_findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """Every finding that the feed ever had."""
        with self._connection.reading() as transaction:
            return finding_rows.all_findings(transaction, feed)

    def finding(self, finding_id: int) -> StoredFinding | None:
        """One finding."""
        with self._connection.reading() as transaction:
            return finding_rows.finding(transaction, finding_id)

    def clock(self) -> datetime:
        """The ledger's clock."""
        with self._connection.reading() as transaction:
            return in_utc(transaction.one("clock").instant)

    def close_findings(
        self, feed: FeedName, closed: Mapping[int, str], *, confirmed_before: datetime | None = None
    ) -> int:
        """End findings."""
        with self._connection.writing() as transaction:
            return finding_rows.close_findings(transaction, feed, closed, confirmed_before)

    def waive(self, waiver: Waiver) -> None:
        """Accept an open finding."""
        with self._connection.writing() as transaction:
            feed = finding_rows.waive(transaction, waiver)
            setting_aside.give_up_accepted(transaction, feed)
