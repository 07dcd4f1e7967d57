"""Every anomaly that can be made on real services, and every normal thing that looks like one.

Faults are injected into feeds on a real cluster, HDFS, Spark session and ledger. What reconcile and
the runs find must equal what was injected, offset for offset; on topics that are only unusual
nothing may be found at all. The matrix is printed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sandbox.services.kafka import KafkaCluster
from tallystick.domain.batches.states import HoleClass
from tests.support.detector_calm import Calm, rolling_restart
from tests.support.detector_faults import (
    TOO_LONG,
    Cut,
    Expiring,
    Faulty,
    Mute,
    frozen,
    ledger_behind,
    left_behind,
    recreated,
    repeated,
    short,
    unreadable,
    without_a_plan,
    without_manifest,
    without_reconciles,
    without_runs,
    written_past_the_schema,
)
from tests.support.detector_scene import (
    LOSS,
    Scene,
    Told,
    confusion,
    drawn,
)
from tests.support.ledger_server import LedgerServer

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def scene(
    cluster: KafkaCluster, hdfs: Any, ledger_server: LedgerServer, spark: SparkSession
) -> Scene:
    """Everything injected, everything looked at."""
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers,
        "WEBHDFS_URL": hdfs.webhdfs_url,
        "HDFS_URL": hdfs.hdfs_url,
        "SPARK_MASTER": "local[2,4]",
    }
    scene = Scene(cluster, environ, spark, ledger_server)
    calm, faulty, expiring, cut = Calm(scene), Faulty(scene), Expiring(scene), Cut(scene)
    calm.fill()
    expiring.land()
    expiring.inject()
    calm.land()
    faulty.land()
    faulty.inject()
    mute = Mute(scene)
    mute.land()
    ways = [
        each(scene)
        for each in (
            recreated,
            short,
            ledger_behind,
            written_past_the_schema,
            left_behind,
            frozen,
            repeated,
            without_manifest,
            unreadable,
            without_a_plan,
            without_runs,
            without_reconciles,
        )
    ]
    expiring.settle()
    calm.go_on()
    calm.reconciled()
    cut.inject()
    replicated = [way.topic for way in (*calm.ways, *ways, faulty.way, expiring.way)]
    scene.wait_until_all_in_sync(replicated)
    calm.reconciled()
    rolling_restart(scene, [way.topic for way in calm.ways])
    for way in calm.ways:
        scene.landed(way)
    calm.reconciled()
    for way in (*ways, expiring.way, cut.visible, cut.regrown):
        scene.reconciled(way)
    scene.reconciled(faulty.way, later=TOO_LONG)
    mute.inject_and_reconcile()
    return scene


CALM = {"calm", "lying", "compacted", "aged"}


def test_what_is_found_is_what_was_injected_offset_for_offset(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [each for name, told in scene.found.items() if name not in CALM for each in told]
    counts = confusion(scene.injected, found)
    with capsys.disabled():
        sys.stdout.write(f"\n\n{drawn(counts)}\n\n")
    missed = sorted(map(str, set(scene.injected) - set(found)))
    wrong = sorted(map(str, set(found) - set(scene.injected)))
    assert (missed, wrong) == ([], [])


def test_nothing_is_found_where_nothing_is_wrong(scene: Scene) -> None:
    assert {name: sorted(map(str, scene.found[name])) for name in CALM} == {
        name: [] for name in CALM
    }


def test_holes_are_counted_by_their_cause_where_they_are(scene: Scene) -> None:
    ended = {(HoleClass.CONTROL, Calm.ENDED), (HoleClass.ABORTED, Calm.ENDED)}
    assert scene.holes["calm"] >= ended
    assert scene.holes["compacted"] == {(HoleClass.COMPACTED, 0)}
    assert scene.holes["aged"] == scene.holes["lying"] == set()


def test_the_matrix_counts_a_miss_and_a_false_alarm() -> None:
    fault = Told("feed", "A1", LOSS, 0, 3, 5)
    told = [replace(fault, until_offset=4), replace(fault, code="A3")]
    assert confusion([fault], told[:1]) == {("A1", "-"): 1, ("-", "A1"): 1}
    assert confusion([fault], told[1:]) == {("A1", "A3"): 1}
    assert confusion([fault], [fault]) == {("A1", "A1"): 1}
