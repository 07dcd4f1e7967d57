"""How a landing's cost grows with records and with partitions: `.venv/bin/python bench/growth.py`.

Starts a Kafka, an HDFS, a ledger and a Spark Connect server of its own. Then `./tallystick land`
takes a hundredth, a tenth and all of `--most` small records, and after that 10, 100 and so on up to
`--most-partitions` partitions with a few records each, always by a new feed. It prints what each
landing took: CPU of the command and of Spark's server, the most memory that either held, and what
the server's heap holds half a minute after it. It ends with one line of JSON: the steepest exponent
between two sizes, and by how much memory grew with the last tenfold size: those before it warm a
server up. A size for which the disk has no room is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import psutil
import yaml

from bench import stack
from bench.measured import ROOT, Bound, print_environment, print_result
from bench.server_memory import held_by
from sandbox import Sandbox

WARM: Final = "spark_default"
WARM_UPS: Final = 3
"""A server that is new works slowly: the smallest sizes would look dear, and growth cheap."""
PARTITIONS: Final = 6
"""Of the topic that gets more and more records."""
RECORDS: Final = 5
"""Of each partition, in the topics that have more and more partitions."""
MOST_OF_A_BROKER: Final = 5_000
"""Partitions: each is three open files, of which a process may often have 20,000."""
DISK_BYTES: Final = 150
"""Of a record beside its value, in Kafka and in HDFS, with room for both to merge and compact."""
IDLE_SECONDS: Final = 30
"""Spark closes consumers that nobody uses a few at a time: what is left then is kept for good."""
STEEPEST, FLAT = 1.05, 1.25


@dataclass(frozen=True, slots=True)
class Landed:
    """What one landing took."""

    wall_seconds: float
    cpu_seconds: float
    """Of the command and of Spark's server."""
    client_cpu_seconds: float
    client_bytes: int
    """The most that the command's processes held in memory."""
    server_bytes: int
    """The most that the server's process held; its heap has a limit."""
    server_heap_bytes: int
    """What lives in its heap once the landing is over, and after a full collection."""


class Growth:
    """Landings on one stack, each by a new feed and a process of its own."""

    def __init__(self, sandbox: Sandbox, scratch: Path) -> None:
        self._sandbox = sandbox
        self._scratch = scratch
        self._environ = stack.variables(sandbox)
        self._servers = self._environ["KAFKA_BOOTSTRAP_SERVERS"]
        assert sandbox.spark_connect.pid is not None
        self._spark = psutil.Process(sandbox.spark_connect.pid)

    def by_records(self, sizes: Sequence[int], size_bytes: int) -> Iterator[tuple[int, Landed]]:
        """One topic that grows, landed whole at each size; a new server is warmed up first."""
        stack.make_topic(self._servers, "records", PARTITIONS)
        there = 0
        for size in sizes:
            needed = (size - there) * (size_bytes + DISK_BYTES)
            if shutil.disk_usage(self._scratch).free < needed:
                print(f"left out: {size:,} records, which may need {needed / 1e9:.0f} GB of disk")
                return
            stack.produce(self._servers, size - there, size_bytes, PARTITIONS, "records")
            for warm_up in range(0 if there else WARM_UPS):
                self._land(f"warm-up-{warm_up}", "records", size)
            there = size
            yield size, self._land(f"records-{size}", "records", size)

    def by_partitions(self, sizes: Sequence[int], size_bytes: int) -> Iterator[tuple[int, Landed]]:
        """A topic of each width, on as many brokers as hold them."""
        for size in sizes:
            for _ in range(1 + len(self._sandbox.kafka.added), -(-size // MOST_OF_A_BROKER)):
                self._sandbox.kafka.add_broker()
            topic = f"partitions-{size}"
            stack.make_topic(self._servers, topic, size)
            stack.produce(self._servers, size * RECORDS, size_bytes, size, topic)
            yield size, self._land(topic, topic, size * RECORDS)

    def _land(self, name: str, topic: str, records: int) -> Landed:
        folder, answer = self._scratch / "feeds" / name, self._scratch / f"{name}.json"
        folder.mkdir(parents=True)
        document = stack.feed_document(name, WARM, topic)
        document["plan"] = {"max_records_per_run": records}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
        environ = {**os.environ, **self._environ, "TALLYSTICK_FEEDS": str(folder)}
        _forget_peak(self._spark.pid)
        before, wall = self._spark.cpu_times(), -time.perf_counter()
        with answer.open("w") as out, answer.with_suffix(".log").open("w") as log:
            argv = [str(ROOT / "tallystick"), "land", name, "--json"]
            process = subprocess.Popen(argv, env=environ, stdout=out, stderr=log)
            # Its own figures: those of all children together would not fall from one to the next.
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall, after = wall + time.perf_counter(), self._spark.cpu_times()
        found = json.loads(answer.read_text() or '{"batches": []}')
        rows = sum(each["rows"] or 0 for each in found["batches"])
        if process.returncode or rows != records:
            said = answer.with_suffix(".log").read_text()
            raise SystemExit(f"{rows} of {records} records: {answer.read_text()}{said}")
        served = after.user + after.system - before.user - before.system
        own = used.ru_utime + used.ru_stime
        peak = _peak_bytes(self._spark.pid)
        time.sleep(IDLE_SECONDS)
        return Landed(
            wall_seconds=round(wall, 2),
            cpu_seconds=round(own + served, 2),
            client_cpu_seconds=round(own, 2),
            client_bytes=used.ru_maxrss * 1024,
            server_bytes=peak,
            server_heap_bytes=held_by(self._sandbox.spark_connect).heap_bytes,
        )


def main() -> None:
    """Start, land, measure, print."""
    arguments = _arguments()
    found: dict[str, dict[int, Landed]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        stack.services(Path(scratch), ["kafka", "hdfs", "postgres", "spark-connect"]) as sandbox,
    ):
        print_environment()
        growth = Growth(sandbox, Path(scratch))
        records = [arguments.most // part for part in (100, 10, 1)]
        partitions = [10**power for power in range(1, 7) if 10**power <= arguments.most_partitions]
        for kind, landings in (
            ("records", growth.by_records(records, arguments.bytes)),
            ("partitions", growth.by_partitions(partitions, arguments.bytes)),
        ):
            found[kind] = {}
            for size, landed in landings:
                found[kind][size] = landed
                print(f"{size:>12,} {kind}: {asdict(landed)}", flush=True)
    figures = {
        f"{kind}_{size}": asdict(landed)
        for kind, sizes in found.items()
        for size, landed in sizes.items()
    }
    ratios = {
        name: bound for kind, sizes in found.items() for name, bound in _ratios(kind, sizes).items()
    }
    print_result("growth", 1, {"bytes": arguments.bytes} | figures, ratios)


def _ratios(kind: str, sizes: Mapping[int, Landed]) -> dict[str, Bound]:
    steps = list(pairwise(sorted(sizes.items())))
    if not steps:
        return {}
    steepest = max(
        math.log(after.cpu_seconds / before.cpu_seconds, large / small)
        for (small, before), (large, after) in steps
    )
    before, after = steps[-1][0][1], steps[-1][1][1]
    grown = {
        "memory of the client": after.client_bytes / before.client_bytes,
        "memory of the server": after.server_bytes / before.server_bytes,
        "what the server keeps": after.server_heap_bytes / before.server_heap_bytes,
    }
    return {f"{kind}: exponent of CPU": Bound(steepest, at_most=STEEPEST)} | {
        f"{kind}: {what}, for tenfold": Bound(each, at_most=FLAT) for what, each in grown.items()
    }


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak_bytes(pid: int) -> int:
    """The most memory that the process held since its peak was forgotten."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=200_000_000, help="records")
    parser.add_argument("--most-partitions", type=int, default=10_000)
    parser.add_argument("--bytes", type=int, default=40, help="of a record's value")
    parser.add_argument("--directory", help="where the services keep their data meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
