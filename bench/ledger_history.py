"""What a long history costs: `python bench/ledger_history.py [--partitions N --months 1 12]`.

Fills a ledger of its own, for each of these numbers of months, with hourly runs over many
partitions as folding leaves them: one range for each log and a day of single ones, a row of holes
for each log and week and four days of single ones. A file holds 100 slices. Proofs are left out:
nothing here reads one. Then it asks what a plan, a reconcile and a report ask, and prints seconds
of CPU, of PostgreSQL too, and memory. The last line is JSON.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.filled_hours import fill_hours
from bench.measured import Bound, cost_of, print_environment, print_result
from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Level
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.look_columns import Shown
from tallystick.workflows.reconciling.reconcile_report import PartitionAccount, ReconcileReport
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of
from tests.support.ledger_server import LedgerServer

FEED = FeedName("orders")
SPAN = 1_000
"""Offsets of one run in one partition; one of them is a hole in every fifth partition."""
END = datetime(2026, 11, 8, 12, tzinfo=UTC)

WEEK, DAY = 7 * 24, 24
# Every log begins elsewhere, as they do in life.
FILL = """
CREATE TEMP TABLE log AS SELECT p, (p * 7919 % 30011)::bigint AS base
                           FROM generate_series(0, {partitions} - 1) p;
INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal, first_offset,
                        frontier, last_seen_until, read_until, opening_reason)
SELECT 'orders', 'orders', p, 'cluster', 'topic-id', 1, base, base + {runs} * {span},
       base + {runs} * {span}, base + {runs} * {span}, 'first seen'
  FROM log ORDER BY p;
INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
SELECT g.generation_id, int8range(log.base, log.base + {folded} * {span}), 'committed',
       {folded} * ({span} - (log.p % 5 = 0)::int), {folded} * (log.p % 5 = 0)::int
  FROM generation g JOIN log ON log.p = g.partition;
INSERT INTO offset_range (generation_id, offsets, state, batch_id, record_count, hole_count)
SELECT g.generation_id,
       int8range(log.base + (b.commit_number - 1) * {span}, log.base + b.commit_number * {span}),
       'committed', b.batch_id, {span} - (log.p % 5 = 0)::int, (log.p % 5 = 0)::int
  FROM batch b CROSS JOIN log JOIN generation g ON g.partition = log.p
 WHERE b.commit_number > {folded};
INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)
SELECT b.batch_id, g.generation_id, 'control', 0, int8multirange(
       int8range(log.base + b.commit_number * {span} - 1, log.base + b.commit_number * {span})), 1
  FROM batch b CROSS JOIN log JOIN generation g ON g.partition = log.p
 WHERE log.p % 5 = 0 AND b.commit_number > {folded_holes};
INSERT INTO hole (generation_id, class, position, runs, hole_count)
SELECT g.generation_id, 'control', 0, range_agg(
       int8range(log.base + b.commit_number * {span} - 1, log.base + b.commit_number * {span})),
       count(*)
  FROM batch b CROSS JOIN log JOIN generation g ON g.partition = log.p
 WHERE log.p % 5 = 0 AND b.commit_number <= {folded_holes}
 GROUP BY g.generation_id, b.commit_number / {week};
INSERT INTO folded_holes (batch_id, class, hole_count)
SELECT batch_id, 'control', {partitions} / 5 FROM batch WHERE commit_number <= {folded_holes};
INSERT INTO file (batch_id, name, length_bytes, checksum, record_count,
                  partitions, first_offsets, span_blocks, span_rests, hole_counts)
SELECT b.batch_id, 'part-' || 1 + log.p / 100 || '.parquet', 1000000, 'crc32c:0',
       count(*) * {span}, range_agg(int4range(log.p, log.p + 1)),
       array_agg(log.base + (b.commit_number - 1) * {span} ORDER BY log.p),
       array_agg(0 ORDER BY log.p), array_agg({span}::smallint ORDER BY log.p),
       array_agg(0::bigint ORDER BY log.p)
  FROM batch b CROSS JOIN log
 GROUP BY b.batch_id, log.p / 100;
INSERT INTO directory_look (batch_id, digest, shown_as)
SELECT batch_id, sha256('listed'), sha256('shown') FROM batch;
INSERT INTO batch_check (batch_id, level, is_clean, checked_at)
SELECT batch_id, 'L3', true, clock_timestamp() - interval '2 days' FROM batch;
"""
LOOK = """
INSERT INTO broker_snapshot (feed, taken_at, cluster_id, topic, topic_id, is_compacted,
                             retention_ms, shown, log_start_sum, last_stable_sum,
                             high_watermark_sum, leaderless_count)
VALUES ('orders', %s, 'cluster', 'orders', 'topic-id', false, 604800000, %s, %s, %s, %s, 0)
"""


def main() -> None:
    """Fill, ask, print."""
    arguments = _arguments()
    print_environment()
    server = LedgerServer()
    server.start()
    figures: dict[str, dict[str, float]] = {}
    try:
        for months in arguments.months:
            database = server.fresh()
            fill_history(server.admin_dsn(database), arguments.partitions, months * 30 * DAY)
            figures[f"month {months}"] = _ask(server.dsn(database), server.admin_dsn(database))
            server.drop(database)
    finally:
        server.stop()
    first, *_, last = figures.values()
    ratios = {f"{each}, to the first": Bound(last[each] / first[each]) for each in first}
    print_result("ledger_history", 1, {"partitions": arguments.partitions} | figures, ratios)


def fill_history(dsn: str, partitions: int, runs: int) -> None:
    """Hourly runs over many partitions, as folding leaves them, and a look after each."""
    start = END - timedelta(hours=runs)
    script = FILL.format(
        partitions=partitions,
        runs=runs,
        span=SPAN,
        start=start.isoformat(),
        week=WEEK,
        folded=runs - DAY,
        folded_holes=max(0, runs - 4 * DAY),
    )
    with psycopg.connect(dsn, autocommit=True) as admin:
        began = time.perf_counter()
        holes = len(range(0, partitions, 5))
        fill_hours(
            admin,
            FEED,
            start,
            runs,
            records=partitions * SPAN - holes,
            holes=holes,
            manifest=b"",  # nothing here reads one
        )
        admin.execute(script.encode())
        bases = [p * 7919 % 30011 for p in range(partitions)]
        with admin.cursor() as cursor:
            for run in range(runs):
                ends = [each + (run + 1) * SPAN for each in bases]
                starts = [each + max(0, run - WEEK) * SPAN for each in bases]
                shown = Shown(range(partitions), ends, ends, starts, [0] * partitions, (), ())
                taken_at = start + timedelta(hours=run + 1, seconds=5)
                sums = (sum(starts), sum(ends), sum(ends))
                cursor.execute(LOOK.encode(), (taken_at, shown.compressed(), *sums))
        admin.execute("VACUUM ANALYZE")
        seconds = time.perf_counter() - began
    print(f"{runs:,} hourly runs over {partitions:,} partitions: filled in {seconds:.0f} s")


def _ask(dsn: str, admin_dsn: str) -> dict[str, float]:
    """CPU seconds by what was asked: of this process, and of PostgreSQL."""
    ledger, found = Ledger(dsn), {}
    server = backend_of(ledger, admin_dsn)
    answers: list[Any] = []
    for name, question in (
        ("accounts_of_a_plan", lambda: ledger.accounts(FEED)),
        ("past_bounds", lambda: ledger.past_bounds(FEED, "topic-id", range(100))),
        ("sound_ranges_of_l1", lambda: ledger.unsound(FEED)),
        ("batches_of_l2", lambda: ledger.batch_places(FEED)),
        ("looks_of_l2", lambda: ledger.directory_looks(FEED, timedelta(days=1))),
        ("files_of_l2_when_due", lambda: ledger.directories(FEED)),
        ("rows_and_holes", lambda: ledger.landed_counts(FEED)),
        ("complete_up_to", lambda: feed_completeness(ledger, FEED)),
        ("fold", lambda: ledger.fold(FEED)),
        ("report", lambda: answers.append(reported(ledger))),
        ("report_is_stored", lambda: ledger.store_report(answers[0])),
        ("page", lambda: ledger.report_at(FEED, None)),
    ):
        cost = cost_of(question, [server])
        found[name.replace("_", " ")] = round(cost.cpu_seconds, 3)
        print(f"  {name:<26}{cost.cpu_seconds:6.2f} CPU-s{cost.wall_seconds:7.2f} s")
    [answer] = answers
    assert (answer.complete_up_to, sum(each.gap_offsets for each in answer.partitions)) == (
        END + timedelta(seconds=5), 0
    )  # fmt: skip
    found["memory, MB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    ledger.close()
    return found


def backend_of(ledger: Ledger, admin_dsn: str) -> int:
    """The process of PostgreSQL that answers this ledger."""
    ledger.idle(FEED)
    with psycopg.connect(admin_dsn) as admin:
        ((found,),) = admin.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = 'tallystick'"
        ).fetchall()
    return int(found)


def reported(ledger: Ledger) -> Any:
    """A report of a look that has found nothing."""
    accounts = ledger.accounts(FEED)
    reconciled = ReconcileReport(
        feed=FEED,
        topic="orders",
        taken_at=END + timedelta(minutes=1),
        deepest=Level.L1,
        levels=(Level.L0, Level.L1),
        findings=(),
        partitions=[
            PartitionAccount(each, 0, each.frontier, 0, {}, None, 0, Verdict.PROVEN_OK)
            for _, each in sorted(accounts.generations.items())
        ],
        silent=(),
        is_complete=True,
    )
    services: Any = SimpleNamespace(ledger=ledger, feed_name=FEED, progress=lambda _: None)
    return report_of(services, reconciled)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=2_000)
    parser.add_argument("--months", type=int, nargs="+", default=[1, 12])
    return parser.parse_args()


if __name__ == "__main__":
    main()
