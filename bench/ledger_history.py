"""What a long history costs: `python bench/ledger_history.py [--partitions N --runs N --folds]`.

Fills a ledger of its own with hourly runs over many partitions, then asks it what a plan, a
reconcile and a report ask, and prints seconds and memory. With `--folds` it folds the ranges, which
keeps offsets and counts, and asks again.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from tallystick.domain.batches.states import Verdict
from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Level
from tallystick.ledger.postgres import PostgresLedger
from tallystick.workflows.reconciling.reconcile_report import PartitionAccount, ReconcileReport
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of
from tests.support.ledger_server import LedgerServer

FEED = FeedName("orders")
SPAN = 1_000
"""Offsets of one run in one partition; one of them is a hole in every fifth partition."""
END = datetime(2026, 11, 8, 12, tzinfo=UTC)

FILL = """
SET session_replication_role = replica;
INSERT INTO feed (feed, topic) VALUES ('orders', 'orders');
INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal, first_offset,
                        frontier, last_seen_until, read_until, opening_reason)
SELECT 'orders', 'orders', p, 'cluster', 'topic-id', 1, 0, {runs} * {span}, {runs} * {span},
       {runs} * {span}, 'first seen'
  FROM generate_series(0, {partitions} - 1) p;
INSERT INTO broker_snapshot (feed, taken_at, cluster_id, topic, topic_id, is_compacted,
                             retention_ms, partitions, log_start_offsets, high_watermarks,
                             last_stable_offsets, leader_epochs)
SELECT 'orders', timestamptz '{start}' + (run + 1) * interval '1 hour' + interval '5 seconds',
       'cluster', 'orders', 'topic-id', false, 604800000, shown.*
  FROM generate_series(0, {runs} - 1) run
 CROSS JOIN LATERAL (
       SELECT array_agg(p), array_agg(greatest(p * 0, run - 168)::bigint * {span}),
              array_agg((p * 0 + run + 1)::bigint * {span}),
              array_agg((p * 0 + run + 1)::bigint * {span}),
              array_agg(0)
         FROM generate_series(0, {partitions} - 1) p) shown;
INSERT INTO plan (feed, window_from, window_until, revision, owner, planned_at)
SELECT 'orders', timestamptz '{start}' + run * interval '1 hour',
       timestamptz '{start}' + (run + 1) * interval '1 hour', 1, 'bench', now()
  FROM generate_series(0, {runs} - 1) run;
INSERT INTO batch (batch_id, feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label,
                   state, newest_token, verification_id, committed_by, commit_number, record_count,
                   hole_count, byte_count, committed_at, published_at)
SELECT lpad(to_hex(plan_id), 16, '0'), 'orders', plan_id, '/landing', 'orders', 'cluster',
       'topic-id', 1, window_from, 'published', 1, plan_id, lpad(to_hex(plan_id), 16, 'a'),
       plan_id, {partitions} * {span} - {partitions} / 5, {partitions} / 5, 1000000,
       window_until + interval '5 minutes', window_until + interval '5 minutes'
  FROM plan;
INSERT INTO verification (verification_id, batch_id, attempt_id, manifest, sha256)
OVERRIDING SYSTEM VALUE
SELECT verification_id, batch_id, committed_by, text, sha256(convert_to(text, 'UTF8'))
  FROM batch
 CROSS JOIN (SELECT string_agg(md5(p::text), '') AS text
               FROM generate_series(0, 4 * {partitions}) p) manifest;
INSERT INTO offset_range (generation_id, offsets, state, batch_id, record_count, hole_count)
SELECT g.generation_id, int8range((b.commit_number - 1) * {span}, b.commit_number * {span}),
       'committed', b.batch_id, {span} - (g.partition % 5 = 0)::int, (g.partition % 5 = 0)::int
  FROM batch b CROSS JOIN generation g;
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT b.batch_id, g.generation_id, 'control', 0,
       int8multirange(int8range(b.commit_number * {span} - 1, b.commit_number * {span})), 1
  FROM batch b CROSS JOIN generation g WHERE g.partition % 5 = 0;
INSERT INTO file (batch_id, name, length_bytes, checksum, record_count)
SELECT batch_id, 'part-0.parquet', 1000000, 'crc32c:0', record_count FROM batch;
INSERT INTO batch_check (batch_id, level, is_clean, checked_at)
SELECT batch_id, 'L3', true, clock_timestamp() - interval '2 days' FROM batch;
"""


def main() -> None:
    """Fill, ask, print."""
    arguments = _arguments()
    server = LedgerServer()
    server.start()
    try:
        database = server.fresh()
        _fill(server.admin_dsn(database), arguments.partitions, arguments.runs)
        _ask(server.dsn(database), server.admin_dsn(database))
        if arguments.folds:
            ledger = PostgresLedger(server.dsn(database))
            seconds, folded = _timed(lambda: ledger.fold(FEED))
            print(f"folded into {folded:,} ranges in {seconds:.2f} s")
            _tidy(server.admin_dsn(database))
            _ask(server.dsn(database), server.admin_dsn(database))
    finally:
        server.stop()


def _fill(dsn: str, partitions: int, runs: int) -> None:
    start = (END - timedelta(hours=runs)).isoformat()
    script = FILL.format(partitions=partitions, runs=runs, span=SPAN, start=start)
    with psycopg.connect(dsn, autocommit=True) as admin:
        seconds, _ = _timed(lambda: admin.execute(script.encode()))
    _tidy(dsn)
    print(
        f"{runs:,} hourly runs over {partitions:,} partitions,"
        f" {partitions * runs:,} ranges: filled in {seconds:.0f} s"
    )


def _tidy(dsn: str) -> None:
    """What autovacuum does on a server that is not made for tests."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("VACUUM (FULL, ANALYZE) offset_range")
        admin.execute("VACUUM ANALYZE")


def _ask(dsn: str, admin_dsn: str) -> None:
    with psycopg.connect(admin_dsn) as admin:
        found = admin.execute(
            "SELECT count(*), pg_total_relation_size('offset_range') FROM offset_range"
        ).fetchone()
    assert found is not None
    print(f"offset_range: {found[0]:,} rows, {found[1] / 1e6:.0f} MB with its indexes")
    ledger = PostgresLedger(dsn)
    total, answer = 0.0, None
    for name, question in (
        ("accounts, as a plan asks", lambda: ledger.accounts(FEED)),
        ("sound ranges, as L1 asks", lambda: ledger.unsound(FEED)),
        ("files, as L2 asks", lambda: ledger.directories(FEED)),
        ("rows and holes", lambda: ledger.landed_counts(FEED)),
        ("complete", lambda: feed_completeness(ledger, FEED)),
        ("report", lambda: reported(ledger)),
    ):
        seconds, answer = _timed(question)
        total += seconds
        print(f"  {name:<26}{seconds:6.2f} s")
    assert answer is not None
    text = answer.to_json()
    assert (answer.complete_up_to, sum(each.gap_offsets for each in answer.partitions)) == (
        END + timedelta(seconds=5), 0
    )  # fmt: skip
    seconds, _ = _timed(lambda: ledger.store_report(answer))
    print(f"  {'stored, ' + format(len(text) / 1e6, '.1f') + ' MB':<26}{seconds:6.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  in all                    {total + seconds:6.2f} s, at most {peak:.0f} MB")
    ledger.close()


def reported(ledger: PostgresLedger) -> Any:
    """A report of a look that has found nothing."""
    accounts = ledger.accounts(FEED)
    reconciled = ReconcileReport(
        feed=FEED,
        topic="orders",
        taken_at=END + timedelta(minutes=1),
        levels=(Level.L0, Level.L1),
        findings=(),
        benign=(),
        partitions=[
            PartitionAccount(each, 0, each.frontier, 0, {}, 0, Verdict.PROVEN_OK)
            for _, each in sorted(accounts.generations.items())
        ],
        is_complete=True,
    )
    services: Any = SimpleNamespace(ledger=ledger, feed_name=FEED)
    return report_of(services, reconciled)


def _timed(question: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = question()
    return time.perf_counter() - began, answer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--folds", action="store_true", help="fold, and ask again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
