"""How fast a scrub reads: `.venv/bin/python bench/scrub.py`, after `./tallystick` set up.

Writes files with the landed schema once, in a temporary directory. Then one warm Spark session
reads them in turn by a plain count and hash over all columns, and by the scrubbing function:
fingerprints, exact offsets, page checksums verified; once without, and once with the fingerprints
of an earlier scrub. It prints each pair, the medians and their ratios. The aim is 80 % of the plain
one's speed for a first scrub, 90 % for later ones. Nothing else should run on the machine
meanwhile. `--hole-every 100` writes offsets as a transactional topic has them, with a marker behind
every 99 records.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.measured import Bound, as_figures, in_turn, jvm_of, print_environment, print_result
from sandbox.entry.system import ensure_java
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile, ScrubPlan, ScrubResult
from tallystick.spark.command import landing_conf
from tallystick.spark.place import SparkPlace
from tallystick.spark.scrubbing import scrub
from tallystick.spark.slice_sums import SCHEMA

# Of the plain read's speed. "later" has the fingerprints of an earlier scrub.
AIMS = {"first": 0.8, "later": 0.9}
CODEC = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
COLUMNS = "topic, partition, offset, timestamp, timestamp_type, key, value, headers"


def main() -> None:
    """Write, measure, print."""
    arguments = _arguments()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["JAVA_HOME"] = str(ensure_java())
    with tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch:
        spark = _session()
        print_environment()
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
    ways: dict[str, Callable[[str], object]] = {
        "plain": lambda _: _plain(spark, plan, arguments.records),
        "first": lambda _: _scrub(spark, plan, arguments.records),
        "later": lambda _: _scrub(spark, known, arguments.records),
    }
    medians = in_turn(
        ways, pairs=arguments.pairs, warm_ups=arguments.warm_ups, servers=[jvm_of(spark)]
    )
    plain = medians["plain"]
    ratios: dict[str, Bound] = {}
    for way, aim in AIMS.items():
        wall, cpu = medians[way].wall_seconds, medians[way].cpu_seconds
        speed = Bound(plain.wall_seconds / wall, at_least=aim)
        ratios |= {f"{way} speed of plain": speed, f"{way} by CPU": Bound(plain.cpu_seconds / cpu)}
        print(
            f"{way} scrub: {wall:.2f} s, {cpu:.2f} CPU-s,"
            f" {arguments.records / wall / 1e6:.2f} million rows a second;"
            f" its speed against the plain read: {speed.is_:.2f}, at least {aim} is the aim"
            f" (by CPU time {plain.cpu_seconds / cpu:.2f})"
        )
    figures = {"records": arguments.records, "hole_every": arguments.hole_every}
    print_result("scrub", arguments.pairs, figures | as_figures(medians), ratios)


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
