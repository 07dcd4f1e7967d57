"""How fast a scrub reads: `.venv/bin/python bench/scrub.py`, after `./tallystick` set up.

Writes files with the landed schema once, in a temporary directory. Then one warm Spark session
reads them in turn by a plain count and hash over all columns, and by the scrubbing function:
fingerprints, exact offsets, page checksums verified; once without, and once with the fingerprints
of an earlier scrub. It prints each pair, the medians and their ratios; the aim is 80 % of the plain
one's speed. Nothing else should run on the machine meanwhile. `--hole-every 100` writes offsets as
a transactional topic has them, with a marker behind every 99 records.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import pyarrow.parquet as pq
from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession

from sandbox.entry.system import ensure_java
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile, ScrubPlan, ScrubResult
from tallystick.spark.command import landing_conf
from tallystick.spark.place import SparkPlace
from tallystick.spark.scrubbing import scrub
from tallystick.spark.slice_sums import SCHEMA

AIM = 0.80
CODEC = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
COLUMNS = "topic, partition, offset, timestamp, timestamp_type, key, value, headers"


def main() -> None:
    """Write, measure, print."""
    arguments = _arguments()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["JAVA_HOME"] = str(ensure_java())
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch:
        spark = _session()
        _print_environment()
        plan = _written(spark, Path(scratch) / "data", arguments)
        size = sum(each.length_bytes for each in plan.files)
        print(
            f"{arguments.records:,} records of {arguments.bytes} bytes with {arguments.headers}"
            f" headers in {len(plan.files)} files, {size / 1e6:.0f} MB"
        )
        _compare(spark, plan, arguments)
        spark.stop()


def _compare(spark: SparkSession, plan: ScrubPlan, arguments: argparse.Namespace) -> None:
    known = _with_fingerprints(plan, _scrub(spark, plan, arguments.records))
    ways: dict[str, Callable[[], object]] = {
        "plain": lambda: _plain(spark, plan, arguments.records),
        "first": lambda: _scrub(spark, plan, arguments.records),
        "later": lambda: _scrub(spark, known, arguments.records),
    }
    jvm = _jvm_of(spark)
    walls: dict[str, list[float]] = {way: [] for way in ways}
    cpus: dict[str, list[float]] = {way: [] for way in ways}
    for pair in range(arguments.pairs + arguments.warm_ups):
        for way in list(ways) if pair % 2 else reversed(ways):
            wall_before, cpu_before = time.perf_counter(), _cpu_seconds(jvm)
            ways[way]()
            walls[way].append(time.perf_counter() - wall_before)
            cpus[way].append(_cpu_seconds(jvm) - cpu_before)
        label = "warm-up" if pair < arguments.warm_ups else f"pair {pair - arguments.warm_ups + 1}"
        costs = ", ".join(f"{w} {walls[w][-1]:.2f} s {cpus[w][-1]:.2f} CPU-s" for w in ways)
        print(f"{label:>8}: {costs}, load {os.getloadavg()[0]:.1f}", flush=True)
    wall, cpu = (
        {way: statistics.median(taken[way][arguments.warm_ups :]) for way in ways}
        for taken in (walls, cpus)
    )
    print(f"median of {arguments.pairs}: plain {wall['plain']:.2f} s, {cpu['plain']:.2f} CPU-s")
    for way in ("first", "later"):
        print(
            f"{way} scrub: {wall[way]:.2f} s, {cpu[way]:.2f} CPU-s,"
            f" {arguments.records / wall[way] / 1e6:.2f} million rows a second;"
            f" its speed against the plain read: {wall['plain'] / wall[way]:.2f}"
            f" (by CPU time {cpu['plain'] / cpu[way]:.2f})"
        )
    print(f"the aim is at least {AIM}")


def _plain(spark: SparkSession, plan: ScrubPlan, records: int) -> None:
    """What anybody would write to see if two directories hold the same."""
    rows = spark.read.schema(f"topic STRING, {SCHEMA}").parquet(*(each.uri for each in plan.files))
    hashed = rows.selectExpr(f"xxhash64({COLUMNS}) AS hash")
    [found] = hashed.selectExpr("count(*) AS rows", "sum(hash & 4294967295L) AS low").collect()
    if found["rows"] != records:
        raise SystemExit(f"{found['rows']} rows read, {records} written")


def _scrub(spark: SparkSession, plan: ScrubPlan, records: int) -> ScrubResult:
    result = scrub(spark, plan)
    slices = [each for file in result.files for each in file.slices]
    rows = sum(each.fingerprint.record_count for each in slices)
    if rows != records or not all(each.has_its_offsets for each in slices):
        raise SystemExit(f"{rows} of {records} rows read, or not with their offsets")
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


def _written(spark: SparkSession, directory: Path, arguments: argparse.Namespace) -> ScrubPlan:
    """A file for each partition. Seeded: the same values at every run."""
    per_file = arguments.records // arguments.files
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
    arguments.records = per_file * arguments.files
    files = []
    for path in sorted(directory.glob("*.parquet")):
        partition = pq.read_table(path, columns=["partition"])["partition"][0].as_py()
        last = per_file - 1 + ((per_file - 1) // (every - 1) if every else 0)
        holes = range(every - 1, last, every) if every else ()
        whole = ExpectedSlice(partition, 0, last, OffsetRuns.of((at, at + 1) for at in holes))
        files.append(ScrubFile(path.name, path.as_uri(), path.stat().st_size, (whole,)))
    return ScrubPlan("bench", tuple(files), f"{directory.as_uri()}-result", None)


def _session() -> SparkSession:
    place = SparkPlace("local[2,4]")
    builder = SparkSession.builder.master(place.master).config("spark.driver.memory", "3g")
    for name, value in landing_conf(place, {}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _jvm_of(spark: SparkSession) -> int:
    gateway: Any = spark.sparkContext._jvm
    return int(gateway.java.lang.ProcessHandle.current().pid())


def _cpu_seconds(process: int) -> float:
    """User and system time of the JVM, as Linux counts it."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    ticks: Sequence[str] = fields[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _print_environment() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {os.cpu_count()} cores, {memory:.0f} GiB,"
        f" load {os.getloadavg()[0]:.1f}; {platform.platform()};"
        f" Python {platform.python_version()}, Spark {pyspark_version}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=6_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--headers", type=int, default=0, help="of each record")
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--hole-every", type=int, default=0, help="so many offsets; 0: no holes")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=2)
    parser.add_argument("--directory", help="where the files lie meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
