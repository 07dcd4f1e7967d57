"""Landings on YARN, in client and in cluster mode: what dies, what is left behind, what is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox import Sandbox
from sandbox.clusters.yarn import Yarn, conf_of
from tallystick.domain.identities import FeedName
from tallystick.ledger.ledger import Ledger
from tests.support.connect_servers import ColdServer, server_of_its_own
from tests.support.kafka_producers import messages
from tests.support.kafka_topics import wait_until
from tests.support.spark_clusters import (
    BOUND_SECONDS,
    HARD_TO_PACK,
    YARN_CONF,
    ClusterPlace,
    ClusterWay,
    java_of,
    killed,
    slow_messages,
)
from tests.trouble.command import Command

CLIENT, CLUSTER = "spark_yarn", "spark_yarn_cluster"
EXECUTOR = "YarnCoarseGrainedExecutorBackend"
CLUSTER_MASTER, CLIENT_MASTER = "ApplicationMaster", "ExecutorLauncher"
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPlace]:
    with ClusterPlace.up(sandbox, tmp_path_factory.mktemp("feeds"), Yarn) as found:
        yield found


@pytest.fixture
def cluster(place: ClusterPlace) -> Yarn:
    found = place.sandbox.clusters["yarn"]
    assert isinstance(found, Yarn)
    found.start()
    return found


def applications(cluster: Yarn, feed: ClusterWay) -> list[Mapping[str, Any]]:
    """What YARN says of all applications of the feed, the first one first."""
    told = cluster.resource_manager.said("apps") or {}
    found = (told.get("apps") or {}).get("app", [])
    mine = [each for each in found if each["name"].startswith(f"tallystick {feed.way.name} ")]
    return sorted(mine, key=lambda each: str(each["id"]))


def containers(cluster: Yarn, word: str) -> list[psutil.Process]:
    return java_of(cluster.node_manager.containers(), word)


def slow(place: ClusterPlace, connection: str) -> ClusterWay:
    """A feed whose landing takes long enough to be killed in mid-write."""
    return place.way(connection, YARN_CONF, slow_messages(), target=HARD_TO_PACK)


@pytest.mark.parametrize("connection", [CLIENT, CLUSTER])
def test_an_executor_that_dies_in_mid_write_loses_and_doubles_nothing(
    place: ClusterPlace, cluster: Yarn, connection: str
) -> None:
    feed = slow(place, connection)
    command = feed.command("land")
    feed.until_it_writes()
    killed(partial(containers, cluster, EXECUTOR))
    assert command.ended().code == 0, command.err[-4000:]
    feed.is_whole()


def test_a_driver_that_dies_on_yarn_is_started_once_and_its_log_is_named(
    place: ClusterPlace, cluster: Yarn
) -> None:
    feed = slow(place, CLUSTER)
    command = feed.command("land")
    feed.until_it_writes()
    killed(partial(containers, cluster, CLUSTER_MASTER))
    ended = command.ended()
    [application] = applications(cluster, feed)
    assert application["finalStatus"] == "FAILED"
    [attempt] = _attempts(cluster, application)
    assert attempt
    assert ended.code == 3
    assert f"the driver's log: yarn logs -applicationId {application['id']}" in ended.err
    assert "exitCode: 137" in ended.err
    feed.lands()
    feed.is_whole()


def _attempts(cluster: Yarn, application: Mapping[str, Any]) -> list[Any]:
    told = cluster.resource_manager.said(f"apps/{application['id']}/appattempts") or {}
    return list(told["appAttempts"]["appAttempt"])


def test_a_master_that_dies_beside_a_driver_here_loses_and_doubles_nothing(
    place: ClusterPlace, cluster: Yarn
) -> None:
    feed = slow(place, CLIENT)
    command = feed.command("land")
    feed.until_it_writes()
    killed(partial(containers, cluster, CLIENT_MASTER))
    if command.ended().code != 0:
        feed.lands()
    feed.is_whole()


def test_a_killed_command_in_client_mode_leaves_nothing_on_yarn(
    place: ClusterPlace, cluster: Yarn
) -> None:
    feed = slow(place, CLIENT)
    command = feed.command("land")
    feed.until_it_writes()
    command.kill()
    wait_until(
        lambda: not cluster.node_manager.containers(), "no container is left", seconds=BOUND_SECONDS
    )
    feed.lands_after_a_kill()
    feed.is_whole()


def test_what_a_killed_command_has_left_on_yarn_is_killed_by_the_next_one(
    place: ClusterPlace, cluster: Yarn
) -> None:
    feed = slow(place, CLUSTER)
    command = feed.command("land")
    feed.until_it_writes()
    command.kill()
    # The driver would go on, and write all of it for nobody.
    for each in containers(cluster, CLUSTER_MASTER):
        each.suspend()
    [orphan] = applications(cluster, feed)
    assert orphan["state"] == "RUNNING"
    feed.lands_after_a_kill()
    orphan, landed = applications(cluster, feed)
    assert (orphan["finalStatus"], landed["finalStatus"]) == ("KILLED", "SUCCEEDED")
    # Its attempt's id, by which it was found.
    assert orphan["applicationTags"] == f"tallystick-{orphan['name'].split()[-1]}"
    feed.is_whole()


def test_a_connect_server_on_yarn_lands(place: ClusterPlace, cluster: Yarn, tmp_path: Path) -> None:
    class OnYarn(ColdServer):
        def environment(self) -> Mapping[str, str]:
            return {**super().environment(), "HADOOP_CONF_DIR": str(conf_of(cluster.home))}

    with server_of_its_own(tmp_path, OnYarn, master="yarn", **YARN_CONF) as server:
        warm = server.address.replace("sc://", "spark-connect://")
        on_server = replace(place, environ={**place.environ, "AIRFLOW_CONN_WARM": warm})
        feed = on_server.way("warm", {}, messages(3_000))
        feed.lands()
        assert containers(cluster, EXECUTOR)
        feed.is_whole()


def test_yarn_without_its_configuration_is_refused_before_a_plan(place: ClusterPlace) -> None:
    feed = place.way(CLIENT, YARN_CONF, messages(1))
    bare = '{"conn_type": "spark", "host": "yarn"}'
    environ = {
        **place.environ,
        f"AIRFLOW_CONN_{CLIENT.upper()}": bare,
        "HADOOP_CONF_DIR": "",
        "YARN_CONF_DIR": "",
    }
    ended = Command(place.folder, environ, "land", feed.way.name).ended()
    assert ended.code == 2
    assert f"connection {CLIENT}: HADOOP_CONF_DIR is missing" in ended.err
    ledger = Ledger(place.environ["LEDGER_DSN"])
    try:
        assert list(ledger.batches(FeedName(feed.way.name))) == []
    finally:
        ledger.close()
