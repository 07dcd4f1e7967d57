"""What spark-submit inherits, what is told of its application, and how long that outlives it."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.errors import ApplicationFailed
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.begun import reading
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner, longest_orphan

ORDER = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/plan.json", plan_text="{}")
NAMED = "echo 'tallystick: application app-1'"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        pytest.param(f"{NAMED}; kill -9 $$", ["app-1"], id="it dies without a word: it may have"),
        pytest.param(
            f"{NAMED}; echo 'tallystick: landing failed: no broker'; exit 1", [], id="it says why"
        ),
        pytest.param(
            f"{NAMED}; echo 'tallystick: reading';"
            " echo 'tallystick: landing failed: Task 0 in stage 1.0 failed'; exit 1",
            ["app-1"],
            id="it has told that it reads, once",
        ),
        pytest.param("kill -9 $$", [], id="it dies before it has a name"),
        pytest.param(
            "echo 'INFO Client: Submitted application application_17_0001'; exit 1",
            [],
            id="YARN has named it, and its driver never was",
        ),
    ],
)
def test_an_application_counts_once_it_reads_or_dies_without_a_word(
    tmp_path: Path, script: str, told: list[str]
) -> None:
    program = tmp_path / "spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    runner = SubmitRunner(
        SparkPlace("local[1]", spark_submit=str(program)),
        application=tmp_path / "land.py",
        feed_conf={},
        kafka_secrets={},
    )
    heard: list[str] = []

    with pytest.raises(ApplicationFailed):
        runner.run(ORDER, started=heard.append)

    assert heard == told


OF_TASK = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure:"
    " Lost task 0.0 in stage 3.0 (TID 2) (localhost executor driver): ArithmeticException"
)

OF_RECORD = (
    "(org.apache.spark.sql.kafka010.KafkaIllegalStateException) Record at topic orders partition 0"
    " offset 300 has timestamp value 1795000000000000000 that overflows"
)


def told_by(failure: str, *heard: bool) -> int:
    told: list[None] = []

    def work() -> None:
        with reading(lambda: told.append(None)) as found:
            for each in heard:
                found.hear(each)
            raise RuntimeError(failure)

    with pytest.raises(RuntimeError):
        work()
    return len(told)


def test_work_that_is_done_has_begun() -> None:
    told: list[None] = []
    with reading(lambda: told.append(None)):
        assert not told
    assert len(told) == 1


@pytest.mark.parametrize(
    ("failure", "heard", "times"),
    [
        ("Timed out waiting for a node assignment. Call: listNodes", (), 0),
        ("Permission denied: user=spark", (False, False), 0),
        (OF_TASK, (), 1),
        (OF_RECORD, (), 1),
        (OF_TASK, (True, True), 1),
        ("Cannot call methods on a stopped SparkContext", (False, True), 1),
    ],
)
def test_work_that_fails_has_begun_once_a_task_has(
    failure: str, heard: tuple[bool, ...], times: int
) -> None:
    assert told_by(failure, *heard) == times


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_server_that_dies_at_once_may_have_been_ended_by_a_record(is_lost: bool) -> None:
    told: list[None] = []
    with pytest.raises(RuntimeError), reading(lambda: told.append(None), lambda _: is_lost):
        raise RuntimeError("the server is gone")
    assert len(told) == is_lost


SECRET = "pa55-word"
HIDDEN = (
    "AIRFLOW_CONN_KAFKA_DEFAULT",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "_AIRFLOW_WWW_USER_PASSWORD",
    "LEDGER_DSN",
)


def test_the_connections_configuration_is_the_only_one() -> None:
    inherited = {"HADOOP_CONF_DIR": "/theirs", "YARN_CONF_DIR": "/theirs", "PATH": "/bin"}
    found = SparkPlace("yarn", hadoop_conf="/ours").environment(inherited)
    assert found == {"HADOOP_CONF_DIR": "/ours", "PATH": "/bin"}
    assert SparkPlace("yarn").environment(inherited) == inherited


def test_connections_are_not_inherited_by_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "spark-submit"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o700)
    for name in HIDDEN:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("KRB5CCNAME", "FILE:/tmp/ticket")
    caplog.set_level(logging.DEBUG)
    runner = SubmitRunner(
        SparkPlace("local[2]", spark_submit=str(program)),
        application=tmp_path / "land.py",
        feed_conf={},
        kafka_secrets={},
    )

    order = LandingOrder("orders", "b1", "a1", "hdfs://nn:8020/plan.json", plan_text="{}")
    runner.run(order, started=lambda _: None)

    assert "KRB5CCNAME=FILE:/tmp/ticket" in caplog.text
    assert SECRET not in caplog.text


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
