"""When spark-submit's runner tells that an application has begun to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.errors import ApplicationFailed
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner

ORDER = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/plan.json", plan_text="{}")
NAMED = "echo 'tallystick: application app-1'"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param(f"{NAMED}; kill -9 $$", ["app-1"], id="it dies without a word: it may have"),
        pytest.param(
            f"{NAMED}; echo 'tallystick: landing failed: no broker'; exit 1", [], id="it says why"
        ),
        pytest.param(
            f"{NAMED}; echo 'tallystick: reading';"
            " echo 'tallystick: landing failed: Task 0 in stage 1.0 failed'; exit 1",
            ["app-1"],
            id="it has told that it reads, once",
        ),
        pytest.param("kill -9 $$", [], id="it dies before it has a name"),
        pytest.param(
            "echo 'INFO Client: Submitted application application_17_0001'; exit 1",
            [],
            id="YARN has named it, and its driver never was",
        ),
    ],
)
def test_an_application_counts_once_it_reads_or_dies_without_a_word(
    tmp_path: Path, script: str, told: list[str]
) -> None:
    program = tmp_path / "spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    runner = SubmitRunner(
        SparkPlace("local[1]", spark_submit=str(program)),
        application=tmp_path / "land.py",
        feed_conf={},
        kafka_secrets={},
    )
    heard: list[str] = []

    with pytest.raises(ApplicationFailed):
        runner.run(ORDER, started=heard.append)

    assert heard == told
