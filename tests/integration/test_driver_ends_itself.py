"""A driver that nobody can end from here ends itself, and its JVM with it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.errors import ApplicationFailed
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.application import LONGEST_SECONDS
from tallystick.spark.submit_runner import SubmitRunner
from tests.support.spark_place import PLACE

HANGS = """
import time
from tallystick.spark.application import run

run("landing", lambda spark, text: time.sleep(600))
"""


def test_a_driver_that_has_its_time_ends_although_its_work_hangs(tmp_path: Path) -> None:
    application, plan = tmp_path / "land.py", tmp_path / "plan.json"
    application.write_text(HANGS)
    plan.write_text("{}")
    place = replace(PLACE, conf={**PLACE.conf, LONGEST_SECONDS: "2"})
    runner = SubmitRunner(place, application=application, feed_conf={}, kafka_secrets={})
    order = LandingOrder("orders", "batch1", "attempt1", plan.as_uri(), plan_text="{}")
    begun = time.monotonic()

    with pytest.raises(ApplicationFailed, match=r"has run for 2.0 seconds, and ends itself"):
        runner.run(order, started=lambda _: None)

    assert time.monotonic() - begun < 120
