"""A jar that the Spark connection names and that is not there is told before Spark is started."""

from pathlib import Path

import pytest

from tallystick.errors import ConfigurationError
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner, require_jars


def test_jars_that_are_there_or_elsewhere_are_taken(tmp_path: Path) -> None:
    jar = tmp_path / "my jars" / "connector.jar"
    jar.parent.mkdir()
    jar.touch()
    elsewhere = ("local:///opt/connector.jar", "hdfs://nn/connector.jar", "https://x/c.jar")

    require_jars(SparkPlace("yarn", jars=(str(jar), jar.as_uri(), f"{tmp_path}/*/*", *elsewhere)))


def test_a_missing_jar_is_told_by_its_name_and_nothing_is_started(tmp_path: Path) -> None:
    missing = (str(tmp_path / "connector.jar"), f"{tmp_path}/*.jar", "file:/no/such.jar", "a.jar")
    place = SparkPlace("local[1]", jars=missing, spark_submit="/bin/false")
    runner = SubmitRunner(place, application=tmp_path, feed_conf={}, kafka_secrets={})
    order = LandingOrder("orders", "b" * 32, "a" * 32, "hdfs://nn/plan.json", plan_text="{}")

    with pytest.raises(ConfigurationError, match="extra jars is") as told:
        runner.run(order, started=lambda _: pytest.fail("it began"))

    assert told.value.value == ", ".join(missing)
    assert "./tallystick sandbox up" in str(told.value)
