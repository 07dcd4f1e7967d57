"""How long an application of spark-submit may outlive the process that started it."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import longest_orphan

HOURS = timedelta(hours=6)


@pytest.mark.parametrize(("mode", "longest"), [("client", timedelta(0)), ("cluster", HOURS)])
def test_a_driver_outlives_its_spark_submit_in_cluster_mode_alone(
    mode: str, longest: timedelta
) -> None:
    assert longest_orphan(SparkPlace("yarn", deploy_mode=mode), HOURS) == longest


HANGS = """
import time
from tallystick.spark.application import end_after

end_after(0.5, "landing")
time.sleep(600)
"""


def test_a_driver_that_hangs_ends_itself() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HANGS],
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[3] / "plugins")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "landing failed: the application has run for 0.5 seconds" in ended.stdout
