"""YARN's configuration is looked for before anything is planned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tallystick.errors import ConfigurationError
from tallystick.spark.installed_spark import require_hadoop_conf, require_kubernetes
from tallystick.spark.place import SparkPlace


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
