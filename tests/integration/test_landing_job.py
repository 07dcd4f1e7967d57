"""The landing as a real spark-submit: its end, its failures, its secrets, and its death."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tallystick.domain.batches.landing import LandingPlan
from tallystick.errors import ApplicationFailed, BrokersUnreached, ConfigurationError
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.kafka_access import SECRETS_FILE, kafka_access
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner
from tests.spark_local.planner import Planner, packed
from tests.support.kafka_producers import AWKWARD, messages, produce
from tests.support.kafka_records import records_in
from tests.support.kafka_topics import ANY_TIME_FOR_EVER, LARGE, create_topic, wait_until
from tests.support.landed_files import put, rows_in
from tests.support.sasl_kafka import PASSWORD, SaslKafka
from tests.support.spark_place import APPLICATION, PLACE, ROOT


@pytest.fixture
def planner(kafka: str, hdfs: Any) -> Planner:
    return Planner(kafka, hdfs.hdfs_url, hdfs.webhdfs_url)


def written(planner: Planner, plan: LandingPlan) -> LandingOrder:
    """The order for a plan that lies beside its output directory."""
    path = f"{planner.directory(plan).removesuffix('/data')}/plan.json"
    text, uri = plan.to_json(), f"{planner.hdfs_url}{path}"
    put(planner.webhdfs_url, path, text.encode(), "root")
    return LandingOrder("orders", plan.batch_id, plan.attempt_id, uri, plan_text=text)


def runner(place: SparkPlace = PLACE, secrets: dict[str, str] | None = None) -> SubmitRunner:
    return SubmitRunner(place, application=APPLICATION, feed_conf={}, kafka_secrets=secrets or {})


def processes_of(order: LandingOrder) -> dict[int, str]:
    """By id: the command lines of all living processes that name the order's plan."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has ended
            if order.plan_uri in line:
                found[int(entry.name)] = line
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files that nothing but this test uses."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


def test_a_batch_lands_and_its_application_is_known_before_the_end(
    planner: Planner, kafka: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tallystick")
    topic = create_topic(kafka, config=ANY_TIME_FOR_EVER | LARGE)
    produce(kafka, topic, AWKWARD)
    plan = planner.plan(topic, [packed(topic, {0: (0, len(AWKWARD))})])
    started: list[str] = []

    runner().run(written(planner, plan), started=started.append)

    assert len(started) == 1
    assert started[0].startswith("local-")
    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert landed == records_in(kafka, topic, {0: (0, len(AWKWARD))})
    said = [each.getMessage() for each in caplog.records if "tallystick: " in each.getMessage()]
    assert said == [
        f"tallystick: application {started[0]}",
        f"tallystick: landing batch {plan.batch_id}: 1 ranges of {topic},"
        f" {len(AWKWARD)} offsets, into {plan.output}",
        "tallystick: reading",
        f"tallystick: landed batch {plan.batch_id}",
    ]


def test_a_password_reaches_the_broker_and_nothing_else(
    planner: Planner,
    secured: SaslKafka,
    tmp_path: Path,
    temporary: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    topic = create_topic(secured.address)
    writer = Producer(secured.properties)
    writer.produce(topic, value=b"let in", partition=0)
    assert writer.flush(30) == 0
    access = kafka_access(secured.properties)
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})], kafka_options=access.options)
    order = written(planner, plan)
    events = tmp_path / "events"  # what Spark's UI shows
    events.mkdir()
    place = replace(
        PLACE,
        conf=PLACE.conf
        | {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
        },
    )
    seen: list[str] = []

    def started(_: str) -> None:
        seen.extend(processes_of(order).values())
        [directory] = temporary.iterdir()
        assert directory.stat().st_mode & 0o777 == 0o700
        assert (directory / SECRETS_FILE).stat().st_mode & 0o777 == 0o600

    runner(place, dict(access.secrets)).run(order, started=started)

    [row] = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert row.value == b"let in"
    assert len(seen) >= 2  # the JVM and its Python driver
    shown = "".join([*seen, caplog.text, plan.to_json(), *(_text_of(events))])
    assert "SparkListenerApplicationEnd" in shown
    assert "s3cr3t" in PASSWORD
    assert "s3cr3t" not in shown
    assert not list(temporary.iterdir())


def _text_of(directory: Path) -> list[str]:
    return [each.read_text() for each in directory.rglob("*") if each.is_file()]


def test_a_failure_is_told_in_one_line_and_may_be_tried_again(planner: Planner, kafka: str) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})])
    plan = replace(plan, output=plan.output.removesuffix("/data"))  # holds the plan: it exists
    text, uri = plan.to_json(), f"{plan.output}/plan.json"
    order = LandingOrder("orders", plan.batch_id, plan.attempt_id, uri, plan_text=text)
    put(planner.webhdfs_url, f"{planner.directory(plan)}/plan.json", text.encode(), "root")

    with pytest.raises(ApplicationFailed) as failed:
        runner().run(order, started=lambda _: None)

    assert failed.value.retry
    text = failed.value.describe()
    assert text.startswith(f"batch {plan.batch_id}: Spark application local-")
    assert "PATH_ALREADY_EXISTS" in text
    assert "\n" not in text


def test_a_submit_that_never_starts_says_why(planner: Planner, kafka: str) -> None:
    order = LandingOrder("orders", "b", "a", "hdfs://127.0.0.1:1/plan.json", plan_text="{}")

    with pytest.raises(ApplicationFailed, match=r"\(none was started\) failed: .*Master must"):
        runner(replace(PLACE, master="nowhere")).run(order, started=lambda _: None)

    with pytest.raises(ConfigurationError, match="/nowhere/spark-submit"):
        runner(replace(PLACE, spark_submit="/nowhere/spark-submit")).run(
            order, started=lambda _: None
        )


def test_the_broker_that_spark_cannot_reach_is_named_soon_and_nothing_has_begun(
    planner: Planner, kafka: str
) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    nowhere = {"kafka.bootstrap.servers": "localhost:1"}
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})], kafka_options=nowhere)

    with pytest.raises(BrokersUnreached, match=r"can't reach Kafka at localhost/127\.0\.0\.1:1: "):
        runner().run(written(planner, plan), started=lambda _: pytest.fail("it reads"))


def test_another_thread_ends_an_application_of_its_own(planner: Planner, kafka: str) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    nowhere = {"kafka.bootstrap.servers": "localhost:1", "kafka.default.api.timeout.ms": "600000"}
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})], kafka_options=nowhere)
    order, one = written(planner, plan), runner()

    def interrupt() -> None:
        wait_until(lambda: len(processes_of(order)) >= 2, "it works", seconds=120)
        assert one.interrupt("another's")
        assert processes_of(order)
        assert one.interrupt(order.attempt_id)

    with ThreadPoolExecutor(1) as pool:
        interrupted = pool.submit(interrupt)
        with pytest.raises(ApplicationFailed, match="killed by signal 9"):
            one.run(order, started=lambda _: None)
        interrupted.result()
    wait_until(lambda: not processes_of(order), "JVM and driver are gone", seconds=15)


def test_leaving_early_ends_the_whole_application(
    planner: Planner, kafka: str, temporary: Path
) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    order = written(planner, planner.plan(topic, [packed(topic, {0: (0, 1)})]))

    def interrupted(_: str) -> None:
        assert len(processes_of(order)) >= 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner().run(order, started=interrupted)

    wait_until(lambda: not processes_of(order), "JVM and driver are gone", seconds=15)
    assert not list(temporary.iterdir())


RUN = """
import sys
from pathlib import Path
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.submit_runner import SubmitRunner
from tests.support.spark_place import APPLICATION, PLACE
runner = SubmitRunner(PLACE, application=APPLICATION, feed_conf={}, kafka_secrets={})
order = LandingOrder("orders", "b", "a", sys.argv[1], plan_text="")
runner.run(order, started=lambda _: print("up", flush=True))
"""


def test_a_killed_command_takes_its_application_along(planner: Planner, kafka: str) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    order = written(planner, planner.plan(topic, [packed(topic, {0: (0, 1)})]))
    path = os.pathsep.join([str(ROOT / "plugins"), str(ROOT)])
    command = subprocess.Popen(
        [sys.executable, "-c", RUN, order.plan_uri],
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )
    with command:
        assert command.stdout is not None
        assert command.stdout.readline() == "up\n"
        assert len(processes_of(order)) >= 3
        command.send_signal(signal.SIGKILL)

    wait_until(lambda: not processes_of(order), "JVM and driver are gone", seconds=15)
