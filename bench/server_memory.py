"""What a Spark Connect server keeps of landings: `.venv/bin/python bench/server_memory.py`.

Starts a Kafka, an HDFS, a ledger and a Spark Connect server of its own. Then it lands the same few
records again and again, each time by a feed and a session of its own, from plan to published. In
steps it asks the server what it holds, after a full garbage collection: bytes, sessions, classes,
threads, open files, and files on its disk; and what this process, the client, holds. It ends with
one line of JSON: what the second half of the landings has added, for each landing.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import psutil

from bench import stack
from bench.measured import Bound, print_environment, print_result
from sandbox.services.spark_connect import SparkConnect
from tests.support.jvm_answers import jvm_answer, jvm_of

RECORDS, PARTITIONS, SIZE = 600, 2, 200
MOST_BYTES_PER_LANDING = 4_000.0
_TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)
_SESSIONS = re.compile(
    r"^\s*\d+:\s+(\d+)\s+\d+\s+org\.apache\.spark\.sql\.connect\.service\.SessionHolder\s*$",
    re.MULTILINE,
)
_LOADED = re.compile(r"java\.cls\.(loaded|unloaded)Classes=(\d+)")


@dataclass(frozen=True, slots=True)
class Held:
    """What a server holds after a full garbage collection, and its client."""

    heap_bytes: int
    sessions: int
    classes: int
    threads: int
    open_files: int
    files: int
    """In its working directory."""
    client_bytes: int
    client_threads: int
    client_open_files: int


def held_by(server: SparkConnect) -> Held:
    """What it holds now; takes a second."""
    gc.collect()
    jvm = jvm_of(server)
    histogram = jvm_answer(server, "GC.class_histogram")
    total, sessions = _TOTAL.search(histogram), _SESSIONS.search(histogram)
    assert total, histogram[-200:]
    classes = {kind: int(n) for kind, n in _LOADED.findall(jvm_answer(server, "PerfCounter.print"))}
    client = psutil.Process()
    return Held(
        heap_bytes=int(total[1]),
        sessions=int(sessions[1]) if sessions else 0,
        classes=classes["loaded"] - classes["unloaded"],
        threads=jvm.num_threads(),
        open_files=jvm.num_fds(),
        files=sum(1 for _ in server.folder.rglob("*")),
        client_bytes=client.memory_info().rss,
        client_threads=client.num_threads(),
        client_open_files=client.num_fds(),
    )


def main() -> None:
    """Start, land, ask, print."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        stack.services(Path(scratch), ["kafka", "hdfs", "postgres", "spark-connect"]) as sandbox,
    ):
        print_environment()
        environ = stack.variables(sandbox)
        stack.fill(environ["KAFKA_BOOTSTRAP_SERVERS"], RECORDS, SIZE, PARTITIONS)
        found: dict[int, Held] = {}
        step = max(1, arguments.landings // 10)
        for number in range(1, arguments.landings + 1):
            stack.land(f"feed-{number}", environ, RECORDS, "spark_default")
            if number % step == 0:
                found[number] = held_by(sandbox.spark_connect)
                print(f"{number:>6} landings: {asdict(found[number])}", flush=True)
    _tell(found)


def _tell(found: dict[int, Held]) -> None:
    numbers = sorted(found)
    middle, last = numbers[(len(numbers) - 1) // 2], numbers[-1]
    before, after = asdict(found[middle]), asdict(found[last])
    added = {name: (after[name] - before[name]) / (last - middle) for name in after}
    print_result(
        "server_memory",
        last,
        {
            "after": {str(number): asdict(held) for number, held in found.items()},
            "added_per_landing": {name: round(each, 3) for name, each in added.items()},
        },
        {"heap_bytes_per_landing": Bound(added["heap_bytes"], at_most=MOST_BYTES_PER_LANDING)},
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--landings", type=int, default=500)
    parser.add_argument("--directory", help="where the services keep their data")
    return parser.parse_args()


if __name__ == "__main__":
    main()
