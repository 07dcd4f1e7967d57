"""How soon the page in Airflow has its answers: `.venv/bin/python bench/page_answers.py`.

Fills a ledger of its own with a year of hourly runs over many partitions as folding leaves them, a
finding for every tenth partition and two reports of all, and asks what the pages ask: seconds of
CPU, of PostgreSQL too, the median of several. Then it opens a feed's page in Chromium, in an
Airflow of its own: seconds by the clock. The last line is JSON.
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
from tallystick.ledger.ledger import Ledger
from tallystick.web import landed, reading, stored_reports
from tallystick.web.reading import Search, partitions_of
from tests.support.chromium import Person, at, chromium
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import finding_of
from tests.support.report_documents import a_document, a_finding

AIM_SECONDS = 0.5
PAGE_SECONDS = {"first answer": 0.5, "open in Chromium": 1.5}


def main() -> None:
    """Fill, ask, print."""
    arguments = _arguments()
    print_environment()
    server = LedgerServer()
    server.start()
    try:
        database = server.fresh()
        fill_history(server.admin_dsn(database), arguments.partitions, arguments.runs)
        ledger = Ledger(server.dsn(database))
        troubled = range(0, arguments.partitions, 10)
        ledger.record_findings(FEED, [finding_of(0, 5, partition=each) for each in troubled])
        for seed in (7, 8):
            document = a_document(
                partitions=arguments.partitions,
                columns=MOST_COLUMNS,
                findings=[a_finding(each) for each in troubled[seed:]],
                seed=seed,
            )
            ledger.store_report(document)
        found = _ask(ledger, backend_of(ledger, server.admin_dsn(database)), arguments.pairs)
        ledger.close()
        pages = _in_chromium(server.dsn(database), arguments.pairs)
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
    bounds |= {
        f"feed page, {name}": Bound(seconds, at_most=PAGE_SECONDS[name], unit="s")
        for name, seconds in pages.items()
    }
    sizes = {"partitions": arguments.partitions, "runs": arguments.runs}
    print_result("page_answers", arguments.pairs, sizes | figures, bounds)


def _ask(ledger: Ledger, server: int, times: int) -> dict[str, Cost]:
    now = datetime.now(UTC)
    reports = sorted(each.number for each in ledger.report_heads(FEED, most=2))
    questions = {
        "feeds": lambda: reading.feeds_of(ledger, reading.heads_of_list(ledger), now),
        "one feed": lambda: reading.feed_of_name(ledger, FEED, now),
        "partitions": lambda: partitions_of(ledger, FEED, Search()),
        "batches": lambda: landed.batches_of(ledger, FEED, None, 20),
        "findings": lambda: reading.findings_of(ledger, FEED, 0, 20),
        "drawings": lambda: stored_reports.NewestDrawings().of(ledger, FEED),
        "reports": lambda: stored_reports.reports_of(ledger, FEED, None, 20),
        "changes": lambda: stored_reports.changes_of(ledger, FEED, *reports),
    }
    found = {}
    for name, question in questions.items():
        costs = [cost_of(question, [server]) for _ in range(times)]
        cpu = round(statistics.median(each.cpu_seconds for each in costs), 3)
        wall = statistics.median(each.wall_seconds for each in costs)
        found[name] = Cost(wall, cpu, cpu)
        print(f"  {name:<12}{cpu:6.3f} CPU-s{wall:7.3f} s")
    return found


def _in_chromium(dsn: str, times: int) -> dict[str, float]:
    """Seconds until a feed's page begins to come, and until it is open: in Airflow, by a viewer."""
    from tests.orchestration.browser_place import PASSWORDS, api_server
    from tests.orchestration.conftest import airflow_environment, show_dags

    with airflow_environment():
        from airflow.utils.db import initdb

        initdb()
        show_dags()
        with api_server(dsn) as server, chromium() as browser, at(browser, server.url) as vera:
            vera.go(f"/tallystick/feeds/{FEED}")  # the log-in, and back
            vera.sign_in("vera", PASSWORDS["vera"])
            found = [_opened(vera) for _ in range(1 + times)][1:]
    first, opened = (statistics.median(each) for each in zip(*found, strict=True))
    print(f"  feed page, first answer {first:.3f} s, open in Chromium {opened:.3f} s")
    return {"first answer": first, "open in Chromium": opened}


def _opened(person: Person) -> tuple[float, float]:
    person.go(f"/tallystick/feeds/{FEED}")
    person.page.wait_for_load_state()
    timing = person.page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    return timing["responseStart"] / 1000, timing["loadEventEnd"] / 1000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=24 * 365, help="hourly ones")
    parser.add_argument("--pairs", type=int, default=5, help="how often each question is asked")
    return parser.parse_args()


if __name__ == "__main__":
    main()
