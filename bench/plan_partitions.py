"""What a plan costs by the number of partitions: `python bench/plan_partitions.py [--most N]`.

Plans one feed over 10, 100, 1,000 and so on partitions: the first plan, which opens every log; an
hourly one, which reads the last landed record of each log again and claims what is new; and one
that finds nothing new. The ledger is a real PostgreSQL, the brokers are scripted: three leaders
in a process of their own, each of which takes 5 ms to answer. Prints CPU seconds of this process
and of the ledger's server, and the exponent with which they grow. The last line is JSON.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.measured import Bound, Cost, cost_of, print_environment, print_result
from bench.scripted_leaders import LANDED, scripted_leaders
from tallystick.domain.identities import Owner
from tallystick.domain.rows.record_hash import VERSION, record_hash
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.workflows.planning.plan import plan_feed
from tests.support.ledger_server import LedgerServer
from tests.support.scripted_broker import NOW, ScriptedBroker
from tests.support.story import FEED, Story

WIDE, WIDE_CPU_SECONDS = 10_000, 2.0
"""Partitions, and what a plan of them may take of this process' CPU."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What one plan took."""

    cost: Cost
    requests: dict[str, int]
    """Sent to the brokers, by kind."""


def main() -> None:
    """Plan, measure, print."""
    arguments = _arguments()
    print_environment()
    sizes = [10**power for power in range(1, 7) if 10**power <= arguments.most]
    taken: dict[str, dict[int, Planned]] = {"first": {}, "hourly": {}, "nothing_new": {}}
    server = LedgerServer()
    server.start()
    try:
        for size in sizes:
            for name, planned in _plans(server, size).items():
                taken[name][size] = planned
                cost = planned.cost
                print(
                    f"{size:>9,} partitions, {name:<12}{cost.own_cpu_seconds:7.2f} CPU-s,"
                    f" ledger {cost.cpu_seconds - cost.own_cpu_seconds:6.2f} CPU-s,"
                    f" {cost.wall_seconds:7.2f} s, requests {planned.requests}",
                    flush=True,
                )
    finally:
        server.stop()
    figures = {
        f"{name}_{size}": {
            "wall_seconds": round(planned.cost.wall_seconds, 3),
            "cpu_seconds": round(planned.cost.own_cpu_seconds, 3),
            "ledger_cpu_seconds": round(planned.cost.cpu_seconds - planned.cost.own_cpu_seconds, 3),
            "requests": sum(planned.requests.values()),
        }
        for name, of_size in taken.items()
        for size, planned in of_size.items()
    }
    ratios = {f"{name}_exponent": Bound(_exponent(each), 1.05) for name, each in taken.items()}
    for name, of_size in taken.items():
        if WIDE in of_size:
            seconds = of_size[WIDE].cost.own_cpu_seconds
            ratios[f"{name}_{WIDE}"] = Bound(seconds, at_most=WIDE_CPU_SECONDS, unit="CPU-s")
    print_result("plan_partitions", 1, figures, ratios)


def _plans(server: LedgerServer, size: int) -> dict[str, Planned]:
    found = {"first": _planned(server, server.dsn(server.fresh()), size, LANDED)}
    for name, until in (("hourly", 2 * LANDED), ("nothing_new", LANDED)):
        database = server.fresh()
        _fill(server.admin_dsn(database), size)
        found[name] = _planned(server, server.dsn(database), size, until, is_known=True)
    return found


def _fill(dsn: str, partitions: int) -> None:
    """Logs of which `LANDED` offsets are landed, in one folded range, each with its last record."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("INSERT INTO feed (feed, topic) VALUES (%s, %s)", [FEED, FEED])
        admin.execute(
            """
            INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal,
                                    first_offset, frontier, last_seen_until, seen_epoch,
                                    read_until, opening_reason)
            SELECT %(feed)s, %(feed)s, p, 'cluster', %(topic_id)s, 1, 0, %(until)s, %(until)s, 0,
                   %(until)s, 'first seen'
              FROM generate_series(0, %(partitions)s - 1) p
            """,
            {
                "feed": FEED,
                "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
                "until": LANDED,
                "partitions": partitions,
            },
        )
        admin.execute(
            """
            INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)
            SELECT generation_id, int8range(0, %(until)s), 'committed', %(until)s, 0 FROM generation
            """,
            {"until": LANDED},
        )
        hashes = [
            record_hash(
                partition=each,
                offset=LANDED - 1,
                timestamp_ms=1_000,
                key=None,
                value=b"last",
                headers=(),
            )
            for each in range(partitions)
        ]
        admin.execute(
            """
            INSERT INTO tail_anchor (generation_id, record_offset, leader_epoch, content_hash,
                                     hash_version, batch_id)
            SELECT g.generation_id, %(until)s - 1, 0, anchor.hash, %(version)s, ''
              FROM unnest(%(hashes)s::bytea[]) WITH ORDINALITY AS anchor(hash, place)
              JOIN generation g ON g.partition = anchor.place - 1
            """,
            {"until": LANDED, "hashes": hashes, "version": VERSION},
        )
        admin.execute("VACUUM ANALYZE")


def _planned(
    server: LedgerServer, dsn: str, partitions: int, until_offset: int, *, is_known: bool = False
) -> Planned:
    wanted = partitions * (until_offset - (LANDED if is_known else 0))
    requests: Counter[str] = Counter()
    send = LeaderConnections.send

    def counted(self: LeaderConnections, node_id: Any, request: Any, left: Any) -> Any:
        requests[type(request).__name__] += 1
        return send(self, node_id, request, left)

    with (
        tempfile.TemporaryDirectory() as directory,
        scripted_leaders(partitions, until_offset) as servers,
        _view(servers) as broker,
    ):
        services = replace(
            Story(dsn, Path(directory), ScriptedBroker(FEED)).services(), broker=broker
        )
        services.ledger.clock()  # connected before anything is measured
        with _view(servers) as another:
            another.snapshot(FEED)  # the brokers keep their answers

        def plan() -> None:
            assert plan_feed(services, None, Owner("bench")).planned == wanted

        with patch.object(LeaderConnections, "send", counted):
            cost = cost_of(plan, _processes(server))
        services.ledger.close()
    return Planned(cost, dict(requests))


def _view(servers: str) -> KafkaBrokerView:
    """With patience for a busy machine, on which the brokers take longer than they say."""
    return KafkaBrokerView({"bootstrap.servers": servers}, now=lambda: NOW, patience_seconds=120)


def _processes(server: LedgerServer) -> list[int]:
    pid = int((server.area / "data" / "postmaster.pid").read_text().split()[0])
    return [pid, *(each.pid for each in psutil.Process(pid).children())]


def _exponent(plans: dict[int, Planned]) -> float:
    """How CPU grows from the second largest to the largest number of partitions: 1 is linear."""
    (small, before), (large, after) = sorted(plans.items())[-2:]
    grown = after.cost.cpu_seconds / before.cost.cpu_seconds
    return math.log(grown, large / small)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=10_000, help="partitions of the largest plan")
    return parser.parse_args()


if __name__ == "__main__":
    main()
