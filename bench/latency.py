"""How soon a small batch is readable: `.venv/bin/python bench/latency.py`.

To be run after `./tallystick` has set up. Starts Kafka, HDFS, a ledger, a Spark Connect server and
Airflow of its own. Takes 6,000 records from plan to published in this process and as a whole
command, and new ones through Airflow: from Trigger to published, a run with nothing to land, a
reconcile that reads all files in full. Prints medians, and ends with one line of JSON. Nothing else
should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import yaml

from bench import stack
from bench.measured import Bound, in_turn, print_environment, print_result
from bench.throughput import command
from sandbox import Sandbox
from sandbox.airflow_rest import ENDED, AirflowRest
from sandbox.services.airflow_settings import ADMIN

WARM: Final = "spark_default"
FEED: Final = "airborne"
NEVER: Final = {"cron": "0 0 1 1 *", "start_date": "2026-11-01"}
"""No run comes between those of the bench."""
RECORDS: Final = 6_000
PARTITIONS: Final = 3
AT_MOST: Final = {
    "in one process": 1.0,
    "whole command": 2.5,
    "Trigger to published": 8.0,
    "empty run": 6.0,
    "reconcile": 4.0,
}
"""Seconds, on a quiet machine of two cores."""


def main() -> None:
    """Start, fill, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--directory", help="where the services keep their data meanwhile")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch:
        feeds = Path(scratch, "feeds")
        feeds.mkdir()
        document = stack.feed_document(FEED, WARM)
        document |= {"schedule": NEVER, "reconcile": {"cron": NEVER["cron"], "scrub_every": "1s"}}
        (feeds / f"{FEED}.yaml").write_text(yaml.safe_dump(document))
        os.environ["TALLYSTICK_FEEDS"] = str(feeds)
        groups = ["kafka", "hdfs", "postgres", "spark-connect", "airflow"]
        with stack.services(Path(scratch), groups) as sandbox:
            print_environment()
            seconds = _here(sandbox, arguments.rounds, Path(scratch))
            seconds |= _in_airflow(sandbox, arguments.rounds)
    for way, median in seconds.items():
        print(f"{way:>22}: {median:6.2f} s, at most {AT_MOST[way]:.1f}")
    print_result(
        "latency",
        arguments.rounds,
        {way: {"wall_seconds": round(median, 3)} for way, median in seconds.items()},
        {way: Bound(each, at_most=AT_MOST[way], unit="s") for way, each in seconds.items()},
    )


def _here(sandbox: Sandbox, rounds: int, scratch: Path) -> dict[str, float]:
    environ = stack.variables(sandbox)
    stack.fill(environ["KAFKA_BOOTSTRAP_SERVERS"], RECORDS, 200, PARTITIONS)
    medians = in_turn(
        {
            "in one process": lambda name: stack.land(f"here-{name}", environ, RECORDS, WARM),
            "whole command": lambda name: command(f"whole-{name}", environ, WARM, scratch),
        },
        pairs=rounds,
        warm_ups=2,
    )
    return {way: cost.wall_seconds for way, cost in medians.items()}


def _in_airflow(sandbox: Sandbox, rounds: int) -> dict[str, float]:
    rest = AirflowRest(sandbox.airflow.url, ADMIN, sandbox.airflow.password())
    servers = sandbox.env()["KAFKA_BOOTSTRAP_SERVERS"]
    taken: dict[str, list[float]] = {}
    for kind in ("ingest", "reconcile"):
        rest.wait_for_dag(f"{kind}_{FEED}")
        rest.pause(f"{kind}_{FEED}", is_paused=False)
    for number in range(rounds + 1):
        if number:
            stack.produce(servers, RECORDS, 200, PARTITIONS)
        found = {
            "Trigger to published": _run(rest, "ingest", "batch.commit_and_publish"),
            "empty run": _run(rest, "ingest", None),
            "reconcile": _run(rest, "reconcile", None),
        }
        print("; ".join(f"{way} {each:.2f} s" for way, each in found.items()), flush=True)
        for way, each in found.items() if number else ():
            taken.setdefault(way, []).append(each)
    rest.close()
    return {way: statistics.median(each) for way, each in taken.items()}


def _run(rest: AirflowRest, kind: str, until_task: str | None) -> float:
    """Seconds from Trigger to the end of the run, or of a task of it; by Airflow's own clock."""
    dag_id, begun_at = f"{kind}_{FEED}", time.time()
    run_id = rest.trigger(dag_id)
    run = f"/dags/{dag_id}/dagRuns/{run_id}"
    while rest.run_state(dag_id, run_id) not in ENDED:
        time.sleep(0.2)
    tasks = rest.get(f"{run}/taskInstances", limit=100)["task_instances"]
    for each in sorted(tasks, key=lambda each: each["start_date"] or ""):
        if each["start_date"]:
            began, ended = (_after(begun_at, each[name]) for name in ("start_date", "end_date"))
            print(f"    {each['task_id']:<26} {began:5.2f} - {ended:5.2f} {each['state']}")
    found = rest.get(run)
    if found["state"] != "success":
        raise SystemExit(f"{dag_id}: {found['state']}")
    ends = [each["end_date"] for each in tasks if each["task_id"] == until_task]
    return max(_after(begun_at, end) for end in ends or [found["end_date"]])


def _after(begun_at: float, instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp() - begun_at


if __name__ == "__main__":
    main()
