"""How fast a scrub reads: `.venv/bin/python bench/scrub.py`, after `./tallystick` set up.

Writes files with the landed schema once, with offsets as a transactional topic has them: a marker
behind every 99 records. Then the files are read in turn by a plain count and hash over all columns,
and by a scrub as reconcile has it: fingerprints, exact offsets, page checksums verified; once
without, and once with the fingerprints of an earlier scrub. So it is done for a small and for a
large number of records: part of a scrub does not grow. Each opens a session of its own, which
counts for all alike. And so it is done on several Spark Connect servers, one after the other: Java
compiles the same code otherwise at each start. It prints each round, and the medians of all
servers' ratios. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import stack
from bench.measured import Bound, Cost, as_figures, in_turn, print_environment, print_result
from sandbox import Sandbox
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile, ScrubPlan, ScrubResult
from tallystick.ports.spark_runner import ScrubOrder
from tallystick.report.wording import grouped
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer
from tallystick.spark.slice_sums import SCHEMA
from tests.support.connect_servers import server_at
from tests.support.scripted_scrub import unwritten

# Of the plain read's speed. "later" has the fingerprints of an earlier scrub.
AIMS = {"first": 0.8, "later": 0.9}
CODEC = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
COLUMNS = "topic, partition, offset, timestamp, timestamp_type, key, value, headers"


def main() -> None:
    """Start, write, measure, print."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        stack.services(Path(scratch), ["spark-connect"]) as sandbox,
    ):
        print_environment()
        figures: dict[str, object] = {"hole_every": arguments.hole_every}
        ratios: dict[str, Bound] = {}
        for records in arguments.records:
            server = server_at(sandbox.spark_connect.address)
            with server.session(str(uuid4()), {}, reads_kafka=False) as spark:
                plan = _written(spark, Path(scratch) / str(records), records, arguments)
            size = sum(each.length_bytes for each in plan.files)
            print(
                f"{grouped(records)} records of {arguments.bytes} bytes with {arguments.headers}"
                f" headers in {len(plan.files)} files, {size / 1e6:.0f} MB"
            )
            found = []
            for number in range(1, arguments.servers + 1):
                found.append(medians := _compared_anew(sandbox, plan, arguments))
                costs = {
                    f"{way}, {grouped(records)}, server {number}": medians[way] for way in medians
                }
                figures |= as_figures(costs)
            ratios |= _ratios(found, records)
        print_result("scrub", arguments.pairs * arguments.servers, figures, ratios)


def _records(plan: ScrubPlan) -> int:
    return sum(each.record_count for each in plan.files)


def _compared_anew(
    sandbox: Sandbox, plan: ScrubPlan, arguments: argparse.Namespace
) -> dict[str, Cost]:
    """The median cost of each way on a server that has just been started."""
    sandbox.spark_connect.stop()
    sandbox.up(only=["spark-connect"])
    server = server_at(sandbox.spark_connect.address)
    known = _with_fingerprints(plan, _scrub(server, plan))
    ways: dict[str, Callable[[str], object]] = {
        "plain": lambda _: _plain(server, plan),
        "first": lambda _: _scrub(server, plan),
        "later": lambda _: _scrub(server, known),
    }
    servers = [pid for pid in [sandbox.spark_connect.pid] if pid]
    return in_turn(ways, pairs=arguments.pairs, warm_ups=arguments.warm_ups, servers=servers)


def _ratios(found: list[dict[str, Cost]], records: int) -> dict[str, Bound]:
    ratios: dict[str, Bound] = {}
    for way, aim in AIMS.items():
        speeds = [each["plain"].wall_seconds / each[way].wall_seconds for each in found]
        by_cpu = [each["plain"].cpu_seconds / each[way].cpu_seconds for each in found]
        ratios |= {
            f"{way} speed of plain, {grouped(records)}": Bound(median(speeds), at_least=aim),
            f"{way} by CPU, {grouped(records)}": Bound(median(by_cpu)),
        }
        print(
            f"{way} scrub of {grouped(records)}: its speed against the plain read, by server:"
            f" {', '.join(f'{each:.2f}' for each in speeds)}; at least {aim} is the aim"
            f" (by CPU time {', '.join(f'{each:.2f}' for each in by_cpu)})"
        )
    return ratios


def _plain(server: ConnectServer, plan: ScrubPlan) -> None:
    """What anybody would write to see if two directories hold the same."""
    files = [each.uri for each in plan.files]
    with server.session(str(uuid4()), {}, reads_kafka=False) as spark:
        rows = spark.read.schema(f"topic STRING, {SCHEMA}").parquet(*files)
        hashed = rows.selectExpr(f"xxhash64({COLUMNS}) AS hash")
        [found] = hashed.selectExpr("count(*) AS rows", "sum(hash & 4294967295L) AS low").collect()
    if found["rows"] != _records(plan):
        raise SystemExit(f"{found['rows']} rows read, {_records(plan)} written")


def _scrub(server: ConnectServer, plan: ScrubPlan) -> ScrubResult:
    scrub_id = str(uuid4())
    plan = replace(plan, scrub_id=scrub_id, output=f"{plan.output}-{scrub_id}")
    text = Path(plan.output.removeprefix("file://")).with_suffix(".json")
    text.write_text(plan.to_json())
    order = ScrubOrder("bench", scrub_id, text.as_uri(), plan=plan, written=unwritten)
    result = ConnectRunner(server, {}, timedelta(hours=1)).scrub(order)
    slices = [each for file in result.files for each in file.slices]
    rows = sum(each.fingerprint.record_count for each in slices)
    if rows != _records(plan) or not all(each.has_its_offsets for each in slices):
        raise SystemExit(f"{rows} of {_records(plan)} rows read, or not with their offsets")
    return result


def _with_fingerprints(plan: ScrubPlan, result: ScrubResult) -> ScrubPlan:
    """The plan as it is when the first scrub's fingerprints are on record."""
    taken = {(f.name, s.partition): s.fingerprint for f in result.files for s in f.slices}
    files = (
        replace(
            file,
            slices=tuple(
                replace(each, fingerprint=taken[file.name, each.partition]) for each in file.slices
            ),
        )
        for file in plan.files
    )
    return replace(plan, files=tuple(files))


def _written(
    spark: SparkSession, directory: Path, records: int, arguments: argparse.Namespace
) -> ScrubPlan:
    """A file for each partition. Seeded: the same values at every run."""
    per_file = records // arguments.files
    words = ",".join(
        f"hex(xxhash64(id % {4000 + 97 * each}))" for each in range(arguments.bytes // 17)
    )
    pair = "named_struct('key', concat('h', '{0}'), 'value', cast(hex(id % 977) AS BINARY))"
    headers = ",".join(pair.format(each) for each in range(arguments.headers))
    position, every = f"id % {per_file}", arguments.hole_every
    holes_before = f"({position}) DIV {every - 1}" if every else "0"
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    spark.range(0, per_file * arguments.files, 1, arguments.files).selectExpr(
        "'bench' AS topic",
        "spark_partition_id() AS partition",
        f"{position} + {holes_before} AS offset",
        "timestamp_millis(1793000000000 + id) AS timestamp",
        "0 AS timestamp_type",
        "CAST(NULL AS BINARY) AS key",
        f"CAST(concat_ws(' ', id, {words}) AS BINARY) AS value",
        f"array({headers}) AS headers"
        if headers
        else "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
    ).write.options(**CODEC).parquet(directory.as_uri())
    files = []
    for path in sorted(directory.glob("*.parquet")):
        partition = pq.read_table(path, columns=["partition"])["partition"][0].as_py()
        last = per_file - 1 + ((per_file - 1) // (every - 1) if every else 0)
        holes = range(every - 1, last, every) if every else ()
        whole = ExpectedSlice(partition, 0, last, OffsetRuns.of((at, at + 1) for at in holes))
        files.append(ScrubFile(path.name, path.as_uri(), path.stat().st_size, (whole,)))
    return ScrubPlan("bench", tuple(files), f"{directory.as_uri()}-result", None)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[6_000_000, 24_000_000])
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--headers", type=int, default=0, help="of each record")
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--hole-every", type=int, default=100, help="so many offsets; 0: no holes")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=4, help="of each server")
    parser.add_argument("--warm-ups", type=int, default=6)
    parser.add_argument("--directory", help="where the files lie meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
