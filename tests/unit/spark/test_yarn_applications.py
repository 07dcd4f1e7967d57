"""What is asked of YARN about applications that were left behind, where it does not answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.spark import yarn_applications
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner
from tallystick.spark.yarn_applications import end_tagged

YARN = SparkPlace("yarn", "cluster", hadoop_conf="/etc/hadoop")


def program(directory: Path, *lines: str) -> SparkPlace:
    """A place whose spark-submit does this."""
    file = directory / "spark-submit"
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return replace(YARN, spark_submit=str(file))


def test_hadoops_client_is_asked_by_tag_with_the_connections_login(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    place = program(
        tmp_path,
        f'echo "$HADOOP_CONF_DIR $*" >> {asked}',
        'case "$*" in *-list*) printf "Id\\tName\\napplication_1_2\\tx\\n";; esac',
    )
    assert end_tagged(replace(place, principal="etl@X", keytab="/etl.keytab"), "a1")
    client = (
        "/etc/hadoop --master local --principal etl@X --keytab /etl.keytab"
        " --class org.apache.hadoop.yarn.client.cli.ApplicationCLI spark-internal application"
    )
    assert asked.read_text().splitlines() == [
        f"{client} -list -appTags tallystick-a1 -appStates"
        " NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING",
        f"{client} -kill application_1_2",
    ]


@pytest.mark.parametrize("answer", ["exit 1", "echo refused >&2; exit 3", "exec sleep 60"])
def test_a_yarn_that_does_not_answer_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(yarn_applications, "ANSWER_SECONDS", 0.5)
    assert not end_tagged(program(tmp_path, answer), "a1")


def test_a_worker_without_spark_submit_is_no_error() -> None:
    assert not end_tagged(replace(YARN, spark_submit="/nowhere/spark-submit"), "a1")


@pytest.mark.parametrize(
    "place",
    [
        SparkPlace("yarn"),
        SparkPlace("spark://h:7077"),
        SparkPlace("k8s://https://h:443", "cluster"),
    ],
)
def test_elsewhere_nobody_is_asked(place: SparkPlace) -> None:
    runner = SubmitRunner(
        replace(place, spark_submit="/nowhere/spark-submit"),
        application=Path("/land.py"),
        feed_conf={},
        kafka_secrets={},
        longest=timedelta(hours=1),
    )
    assert runner.interrupt("a1")


@pytest.mark.parametrize(
    ("place", "command"),
    [
        (SparkPlace("yarn"), None),
        (SparkPlace("spark://h:7077"), None),
        (YARN, "yarn logs -applicationId ID"),
        (
            SparkPlace("k8s://https://h:443", "cluster"),
            "kubectl logs -l spark-app-selector=ID,spark-role=driver",
        ),
    ],
)
def test_what_prints_a_drivers_log_is_named_where_it_is_not_ours(
    place: SparkPlace, command: str | None
) -> None:
    assert place.log_command("ID") == command
