"""What is asked of YARN about applications that were left behind, where it does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.errors import ApplicationFailed
from tallystick.ports.spark_runner import LandingOrder
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
        "/etc/hadoop --master local --deploy-mode client --principal etl@X --keytab /etl.keytab"
        " --class org.apache.hadoop.yarn.client.cli.ApplicationCLI spark-internal application"
    )
    assert asked.read_text().splitlines() == [
        f"{client} -list -appTags tallystick-a1 -appStates"
        " NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING",
        f"{client} -kill application_1_2",
    ]


def waits_for(file: Path) -> str:
    """Shell's words for it: an order that a slow machine keeps, too."""
    return f"while [ ! -e {file} ]; do sleep 0.05; done"


def order(attempt_id: str) -> LandingOrder:
    return LandingOrder("orders", "b1", attempt_id, "hdfs://nn:8020/plan.json", plan_text="{}")


def interrupted(place: SparkPlace, after: Callable[[], bool], heard: Path | None = None) -> None:
    """A search whose task is killed once this is so, while its own thread reads no output.

    What it has `heard` first is all that it reads.
    """
    runner = SubmitRunner(place, application=Path("/land.py"), feed_conf={}, kafka_secrets={})
    may_read = threading.Event()

    def read_nothing(_: str) -> None:
        if heard:
            heard.touch()
        may_read.wait(30)

    def search() -> None:
        with suppress(ApplicationFailed):
            runner.search(order("a1"), noted=read_nothing)

    thread = threading.Thread(target=search)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not after() and time.monotonic() < until:
            time.sleep(0.02)
        assert runner.interrupt("a1")
    finally:
        may_read.set()
        thread.join()


def test_what_has_not_been_submitted_never_is(tmp_path: Path) -> None:
    asked, begun, asking = tmp_path / "asked", tmp_path / "begun", tmp_path / "asking"
    place = program(
        tmp_path,
        'case "$*" in *ApplicationCLI*)'
        f' touch {asking}; sleep 1.5; echo "$*" >> {asked}; exit 0;; esac',
        f"touch {begun}; {waits_for(asking)}; echo submitted >> {asked}; sleep 30",
    )
    interrupted(place, begun.exists)
    [told] = asked.read_text().splitlines()
    assert "-list -appTags tallystick-a1" in told, "nothing was submitted while YARN was asked"


def test_an_id_that_nobody_has_read_yet_is_killed_at_once(tmp_path: Path) -> None:
    asked, said, heard = tmp_path / "asked", tmp_path / "said", tmp_path / "heard"
    place = program(
        tmp_path,
        f'case "$*" in *ApplicationCLI*) echo "$*" >> {asked}; exit 0;; esac',
        f'echo "tallystick: note x"; {waits_for(heard)}',
        'echo "INFO YarnClientImpl: Submitted application application_1_9"',
        f"touch {said}; sleep 30",
    )
    interrupted(place, said.exists, heard)
    [told] = asked.read_text().splitlines()
    assert told.endswith("-kill application_1_9")


def test_ctrl_c_kills_an_application_that_nobody_has_read_of_yet(tmp_path: Path) -> None:
    asked, said, heard = tmp_path / "asked", tmp_path / "said", tmp_path / "heard"
    place = program(
        tmp_path,
        f'case "$*" in *ApplicationCLI*) echo "$*" >> {asked}; exit 0;; esac',
        f'echo "tallystick: note x"; {waits_for(heard)}',
        'echo "INFO YarnClientImpl: Submitted application application_1_9"',
        f"touch {said}; sleep 30",
    )
    runner = SubmitRunner(place, application=Path("/land.py"), feed_conf={}, kafka_secrets={})

    def press(_: str) -> None:
        heard.touch()
        while not said.exists():
            time.sleep(0.02)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.search(order("a1"), noted=press)
    [told] = asked.read_text().splitlines()
    assert told.endswith("-kill application_1_9")


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
