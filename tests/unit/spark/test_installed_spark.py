"""Another Spark than the connector is made for is told before anything is planned."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tallystick.errors import ConfigurationError
from tallystick.spark.installed_spark import require_spark
from tallystick.spark.place import SparkPlace
from tests.support.spark_place import PLACE

CONNECTOR = "/jars/spark-sql-kafka-0-10_2.13-4.0.0.jar"
PLACE_OF_4_0 = SparkPlace("local[1]", jars=("/jars/kafka-clients-3.9.0.jar", CONNECTOR))


def spark(folder: Path, core: str) -> Path:
    """A Spark's home with a program and a jar of this name."""
    for name in ("bin/spark-submit", f"jars/{core}"):
        file = folder / name
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)
    return folder


def refusal(place: SparkPlace, **environ: str) -> str:
    with pytest.raises(ConfigurationError) as told:
        require_spark(place, environ, where="connection c")
    return str(told.value)


def test_another_spark_on_path_or_in_spark_home_is_named_with_what_is_needed(
    tmp_path: Path,
) -> None:
    old = spark(tmp_path, "spark-core_2.12-3.5.9.jar")

    for environ in ({"PATH": f"{old}/bin"}, {"SPARK_HOME": str(old), "PATH": "/nowhere"}):
        told = refusal(PLACE_OF_4_0, **environ)
        assert f"the version of Spark is '3.5 with Scala 2.12 in {old}/jars'" in told
        assert "accepted: 4.0 with Scala 2.13" in told


def test_pythons_own_spark_is_found_beside_its_script(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "spark-submit"
    jars = tmp_path / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars"
    for file in (program, jars / "spark-core_2.13-4.1.1.jar"):
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)

    assert "4.1 with Scala 2.13" in refusal(PLACE_OF_4_0, PATH=str(program.parent))


def test_the_right_one_and_one_that_does_not_show_its_version_pass(tmp_path: Path) -> None:
    right = spark(tmp_path / "right", "spark-core_2.13-4.0.4.jar")
    for environ in ({"PATH": f"{right}/bin"}, {"PATH": "/nowhere"}):
        require_spark(PLACE_OF_4_0, environ, where="connection c")
    old = spark(tmp_path / "old", "spark-core_2.12-3.5.9.jar")
    for jars in ((), ("/opt/jars/*",)):
        place = SparkPlace("yarn", jars=jars)
        require_spark(place, {"PATH": f"{old}/bin"}, where="connection c")


def test_the_spark_of_these_tests_is_the_one_that_is_needed() -> None:
    require_spark(PLACE, {"PATH": f"{sys.prefix}/bin"}, where="connection c")
    newer = SparkPlace("local[1]", jars=("/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar",))
    assert "4.1 with Scala 2.13" in refusal(newer, PATH=f"{sys.prefix}/bin")
