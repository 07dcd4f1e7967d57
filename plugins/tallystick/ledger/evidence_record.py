"""The EvidenceRecord port on PostgreSQL: past looks, and generations that contradict themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Final

from tallystick.domain.identities import FeedName
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.snapshot import PastBounds
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.reading import generations
from tallystick.ledger.rows import in_utc
from tallystick.ports.evidence import SettledRanges

# A day of landing every quarter of an hour; before, one look an hour.
_LOOKS: Final = 100
_REACH: Final = timedelta(days=2)


class PostgresEvidence:
    """Fulfils `EvidenceRecord`; see there for every promise."""

    _connection: LedgerConnection

    def past_bounds(
        self, feed: FeedName, topic_id: str, partitions: Collection[int]
    ) -> Mapping[int, Sequence[PastBounds]]:
        """What the newest looks at this log, and some before them, showed, oldest first."""
        if not partitions:
            return {}
        found: defaultdict[int, list[PastBounds]] = defaultdict(list)
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "past_bounds",
                feed=feed,
                topic_id=topic_id,
                partitions=sorted(partitions),
                most=_LOOKS,
                reach=_REACH,
            )
        for row in rows:
            found[row.partition].append(
                PastBounds(in_utc(row.taken_at), row.high_watermark, row.last_stable_offset)
            )
        return dict(found)

    def unsound(self, feed: FeedName) -> Sequence[SettledRanges]:
        """The generations whose ranges overlap or leave something open below the frontier."""
        with self._connection.reading() as transaction:
            # Union and sum of a million ranges differ by seconds.
            is_guarded = transaction.one("has_overlap_constraint").is_there
            rule = "generations_with_gaps" if is_guarded else "unsound_generations"
            ids = [row.generation_id for row in transaction.rows(rule, feed=feed)]
            if not ids:
                return []
            rows = transaction.rows("settled_ranges", generation_ids=ids)
            accounts = [
                account
                for lives in generations(transaction, feed).values()
                for account in lives
                if account.generation_id in ids
            ]
        return [
            SettledRanges(
                account,
                [
                    OffsetRange(account.partition, row.from_offset, row.until_offset)
                    for row in rows
                    if row.generation_id == account.generation_id
                ],
            )
            for account in accounts
        ]
