"""How long an application of spark-submit may outlive the process that started it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import longest_orphan

HOURS = timedelta(hours=6)


@pytest.mark.parametrize(("mode", "longest"), [("client", timedelta(0)), ("cluster", HOURS)])
def test_a_driver_outlives_its_spark_submit_in_cluster_mode_alone(
    mode: str, longest: timedelta
) -> None:
    assert longest_orphan(SparkPlace("yarn", deploy_mode=mode), HOURS) == longest
