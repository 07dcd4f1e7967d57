"""The task that lands: what it does when its Spark application hangs, and when it runs a second."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.errors import ApplicationOverdue
from tallystick.ports.spark_runner import LandingOrder
from tallystick.settings.feed import SparkSettings
from tests.orchestration.test_connections import CONNECTIONS
from tests.support.story import a_feed

LAND = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/plan.json", plan_text="{}")
SEARCH = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/search.json", plan_text="{}")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `submit` is what spark-submit does; it writes what it was told first."""
    for name, found in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", found)
    program = tmp_path / "spark-submit"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/told\npwd >> {tmp_path}/told\n'
        'echo "tallystick: note about to read"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def runner(longest: timedelta) -> Any:
    from tallystick.orchestration.land_operator import LandOperator, _OperatorRunner

    feed = a_feed().model_copy(update={"spark": SparkSettings(max_application_time=longest)})
    return _OperatorRunner(LandOperator(task_id="land", feed=feed, batch_id="batch1"), {})


def test_a_landing_that_hangs_is_ended_and_its_task_fails_with_an_error_of_its_own(
    place: Path,
) -> None:
    program = place / "spark-submit"
    program.write_text(f"{program.read_text()}echo 'tallystick: application app-1'\nexec sleep 600")

    with pytest.raises(ApplicationOverdue, match="batch batch1: Spark application app-1") as caught:
        runner(timedelta(seconds=2)).run(LAND, started=lambda _: None)

    assert caught.value.retry


def test_each_application_of_a_task_is_told_its_own_plan(place: Path) -> None:
    spark = runner(timedelta(minutes=1))

    spark.run(LAND, started=lambda _: None)
    notes: list[str] = []
    spark.search(SEARCH, noted=notes.append)

    first, one, second, other = (place / "told").read_text().splitlines()
    assert first.endswith("spark_jobs/land.py hdfs://nn/plan.json")
    assert second.endswith("spark_jobs/search.py hdfs://nn/search.json")
    assert one != other
    assert notes == ["about to read"]
