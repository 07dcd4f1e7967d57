"""A ledger as hourly runs of one feed leave it, filled by a few statements and by no run."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import psycopg

_HOURS: Final = (
    "SET session_replication_role = replica",
    "INSERT INTO feed (feed, topic) VALUES (%(feed)s, %(feed)s)",
    """
    INSERT INTO plan (feed, window_from, window_until, revision, owner, planned_at)
    SELECT %(feed)s, %(start)s + run * interval '1 hour',
           %(start)s + (run + 1) * interval '1 hour', 1, 'bench', now()
      FROM generate_series(0, %(hours)s - 1) run
    """,
    """
    INSERT INTO batch (batch_id, feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label,
                       state, newest_token, verification_id, committed_by, commit_number,
                       record_count, hole_count, byte_count, committed_at, published_at)
    SELECT lpad(to_hex(plan_id), 16, '0'), %(feed)s, plan_id, '/landing', %(feed)s, 'cluster',
           'topic-id', 1, window_from, 'published', 1, plan_id, lpad(to_hex(plan_id), 16, 'a'),
           plan_id, %(records)s, %(holes)s, 1000000, window_until + interval '5 minutes',
           window_until + interval '5 minutes'
      FROM plan
    """,
    """
    INSERT INTO verification (verification_id, batch_id, attempt_id, isolation, manifest, sha256,
                              file_sha256)
    OVERRIDING SYSTEM VALUE
    SELECT verification_id, batch_id, committed_by, 'read_committed', %(manifest)s,
           sha256(%(manifest)s), sha256(%(manifest)s) FROM batch
    """,
)


def fill_hours(
    admin: psycopg.Connection[Any],
    feed: str,
    start: datetime,
    hours: int,
    *,
    records: int,
    holes: int,
    manifest: bytes,
) -> None:
    """Insert a published batch for each hour from `start` on, each with so many records and holes.

    The ledger is empty before. Triggers and foreign keys are off in this session from then on, so
    that the other tables can be filled in any order.
    """
    values = {
        "feed": feed,
        "start": start,
        "hours": hours,
        "records": records,
        "holes": holes,
        "manifest": manifest,
    }
    for statement in _HOURS:
        admin.execute(statement, values if "%" in statement else None)
