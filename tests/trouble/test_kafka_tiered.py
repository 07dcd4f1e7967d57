"""A tiered topic: what only the remote store still has comes late, and is landed and proven."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sandbox.entry.jars import ensure_jars
from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tests.support.kafka_producers import Message, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.own_kafka import kafka_of_its_own
from tests.support.whole_way import Way
from tests.trouble.scene import NewScene

RECORDS = 400
STORE = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
# A segment is closed after 1 MB, the least that Kafka allows, and leaves the broker's disk at once.
TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(2**20),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[str]:
    """A Kafka with a remote store that gives 1 MB a second: fetches of old records wait."""
    (remote := tmp_path / "remote").mkdir()
    settings: Mapping[str, str] = {
        "remote_log_storage_system_enable": "true",
        "remote_log_storage_manager_class_name": STORE,
        "remote_log_storage_manager_class_path": f"{ensure_jars('kafka-tiered')}/*",
        "remote_log_storage_manager_impl_prefix": "rsm.config.",
        "rsm_config_dir": str(remote),
        "remote_log_metadata_manager_listener_name": "PLAINTEXT",
        "remote_log_metadata_manager_impl_prefix": "rlmm.config.",
        "rlmm_config_remote_log_metadata_topic_num_partitions": "1",
        "rlmm_config_remote_log_metadata_topic_replication_factor": "1",
        "remote_log_manager_task_interval_ms": "500",
        "remote_log_manager_fetch_max_bytes_per_second": "1000000",
    }
    with kafka_of_its_own(tmp_path / "kafka", **settings) as servers:
        yield servers


def first_local_offset(directory: Path, topic: str) -> int:
    """The first offset that is on the broker's own disk."""
    return min(int(each.stem) for each in directory.rglob(f"{topic}-0/*.log"))


def test_what_only_the_remote_store_has_is_landed_and_proven(
    kafka: str, new_scene: NewScene, spark: SparkSession, tmp_path: Path
) -> None:
    environ = {**new_scene().environ, "KAFKA_BOOTSTRAP_SERVERS": kafka}
    way = Way(create_topic(kafka, config=TIERED), environ, spark)
    produce(kafka, way.topic, [Message(random.randbytes(10_000)) for _ in range(RECORDS)])
    wait_until(
        lambda: first_local_offset(tmp_path / "kafka", way.topic) > RECORDS // 2,
        "only the remote store has the older half",
    )

    way.landed()

    assert way.rows() == way.produced({0: (0, RECORDS)})
    report = way.reconciled(Level.L4)
    assert (report.verdict, report.findings) == (Verdict.PROVEN_OK, ())
