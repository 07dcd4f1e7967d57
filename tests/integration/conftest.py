"""Fixtures of the tests against whole services."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sandbox.ports import answers, is_free
from tallystick.spark.command import landing_conf
from tallystick.spark.parent_death import die_with_parent
from tests.support.kafka_topics import wait_until
from tests.support.sasl_kafka import SaslKafka
from tests.support.spark_place import JARS, PLACE

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SaslKafka]:
    """A Kafka of the test's own that lets nobody in without a password."""
    node = SaslKafka(tmp_path / "kafka")
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """The URL of a server without any setting of ours that a landing could lean on."""
    port = next(p for p in iter(lambda: random.randrange(20_000, 32_000), 0) if is_free(p))
    conf = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.ui.enabled": landing_conf(PLACE, {})["spark.ui.enabled"],
    }
    argv = [PLACE.spark_submit, "--master", PLACE.master, "--jars", ",".join(JARS)]
    argv += [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    log = tmp_path / "server.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [*argv, "--class", SERVER],
            cwd=tmp_path,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=partial(die_with_parent, os.getpid()),
        ) as server,
    ):
        try:
            wait_until(
                lambda: answers(port) or server.poll() is not None, "server is up", seconds=120
            )
            assert server.poll() is None, log.read_text()[-2000:]
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.kill()
