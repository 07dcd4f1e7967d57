"""The scrub as a real spark-submit over real HDFS: its result, and its failures."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import requests

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import (
    NOTHING,
    BoundedRuns,
    ExpectedSlice,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
)
from tallystick.errors import ScrubFailed
from tallystick.ports.spark_runner import ScrubOrder
from tallystick.spark.submit_runner import SubmitRunner
from tests.support.landed_files import names_in, put
from tests.support.landed_rows import a_row, damage, fingerprint_of, write
from tests.support.sandbox_fixtures import HdfsPlace
from tests.support.scripted_scrub import unwritten
from tests.support.spark_place import APPLICATION, PLACE


def runner() -> SubmitRunner:
    return SubmitRunner(PLACE, application=APPLICATION, feed_conf={}, kafka_secrets={"a": "s3cr3t"})


def ordered(hdfs: HdfsPlace, plan: ScrubPlan) -> ScrubOrder:
    """The order for a plan that lies beside its output directory."""
    path = f"{plan.output.removeprefix(hdfs.hdfs_url).removesuffix('/result')}/scrub.json"
    put(hdfs.webhdfs_url, path, plan.to_json().encode(), hdfs.user)
    return ScrubOrder(
        "orders",
        plan.scrub_id,
        f"{hdfs.hdfs_url}{path}",
        plan=plan,
        written=partial(result_of, hdfs, plan),
    )


def landed(hdfs: HdfsPlace, path: Path, directory: str, last_offset: int) -> ScrubFile:
    target = f"{directory}/{path.name}"
    put(hdfs.webhdfs_url, target, path.read_bytes(), hdfs.user)
    whole = ExpectedSlice(0, 0, last_offset, OffsetRuns())
    return ScrubFile(path.name, f"{hdfs.hdfs_url}{target}", path.stat().st_size, (whole,))


def result_of(hdfs: HdfsPlace, plan: ScrubPlan) -> ScrubResult:
    directory = plan.output.removeprefix(hdfs.hdfs_url)
    [name] = names_in(hdfs.webhdfs_url, directory)
    answer = requests.get(f"{hdfs.webhdfs_url}/webhdfs/v1{directory}/{name}?op=OPEN", timeout=60)
    answer.raise_for_status()
    return ScrubResult.from_json(answer.text)


def test_files_in_hdfs_are_read_in_full_and_a_flipped_byte_is_named(
    hdfs: HdfsPlace, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tallystick")
    rows = [a_row(each, value=b"%d" % each) for each in range(1000)]
    root = f"/scrub/{uuid4().hex}"
    directory = f"{root}/orders/gen=1/dt=2026-11-01/hour=12/batch=0123456789abcdef"
    flipped = write(tmp_path / "flipped.parquet", rows)
    damage(flipped, "value")
    files = (
        landed(hdfs, write(tmp_path / "whole.parquet", rows), directory, 999),
        landed(hdfs, flipped, directory, 999),
        landed(hdfs, write(tmp_path / "short.parquet", rows[:-2]), directory, 999),
    )
    plan = ScrubPlan("s1", files, f"{hdfs.hdfs_url}{root}/_scrub/orders/s1/result", 1)

    whole, bad, short = runner().scrub(ordered(hdfs, plan)).files

    assert [(each.fingerprint, each.missing) for each in whole.slices] == [
        (fingerprint_of(rows), NOTHING)
    ]
    assert bad.is_damaged
    assert "CRC checksum verification failed" in (bad.failure or "")
    [cut] = short.slices
    assert cut.missing == BoundedRuns.of(OffsetRuns.of([(998, 1000)]))
    assert cut.fingerprint == fingerprint_of(rows[:-2])
    said = [each.getMessage() for each in caplog.records if "tallystick: " in each.getMessage()]
    assert said[1:] == [
        f"tallystick: reading 3 files of {sum(each.length_bytes for each in files)} bytes in full:"
        " scrub s1",
        "tallystick: scrubbed 2 files, 1 could not be read",
    ]
    assert "s3cr3t" not in caplog.text


def test_a_scrub_that_fails_is_told_in_one_line(hdfs: HdfsPlace) -> None:
    nowhere = f"{hdfs.hdfs_url}/nowhere"
    plan = ScrubPlan("s2", (), f"{nowhere}/result", None)
    order = ScrubOrder("orders", "s2", f"{nowhere}/scrub.json", plan=plan, written=unwritten)

    with pytest.raises(ScrubFailed) as failed:
        runner().scrub(order)

    text = failed.value.describe()
    assert text.startswith("scrub s2: Spark application local-")
    assert "PATH_NOT_FOUND" in text
    assert "\n" not in text
    assert failed.value.retry


def test_a_scrub_that_never_starts_says_why() -> None:
    plan = ScrubPlan("s3", (), "hdfs://127.0.0.1:1/result", None)
    nowhere = SubmitRunner(
        replace(PLACE, master="nowhere"), application=APPLICATION, feed_conf={}, kafka_secrets={}
    )
    with pytest.raises(ScrubFailed, match=r"\(none was started\) failed: .*Master must"):
        nowhere.scrub(
            ScrubOrder(
                "orders", "s3", "hdfs://127.0.0.1:1/scrub.json", plan=plan, written=unwritten
            )
        )
