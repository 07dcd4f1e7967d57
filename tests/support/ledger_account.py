"""What a ledger says of a feed, as a value that two ledgers can be compared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import psycopg

from tallystick.domain.identities import FeedName
from tallystick.ledger.ledger import Ledger

# Folded or not, the offsets and the counts are the same.
_RANGES = """
SELECT g.partition, g.ordinal, r.state::text, range_agg(r.offsets)::text,
       sum(r.record_count)::bigint, sum(r.hole_count)::bigint
  FROM offset_range r JOIN generation g USING (generation_id)
 WHERE g.feed = %s AND r.state = ANY(%s::range_state[])
 GROUP BY g.partition, g.ordinal, r.state
"""


class HasLedger(Protocol):
    """Whatever knows where its ledger is."""

    dsn: str


def account_of(
    story: HasLedger, feed: str = "orders", *, states: tuple[str, ...] = ("committed",)
) -> dict[str, Mapping[Any, Any] | list[Any]]:
    """Offsets, counts, frontiers, anchors and current files of a feed.

    Left out is what a ledger gives out itself, generation ids and tokens, and what no manifest can
    hold.
    """
    ledger = Ledger(story.dsn)
    name = FeedName(feed)
    try:
        with psycopg.connect(story.dsn) as connection:
            rows = connection.execute(_RANGES.encode(), [feed, list(states)]).fetchall()
        logs = {
            (each.partition.partition, each.ordinal): each
            for of_partition in ledger.generations(name).values()
            for each in of_partition
        }
        return {
            "committed": {row[:3]: row[3:] for row in sorted(rows)},
            "logs": {
                key: (
                    account.cluster_id,
                    account.topic_id,
                    account.first_offset,
                    account.frontier,
                    account.beyond,
                    account.anchor,
                    account.read_until,
                    # How far a log was seen since it stopped is in no manifest.
                    max(account.last_seen_until, account.frontier),
                )
                for key, account in sorted(logs.items())
            },
            "files": sorted(
                (each.batch_id, each.attempt_id, each.file.name, each.file, each.is_published)
                for each in ledger.files(name)
            ),
        }
    finally:
        ledger.close()
