"""What the proof costs: `.venv/bin/python bench/landing_overhead.py`, after `./tallystick` set up.

Starts a Kafka, an HDFS and a ledger of its own and fills one topic. Then it lands the same records
in turn by a plain Spark job (`plain_job.py`: the same reads and writes, no ledger, no check) and by
the real workflow from plan to publish, both through spark-submit with the same settings. It prints
each pair, the medians and their ratio. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sandbox import Sandbox
from sandbox.connections import airflow_connections
from sandbox.entry.system import ensure_java
from tallystick.domain.identities import Owner
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.spark.command import landing_conf
from tallystick.spark.place import SparkPlace
from tallystick.wiring import open_services, spark_place
from tallystick.workflows.landing.run import land_feed

ROOT = Path(__file__).resolve().parents[1]
TOPIC = "bench"
AIM = 1.05


@dataclass(frozen=True, slots=True)
class Cost:
    """What one landing took."""

    wall_seconds: float
    cpu_seconds: float
    """User and system time of this process and of all that it started; the services' apart."""
    own_cpu_seconds: float
    """Of this process alone: with Tallystick, all of plan, verify, commit and publish."""


def main() -> None:
    """Start, fill, measure, print."""
    arguments = _arguments()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["JAVA_HOME"] = str(ensure_java())
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "sandbox" / "spark"))
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        _services(Path(scratch)) as environ,
    ):
        _print_environment()
        servers = environ["KAFKA_BOOTSTRAP_SERVERS"]
        until = _fill(servers, arguments.records, arguments.bytes, arguments.partitions)
        _compare(arguments, environ, until)


def _compare(
    arguments: argparse.Namespace, environ: Mapping[str, str], until: Mapping[int, int]
) -> None:
    """Pairs in both orders; the first pair warms caches up and does not count."""
    place = spark_place(_feed("any"), lambda conn_id: connection_in(environ, conn_id))
    ways: dict[str, Callable[[str], Cost]] = {
        "plain": lambda name: _plain(name, environ, place, until),
        "tallystick": lambda name: _workflow(name, environ, sum(until.values())),
    }
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for pair in range(arguments.pairs + 1):
        for way in list(ways) if pair % 2 else reversed(ways):
            costs[way].append(ways[way](f"{way}-{pair}"))
        plain, ours = (costs[way][-1] for way in ways)
        print(
            f"{'warm-up' if pair == 0 else f'pair {pair}':>8}:"
            f" plain {plain.wall_seconds:5.1f} s {plain.cpu_seconds:5.1f} CPU-s,"
            f" tallystick {ours.wall_seconds:5.1f} s {ours.cpu_seconds:5.1f} CPU-s,"
            f" ratio {ours.wall_seconds / plain.wall_seconds:.3f}"
            f" (CPU {ours.cpu_seconds / plain.cpu_seconds:.3f}, outside Spark"
            f" {ours.own_cpu_seconds:.1f} CPU-s), load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    plain_wall, our_wall = (
        statistics.median(each.wall_seconds for each in costs[way][1:]) for way in ways
    )
    plain_cpu, our_cpu = (
        statistics.median(each.cpu_seconds for each in costs[way][1:]) for way in ways
    )
    print(
        f"median of {arguments.pairs}: plain {plain_wall:.1f} s, {plain_cpu:.1f} CPU-s;"
        f" tallystick {our_wall:.1f} s, {our_cpu:.1f} CPU-s\n"
        f"ratio of medians: {our_wall / plain_wall:.3f} (CPU {our_cpu / plain_cpu:.3f});"
        f" the aim is at most {AIM}"
    )


def _plain(
    name: str, environ: Mapping[str, str], place: SparkPlace, until: Mapping[int, int]
) -> Cost:
    argv = [place.spark_submit, "--master", place.master, "--jars", ",".join(place.jars)]
    for key, value in landing_conf(place, {}).items():
        argv += ["--conf", f"{key}={value}"]
    argv += [str(ROOT / "bench" / "plain_job.py"), environ["KAFKA_BOOTSTRAP_SERVERS"], TOPIC]
    argv += [json.dumps({str(p): u for p, u in until.items()}), f"{environ['HDFS_URL']}/{name}"]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}

    def submit() -> None:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)

    return _cost_of(submit)


def _workflow(name: str, environ: Mapping[str, str], records: int) -> Cost:
    """A feed of its own each time, so that each run plans, lands and commits everything."""

    def land() -> None:
        with open_services(
            _feed(name), lambda conn_id: connection_in(environ, conn_id)
        ) as services:
            report = land_feed(services, None, Owner("bench"))
        committed = sum(each.commit.record_count for each in report.batches if each.commit)
        if report.errors or committed != records:
            raise SystemExit(f"{committed} of {records} records: {report.errors}")

    return _cost_of(land)


def _feed(name: str) -> Feed:
    return Feed.model_validate(
        {
            "feed": name,
            "source": {"topic": TOPIC},
            "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
            "target": {"root": "/bench", "replication": 1},
        }
    )


def _cost_of(work: Callable[[], None]) -> Cost:
    wall, own, started = time.perf_counter(), *_cpu_seconds()
    work()
    own_after, started_after = _cpu_seconds()
    own, started = own_after - own, started_after - started
    return Cost(time.perf_counter() - wall, own + started, own)


def _cpu_seconds() -> tuple[float, float]:
    """Of this process, and of all it started that have ended."""
    own, started = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime, started.ru_utime + started.ru_stime


@contextmanager
def _services(directory: Path) -> Iterator[Mapping[str, str]]:
    sandbox = Sandbox(directory)
    try:
        sandbox.up(only=["kafka", "hdfs", "postgres"], report=print)
        yield {**sandbox.env(), **airflow_connections(sandbox)}
    finally:
        sandbox.down(purge=True)


def _fill(servers: str, records: int, size: int, partitions: int) -> dict[int, int]:
    """One past the last offset of each partition, once all records are written. Seeded."""
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(60)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "lz4",
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
        }
    )
    chance = random.Random(7)
    words = [f"{chance.getrandbits(40):010x}" for _ in range(5_000)]
    until = dict.fromkeys(range(partitions), 0)
    for number in range(records):
        text = f'{{"id":{number},"customer":"{chance.choice(words)}","note":"'
        while len(text) < size - 2:
            text += f"{chance.choice(words)} "
        partition = number % partitions
        until[partition] += 1
        while True:
            try:
                producer.produce(TOPIC, f'{text[: size - 2]}"}}'.encode(), partition=partition)
                break
            except BufferError:
                producer.poll(0.5)
    if producer.flush(120):
        raise SystemExit("the topic could not be filled")
    print(f"{records:,} records of {size} bytes in {partitions} partitions")
    return until


def _print_environment() -> None:
    from pyspark import __version__ as pyspark_version

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" load {os.getloadavg()[0]:.1f}; {platform.platform()};"
        f" Python {platform.python_version()}, Spark {pyspark_version}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--directory", help="where the services keep their data meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
