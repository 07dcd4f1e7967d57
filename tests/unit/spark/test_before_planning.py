"""What Spark lacks is told before anything is planned: a configuration, a jar, a version."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tallystick.errors import ConfigurationError
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.installed_spark import require_hadoop_conf, require_kubernetes, require_spark
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner, require_jars
from tests.support.spark_place import PLACE


@pytest.fixture
def conf(tmp_path: Path) -> str:
    directory = tmp_path / "conf"
    directory.mkdir()
    (directory / "yarn-site.xml").write_text("<configuration/>")
    return str(directory)


def asked(place: SparkPlace, environ: Mapping[str, str]) -> str:
    """What is said of it; empty where nothing is missing."""
    try:
        require_hadoop_conf(place, environ, where="connection c")
    except ConfigurationError as error:
        return error.describe()
    return ""


def test_either_variable_or_the_connection_names_it(conf: str, tmp_path: Path) -> None:
    other = str(tmp_path)
    yarn = SparkPlace("yarn")
    assert asked(yarn, {"HADOOP_CONF_DIR": conf}) == ""
    assert asked(yarn, {"YARN_CONF_DIR": conf}) == ""
    assert asked(yarn, {"HADOOP_CONF_DIR": other, "YARN_CONF_DIR": conf}) == ""
    assert asked(SparkPlace("yarn", hadoop_conf=conf), {}) == ""
    # The connection goes over the environment: so it does for spark-submit.
    assert "extra hadoop-conf-dir is" in asked(
        SparkPlace("yarn", hadoop_conf=other), {"HADOOP_CONF_DIR": conf}
    )


@pytest.mark.parametrize("empty", [{}, {"HADOOP_CONF_DIR": ""}])
def test_yarn_without_one_is_refused_with_the_connection_and_what_to_set(
    empty: Mapping[str, str],
) -> None:
    assert asked(SparkPlace("yarn"), empty) == (
        "connection c: HADOOP_CONF_DIR is missing; accepted: a directory with the cluster's"
        " yarn-site.xml, in HADOOP_CONF_DIR or YARN_CONF_DIR of the process that runs"
        " spark-submit, or in the connection's extra hadoop-conf-dir."
    )


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    assert asked(SparkPlace("yarn"), {"YARN_CONF_DIR": gone}) == (
        f"connection c: YARN_CONF_DIR is {gone!r}; accepted: a directory on this machine."
    )
    assert asked(SparkPlace("spark://h:7077", hadoop_conf=gone), {}).startswith(
        "connection c: extra hadoop-conf-dir is"
    )


@pytest.mark.parametrize("master", ["local[2,4]", "spark://h:7077", "k8s://https://h:443"])
def test_other_masters_need_none(master: str, tmp_path: Path) -> None:
    assert asked(SparkPlace(master), {}) == ""
    assert asked(SparkPlace(master), {"HADOOP_CONF_DIR": str(tmp_path / "gone")}) == ""


def test_spark_submit_is_told_of_the_connections_directory() -> None:
    found = SparkPlace("yarn", hadoop_conf="/etc/hadoop").environment({})
    assert found == {"HADOOP_CONF_DIR": "/etc/hadoop"}


def test_a_master_in_kubernetes_without_airflows_provider_for_it_is_told_at_once() -> None:
    require_kubernetes(SparkPlace("yarn"), where="connection c")
    with pytest.raises(ConfigurationError, match="apache-airflow-providers-cncf-kubernetes"):
        require_kubernetes(SparkPlace("k8s://https://host:443"), where="connection c")


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
