"""The same scrubbing function on a Spark Connect server: the second way stays open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import BoundedRuns, ExpectedSlice, ScrubFile, ScrubPlan, ScrubResult
from tallystick.spark.cluster_zip import write_cluster_zip
from tests.support.landed_rows import a_row, damaged, fingerprint_of, page_bytes, write

pytestmark = pytest.mark.integration

# A process of its own: one process never has both a regular session and a remote one.
CLIENT = """
import sys
from pyspark.sql import SparkSession
from tallystick.domain.scrub import ScrubPlan
from tallystick.spark.scrubbing import SESSION_SETTINGS, scrub, write_result
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
before = {name: spark.conf.get(name, None) for name in SESSION_SETTINGS}
plan = ScrubPlan.from_json(sys.stdin.read())
write_result(spark, plan, scrub(spark, plan))
assert {name: spark.conf.get(name, None) for name in SESSION_SETTINGS} == before
spark.stop()
"""


def test_the_scrubbing_function_runs_on_a_connect_server(
    connect_server: str, tmp_path: Path
) -> None:
    rows = [a_row(each, headers=[("a", None), ("b", b"%d" % each)]) for each in range(300)]
    paths = [
        write(tmp_path / "whole.parquet", rows),
        write(tmp_path / "doubled.parquet", [*rows, rows[7]]),
        write(tmp_path / "flipped.parquet", rows),
    ]
    damaged(paths[2], page_bytes(paths[2], "offset"))
    whole = (ExpectedSlice(0, 0, 299, OffsetRuns()),)
    files = tuple(ScrubFile(p.name, f"file://{p}", p.stat().st_size, whole) for p in paths)
    plan = ScrubPlan("s", files, (tmp_path / "result").as_uri(), None)
    archive = tmp_path / "tallystick.zip"
    write_cluster_zip(archive)  # and the function needs nothing but what travels

    done = subprocess.run(
        [sys.executable, "-c", CLIENT, connect_server],
        input=plan.to_json(),
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    [written] = [each for each in (tmp_path / "result").iterdir() if each.name[0] != "."]
    result = ScrubResult.from_json(written.read_text())
    assert [len(each.slices) for each in result.files] == [1, 1, 0]
    sound, doubled = (each.slices[0] for each in result.files[:2])
    assert sound.fingerprint == fingerprint_of(rows)
    assert sound.has_its_offsets
    assert doubled.doubled == BoundedRuns.of(OffsetRuns.of([(7, 8)]))
    assert result.files[2].failure
