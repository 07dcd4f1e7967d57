"""What a landing costs beside what people would pick instead.

`.venv/bin/python bench/throughput.py`, after `./tallystick` set up. Starts a Kafka, an HDFS, a
ledger and a Spark Connect server of its own and fills one topic. Then the same records are landed
in turn: by Tallystick from plan to published, on the warm server and by spark-submit, in this
process and as a whole command; by spark-submit of what somebody without Tallystick would write
(`other_ways.py`); and by one process without Spark and without proof (`ceiling.py`). It prints each
round and the medians, and ends with one line of JSON. Nothing else should run on the machine
meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

import yaml

from bench import stack
from bench.measured import ROOT, Bound, Cost, as_figures, in_turn, print_environment, print_result
from sandbox.connections import SPARK_MASTER
from sandbox.entry.class_archive import OPTIONS
from sandbox.entry.jars import direct_jars, ensure_jars
from sandbox.entry.layout import SPARK_LOGGING

OTHER_WAYS = ("plain", "tuned", "streaming", "iceberg")
WARM, COLD = "spark_default", "spark_submit"


def main() -> None:
    """Start, fill, measure, print."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=arguments.directory) as scratch,
        stack.services(Path(scratch), ["kafka", "hdfs", "postgres", "spark-connect"]) as sandbox,
    ):
        print_environment()
        environ = stack.variables(sandbox)
        until = stack.fill(
            environ["KAFKA_BOOTSTRAP_SERVERS"],
            arguments.records,
            arguments.bytes,
            arguments.partitions,
        )
        ways = _ways(environ, until, Path(scratch))
        for number in range(arguments.landings_before):
            ways["warm"](f"before-{number}")
        chosen = {way: ways[way] for way in ways if way in arguments.ways}
        servers = [pid for pid in [sandbox.spark_connect.pid] if pid is not None]
        medians = in_turn(
            chosen, pairs=arguments.pairs, warm_ups=arguments.warm_ups, servers=servers
        )
    _tell(medians, arguments)


def _ways(
    environ: Mapping[str, str], until: Mapping[int, int], scratch: Path
) -> dict[str, Callable[[str], object]]:
    records = sum(until.values())
    offsets = json.dumps({str(each): end for each, end in until.items()})
    source = [environ["KAFKA_BOOTSTRAP_SERVERS"], stack.TOPIC, offsets]
    ways: dict[str, Callable[[str], object]] = {
        "warm": lambda name: stack.land(f"warm-{name}", environ, records, WARM),
        "cold": lambda name: stack.land(f"cold-{name}", environ, records, COLD),
        "warm command": lambda name: command(f"whole-{name}", environ, WARM, scratch),
        "cold command": lambda name: command(f"cold-whole-{name}", environ, COLD, scratch),
        "ceiling": lambda name: _ceiling(source, scratch / name),
    }
    for way in OTHER_WAYS:
        ways[way] = partial(_submitted, way, source, environ["HDFS_URL"])
    return ways


def _submitted(way: str, source: Sequence[str], hdfs: str, name: str) -> None:
    jars = direct_jars("spark-kafka")
    argv = ["spark-submit", "--master", SPARK_MASTER, "--conf", "spark.ui.enabled=false"]
    if way == "iceberg":
        jars += ensure_jars("iceberg").glob("*.jar")
        catalog = "spark.sql.catalog.lake"
        for key, value in {
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.type": "hadoop",
            f"{catalog}.warehouse": f"{hdfs}/lake",
        }.items():
            argv += ["--conf", f"{key}={value}"]
    argv += ["--jars", ",".join(str(each) for each in jars)]
    argv += [str(ROOT / "bench" / "other_ways.py"), way, *source, f"{hdfs}/{way}-{name}"]
    # Spark as it comes, but for how much it logs.
    here = {"SPARK_CONF_DIR": str(SPARK_LOGGING.parent), OPTIONS: ""}
    _run(argv, {**os.environ, **here})


def command(name: str, environ: Mapping[str, str], connection: str, scratch: Path) -> None:
    """`./tallystick land NAME`, with a folder of feeds that holds this one alone."""
    folder = scratch / "feeds" / name
    folder.mkdir(parents=True)
    document = stack.feed_document(name, connection)
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    variables = {**os.environ, **environ, "TALLYSTICK_FEEDS": str(folder)}
    _run([str(ROOT / "tallystick"), "land", name], variables)


def _ceiling(source: Sequence[str], directory: Path) -> None:
    directory.mkdir()
    _run([sys.executable, str(ROOT / "bench" / "ceiling.py"), *source, str(directory)], os.environ)


def _run(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def _tell(medians: Mapping[str, Cost], arguments: argparse.Namespace) -> None:
    for way, cost in medians.items():
        print(
            f"{way:>14}: {cost.wall_seconds:6.2f} s, {cost.cpu_seconds:6.2f} CPU-s,"
            f" {arguments.records / cost.cpu_seconds:,.0f} records per CPU-second"
        )
    bounds = {
        "warm wall of plain": ("warm", "plain", "wall_seconds", 0.28),
        "warm CPU of plain": ("warm", "plain", "cpu_seconds", 0.27),
        "warm command wall of plain": ("warm command", "plain", "wall_seconds", 0.33),
        "warm command CPU of plain": ("warm command", "plain", "cpu_seconds", 0.30),
        "cold wall of plain": ("cold", "plain", "wall_seconds", 0.80),
    }
    ratios = {
        name: Bound(getattr(medians[ours], kind) / getattr(medians[theirs], kind), at_most=aim)
        for name, (ours, theirs, kind, aim) in bounds.items()
        if ours in medians and theirs in medians
    }
    if "warm" in medians and "ceiling" in medians:
        speed = medians["ceiling"].cpu_seconds / medians["warm"].cpu_seconds
        ratios["warm speed per CPU-second of the ceiling"] = Bound(speed, at_least=0.6)
    if "warm" in medians:
        share = medians["warm"].own_cpu_seconds / medians["warm"].cpu_seconds
        ratios["CPU outside Spark of warm"] = Bound(share)
    for name, bound in ratios.items():
        print(f"{name}: {bound.as_fields()}")
    figures = {
        "records": arguments.records,
        "bytes": arguments.bytes,
        "partitions": arguments.partitions,
    }
    print_result("throughput", arguments.pairs, figures | as_figures(medians), ratios)


def _arguments() -> argparse.Namespace:
    every = ("warm", "cold", "warm command", "cold command", "ceiling", *OTHER_WAYS)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--warm-ups", type=int, default=1)
    parser.add_argument(
        "--landings-before", type=int, default=5, help="by the server, before anything counts"
    )
    parser.add_argument("--ways", nargs="+", choices=every, default=every)
    parser.add_argument("--directory", help="where the services keep their data meanwhile")
    return parser.parse_args()


if __name__ == "__main__":
    main()
