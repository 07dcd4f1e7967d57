"""What a plan costs by the number of partitions: `python bench/plan_partitions.py [--most N]`.

Plans one feed over 10, 100, 1,000 and so on partitions: the first plan, which opens every log; an
hourly one, which reads the last landed record of each log again and claims what is new; and one
that finds nothing new. The ledger is a real PostgreSQL, the brokers are scripted: three leaders,
each of which takes 5 ms to answer. Prints CPU seconds of this process and of the ledger's server,
and the exponent with which they grow. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest

from tallystick.domain.identities import Owner
from tallystick.domain.rows.record_hash import VERSION, record_hash
from tallystick.sources import leader_connections
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.workflows.planning.plan import plan_feed
from tests.support.kafka_batches import a_batch
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part
from tests.support.ledger_server import LedgerServer
from tests.support.scripted_broker import NOW, ScriptedBroker
from tests.support.story import FEED, Story

LEADERS: Final = 3
ANSWER_SECONDS: Final = 0.005
LANDED: Final = 100
"""Offsets of each log that are landed, where some are."""
_EARLIEST: Final = -2
_RECORD: Final = a_batch(LANDED - 1, LANDED, values=[b"last"], timestamps=[1_000])


class ScriptedLeaders(ScriptedClient):
    """Brokers that lead so many logs of the same length."""

    def __init__(self, partitions: int, until_offset: int) -> None:
        leaders = {each: (1 + each % LEADERS, 0) for each in range(partitions)}
        values = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
        configs = [SimpleNamespace(name=name, value=value) for name, value in values.items()]
        super().__init__(
            metadata=[metadata(leaders)],
            offsets=[self._offsets],
            fetch=[self._records],
            configs=[
                SimpleNamespace(results=[SimpleNamespace(error_code=0, configs=configs)]),
            ],
        )
        self._until_offset = until_offset

    def poll(self, *, timeout_ms: float, future: Any) -> None:
        """Wait as long as a leader does."""
        time.sleep(ANSWER_SECONDS)

    def _offsets(self, request: ListOffsetsRequest) -> Any:
        (asked,) = request.topics
        answered = [
            SimpleNamespace(
                partition_index=each.partition_index,
                error_code=0,
                offset=0 if each.timestamp == _EARLIEST else self._until_offset,
                timestamp=-1,
            )
            for each in asked.partitions
        ]
        return SimpleNamespace(topics=[SimpleNamespace(partitions=answered)])

    def _records(self, request: FetchRequest) -> Any:
        (asked,) = request.topics
        until = self._until_offset
        return fetched(
            *(
                part(each.partition, records=_RECORD, high=until, stable=until)
                for each in asked.partitions
            )
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """What one plan took."""

    wall_seconds: float
    cpu_seconds: float
    """Of this process."""
    ledger_cpu_seconds: float
    """Of the ledger's server."""
    requests: dict[str, int]
    """Sent to the brokers, by kind."""


def main() -> None:
    """Plan, measure, print."""
    arguments = _arguments()
    sizes = [10**power for power in range(1, 7) if 10**power <= arguments.most]
    figures: dict[str, dict[int, Cost]] = {"first": {}, "hourly": {}, "nothing new": {}}
    server = LedgerServer()
    server.start()
    try:
        for size in sizes:
            for name, cost in _costs(server, size).items():
                figures[name][size] = cost
                print(
                    f"{size:>9,} partitions, {name:<12}{cost.cpu_seconds:7.2f} CPU-s,"
                    f" ledger {cost.ledger_cpu_seconds:6.2f} CPU-s,"
                    f" {cost.wall_seconds:7.2f} s, requests {cost.requests}",
                    flush=True,
                )
    finally:
        server.stop()
    print(json.dumps(_summary(figures)))


def _costs(server: LedgerServer, size: int) -> dict[str, Cost]:
    found = {"first": _cost(server, server.dsn(server.fresh()), size, LANDED)}
    for name, until in (("hourly", 2 * LANDED), ("nothing new", LANDED)):
        database = server.fresh()
        _fill(server.admin_dsn(database), size)
        found[name] = _cost(server, server.dsn(database), size, until, is_known=True)
    return found


def _fill(dsn: str, partitions: int) -> None:
    """Logs of which `LANDED` offsets are landed, each with its last record."""
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


def _cost(
    server: LedgerServer, dsn: str, partitions: int, until_offset: int, *, is_known: bool = False
) -> Cost:
    client = ScriptedLeaders(partitions, until_offset)
    with tempfile.TemporaryDirectory() as directory:
        services = Story(dsn, Path(directory), ScriptedBroker(FEED)).services()
        view = KafkaBrokerView({"bootstrap.servers": "scripted:9092"}, now=lambda: NOW)
        object.__setattr__(services, "broker", view)
        services.ledger.clock()  # connected before anything is measured
        with patch.object(leader_connections, "open_client", lambda config: client):
            own, wall, theirs = time.process_time(), time.perf_counter(), _server_cpu(server)
            report = plan_feed(services, None, Owner("bench"))
            cost = Cost(
                time.perf_counter() - wall,
                time.process_time() - own,
                _server_cpu(server) - theirs,
                dict(Counter(type(request).__name__ for _, request in client.sent)),
            )
        landed = LANDED if is_known else 0
        assert report.planned == partitions * (until_offset - landed)
        services.ledger.close()
    return cost


def _server_cpu(server: LedgerServer) -> float:
    """CPU seconds of the server and of those it has started."""
    pid = int((server.area / "data" / "postmaster.pid").read_text().split()[0])
    return sum(_cpu_of(each) for each in (pid, *_children(pid)))


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _summary(figures: dict[str, dict[int, Cost]]) -> dict[str, object]:
    return {
        "name": "plan_partitions",
        "figures": {
            name: {str(size): asdict(cost) for size, cost in costs.items()}
            for name, costs in figures.items()
        },
        "ratio": {name: _exponent(costs) for name, costs in figures.items()},
        "pairs": 1,
        "commit": _commit(),
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
    }


def _exponent(costs: dict[int, Cost]) -> float | None:
    """How CPU grows from the second largest to the largest number of partitions: 1 is linear."""
    if len(costs) < 2:
        return None
    (small, before), (large, after) = sorted(costs.items())[-2:]
    return round(math.log(after.cpu_seconds / before.cpu_seconds, large / small), 2)


def _commit() -> str:
    root = Path(__file__).resolve().parents[1]
    asked = ["git", "-C", str(root), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=100_000, help="partitions of the largest plan")
    return parser.parse_args()


if __name__ == "__main__":
    main()
