"""How soon the page in Airflow has its answers: `python bench/page_answers.py [--partitions N]`.

Fills a ledger of its own with a year of hourly runs over many partitions as folding leaves them, a
finding for every tenth partition and a report of all, and asks what the pages ask. Prints seconds
of CPU, of PostgreSQL too, the median of several. The last line is JSON.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.ledger_history import FEED, backend_of, fill_history
from bench.measured import Bound, Cost, cost_of, print_environment, print_result
from tallystick.domain.report.coverage_map import MOST_COLUMNS
from tallystick.ledger.postgres import PostgresLedger
from tallystick.web import reading
from tallystick.web.partition_list import Search, partitions_of
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import finding_of
from tests.support.report_documents import a_document

AIM_SECONDS = 0.5


def main() -> None:
    """Fill, ask, print."""
    arguments = _arguments()
    print_environment()
    server = LedgerServer()
    server.start()
    try:
        database = server.fresh()
        fill_history(server.admin_dsn(database), arguments.partitions, arguments.runs)
        ledger = PostgresLedger(server.dsn(database))
        troubled = range(0, arguments.partitions, 10)
        ledger.record_findings(FEED, [finding_of(0, 5, partition=each) for each in troubled])
        ledger.store_report(a_document(partitions=arguments.partitions, columns=MOST_COLUMNS))
        found = _ask(ledger, backend_of(ledger, server.admin_dsn(database)), arguments.pairs)
        ledger.close()
    finally:
        server.stop()
    figures = {
        name: {"wall_seconds": round(cost.wall_seconds, 3), "cpu_seconds": cost.cpu_seconds}
        for name, cost in found.items()
    }
    bounds = {
        name: Bound(cost.cpu_seconds, at_most=AIM_SECONDS, unit="CPU-s")
        for name, cost in found.items()
    }
    sizes = {"partitions": arguments.partitions, "runs": arguments.runs}
    print_result("page_answers", arguments.pairs, sizes | figures, bounds)


def _ask(ledger: PostgresLedger, server: int, times: int) -> dict[str, Cost]:
    now = datetime.now(UTC)
    questions = {
        "feeds": lambda: reading.feeds_of(ledger, now),
        "one feed": lambda: reading.feed_of_name(ledger, FEED, now),
        "partitions": lambda: partitions_of(ledger, FEED, Search()),
        "batches": lambda: reading.batches_of(ledger, FEED, None, 20),
        "findings": lambda: reading.findings_of(ledger, FEED, 0, 20),
        "coverage": lambda: reading.coverage_of(ledger, FEED, None),
    }
    found = {}
    for name, question in questions.items():
        costs = [cost_of(question, [server]) for _ in range(times)]
        cpu = round(statistics.median(each.cpu_seconds for each in costs), 3)
        wall = statistics.median(each.wall_seconds for each in costs)
        found[name] = Cost(wall, cpu, cpu)
        print(f"  {name:<12}{cpu:6.3f} CPU-s{wall:7.3f} s")
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=24 * 365, help="hourly ones")
    parser.add_argument("--pairs", type=int, default=5, help="how often each question is asked")
    return parser.parse_args()


if __name__ == "__main__":
    main()
