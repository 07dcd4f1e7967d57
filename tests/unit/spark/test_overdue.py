"""An application that runs for too long is ended, and said so."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.rows.scrub import ScrubPlan
from tallystick.errors import ApplicationFailed, ApplicationOverdue
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.spark import submit_runner
from tallystick.spark.command import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner
from tests.support.scripted_scrub import unwritten

ORDER = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/plan.json", plan_text="{}")


def runner(tmp_path: Path, script: str, *, longest: float) -> SubmitRunner:
    """A runner whose spark-submit is this script; it writes its process id first."""
    program = tmp_path / "spark-submit"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{script}\n")
    program.chmod(0o755)
    return SubmitRunner(
        SparkPlace("local[1]", spark_submit=str(program)),
        application=tmp_path / "land.py",
        feed_conf={},
        kafka_secrets={},
        longest=timedelta(seconds=longest),
    )


def is_alive(tmp_path: Path) -> bool:
    try:
        os.kill(int((tmp_path / "pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


HANGS = "echo 'tallystick: application app-1'; sleep 600"


def test_a_landing_that_hangs_is_ended_and_fails_with_an_error_of_its_own(tmp_path: Path) -> None:
    hanging = runner(tmp_path, HANGS, longest=2.5)
    begun = time.monotonic()

    with pytest.raises(ApplicationOverdue) as caught:
        hanging.run(ORDER, started=lambda _: None)

    assert time.monotonic() - begun < 30
    assert not is_alive(tmp_path)
    assert "batch batch1: Spark application app-1 ran for longer than 0:00:02.5" in str(
        caught.value
    )
    assert caught.value.retry


def test_a_search_and_a_scrub_that_hang_are_ended_too(tmp_path: Path) -> None:
    hanging = runner(tmp_path, HANGS, longest=2.5)
    plan = ScrubPlan("scrub1", (), "hdfs://nn/result", None)

    with pytest.raises(ApplicationOverdue, match="batch batch1"):
        hanging.search(ORDER, noted=lambda _: None)
    with pytest.raises(ApplicationOverdue, match="scrub scrub1"):
        hanging.scrub(
            ScrubOrder("orders", "scrub1", "hdfs://nn/scrub.json", plan=plan, written=unwritten)
        )


NOTE = "echo 'tallystick: note {}'; sleep 1"


def test_a_read_of_a_search_that_hangs_is_ended_long_before_a_landing_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit_runner, "LONGEST_READ", timedelta(seconds=6))
    notes: list[str] = []
    # Each of the reads is quick enough; the last one hangs.
    script = "; ".join([*(NOTE.format(each) for each in range(4)), HANGS])

    with pytest.raises(ApplicationOverdue, match=r"longer than 0:00:06"):
        runner(tmp_path, script, longest=600).search(ORDER, noted=notes.append)

    assert notes == ["0", "1", "2", "3"]
    assert not is_alive(tmp_path)


def test_an_application_that_fails_in_time_has_failed(tmp_path: Path) -> None:
    with pytest.raises(ApplicationFailed, match="exit code 3"):
        runner(tmp_path, "exit 3", longest=60).run(ORDER, started=lambda _: None)


def test_an_application_that_ends_in_time_is_well(tmp_path: Path) -> None:
    runner(tmp_path, "exit 0", longest=60).run(ORDER, started=lambda _: None)


def test_each_application_of_a_runner_is_told_its_own_plan_in_a_directory_of_its_own(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    one = runner(tmp_path, f'echo "$@" >> {told}; pwd >> {told}', longest=60)

    one.run(ORDER, started=lambda _: None)
    one.search(replace(ORDER, plan_uri="hdfs://nn/search.json"), noted=lambda _: None)

    landed, here, searched, there = told.read_text().splitlines()
    assert landed.endswith("land.py hdfs://nn/plan.json")
    assert searched.endswith("search.py hdfs://nn/search.json")
    assert here != there
