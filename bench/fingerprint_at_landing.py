"""What fingerprints would cost in the landing: `.venv/bin/python bench/fingerprint_at_landing.py`.

Starts a Kafka of its own and fills one topic. Then one warm Spark session lands the same records in
turn: as the landing does; with the sums of the row hash observed on the way, over everything and
slice by slice; and with a full read of the written files after it. It prints the medians of CPU and
wall time and their ratios to the plain landing. docs/adr/0012 rests on these figures.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import reduce
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr

from bench import stack
from bench.measured import Bound, as_figures, in_turn, jvm_of, print_environment, print_result
from sandbox.entry.jars import ensure_jars
from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile, ScrubPlan
from tallystick.spark import landing, scrubbing, slice_sums
from tallystick.spark.command import landing_conf
from tallystick.spark.place import SparkPlace
from tallystick.spark.session_settings import session_settings

Until = Mapping[int, int]


def main() -> None:
    """Start, fill, measure, print."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        stack.services(Path(scratch) / "sandbox", ["kafka"]) as sandbox,
    ):
        print_environment()
        servers = sandbox.env()["KAFKA_BOOTSTRAP_SERVERS"]
        until = stack.fill(servers, arguments.records, arguments.bytes, arguments.partitions)
        spark = _session()
        _compare(spark, servers, Path(scratch), until, arguments.rounds)
        spark.stop()


def _compare(spark: SparkSession, servers: str, scratch: Path, until: Until, rounds: int) -> None:
    def land(name: str, watched: Callable[[DataFrame], DataFrame] = lambda rows: rows) -> Path:
        plan = _plan(servers, scratch / name, until)
        with session_settings(spark, landing.SESSION_SETTINGS):
            frames = [landing._read(spark, plan, each) for each in plan.scans]
            rows = watched(reduce(lambda left, right: left.unionAll(right), frames))
            rows.write.options(**landing.writer_options(plan)).parquet(plan.output)
        return scratch / name

    ways: dict[str, Callable[[str], object]] = {
        "as it is": land,
        "observed, one sum": lambda name: land(name, lambda rows: _observed(rows, [])),
        "observed, by slice": lambda name: land(name, lambda rows: _observed(rows, [*until])),
        "read again": lambda name: _read_again(spark, land(name)),
    }
    medians = in_turn(ways, pairs=rounds, servers=[jvm_of(spark)])
    plain = medians["as it is"]
    ratios = {way: Bound(each.cpu_seconds / plain.cpu_seconds) for way, each in medians.items()}
    for way, each in medians.items():
        print(
            f"{way:>20}: {each.cpu_seconds:5.2f} CPU-s (+{100 * (ratios[way].is_ - 1):.0f} %),"
            f" {each.wall_seconds:5.2f} s"
            f" (+{100 * (each.wall_seconds / plain.wall_seconds - 1):.0f} %)"
        )
    print_result("fingerprint_at_landing", rounds, as_figures(medians), ratios)


def _observed(rows: DataFrame, partitions: list[int]) -> DataFrame:
    """The rows, with the fingerprint's sums taken while they pass: of all, or of each partition."""
    sums = {
        f"half{number}": text.rsplit(" AS ", 1)[0] for number, text in enumerate(slice_sums.HALVES)
    } | {"offsets": "offset & 4294967295L", "rows": "1L"}
    placed = rows.selectExpr("*", slice_sums.PLACE.replace("timestamp,", _MICROS, 1))
    over_all = (expr(f"sum({text}) AS {name}") for name, text in sums.items())
    by_slice = (
        expr(f"sum(if(partition = {each}, {text}, 0L)) AS {name}_{each}")
        for each in partitions
        for name, text in sums.items()
    )
    return placed.observe(Observation(), *(by_slice if partitions else over_all)).drop("place")


_MICROS = "unix_micros(timestamp),"


def _read_again(spark: SparkSession, directory: Path) -> None:
    files = tuple(
        ScrubFile(each.name, each.as_uri(), each.stat().st_size, (_slice_of(each),))
        for each in sorted(directory.glob("*.parquet"))
    )
    result = scrubbing.scrub(spark, ScrubPlan("bench", files, "", None))
    if not all(each.has_its_offsets for file in result.files for each in file.slices):
        raise SystemExit(f"not what was landed: {result}")


def _slice_of(path: Path) -> ExpectedSlice:
    """A landed file here holds one partition, in the order of the log."""
    rows = pq.read_table(path, columns=["partition", "offset"])
    offsets = rows["offset"]
    whole = (offsets[0].as_py(), offsets[-1].as_py())
    return ExpectedSlice(rows["partition"][0].as_py(), *whole, OffsetRuns())


def _plan(servers: str, output: Path, until: Until) -> LandingPlan:
    ranges = tuple(OffsetRange(TopicPartition(stack.TOPIC, p), 0, u) for p, u in until.items())
    return LandingPlan(
        batch_id="bench",
        attempt_id=output.name,
        topic=stack.TOPIC,
        isolation=Isolation.READ_COMMITTED,
        scans=(Scan(ranges, None, len(ranges)),),
        output=output.as_uri(),
        kafka_options={"kafka.bootstrap.servers": servers},
        compression="zstd",
        compression_level=1,
        replication=None,
        leader_epochs={},
    )


def _session() -> SparkSession:
    jars = ",".join(str(each) for each in sorted(ensure_jars("spark-kafka").glob("*.jar")))
    place = SparkPlace("local[2,4]")
    builder = SparkSession.builder.master(place.master).config("spark.driver.memory", "3g")
    wraps = {"spark.sql.ansi.enabled": "false"}
    for name, value in (landing_conf(place, {}) | wraps | {"spark.jars": jars}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", help="where Kafka and the files lie meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
