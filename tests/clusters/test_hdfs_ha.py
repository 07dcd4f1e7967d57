"""Two NameNodes: the active one dies in mid-landing, in mid-rename, in mid-listing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Sandbox
from sandbox.clusters.ha import Ha
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.hdfs_clusters import HdfsView, HdfsWay, Interruption, interrupted
from tests.support.kafka_producers import Message, messages
from tests.support.kafka_topics import wait_until
from tests.support.landed_files import put, write_once
from tests.support.sandbox_fixtures import running
from tests.trouble.command import Folder

WEBHDFS = "AIRFLOW_CONN_WEBHDFS_HA"
BOUND_SECONDS = 120.0
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def standing(sandbox: Sandbox) -> Iterator[Ha]:
    with running(sandbox, Ha, "kafka", "postgres") as found:
        write_once(found.active().web_url, "root")
        yield found


@pytest.fixture
def cluster(standing: Ha) -> Ha:
    """Both NameNodes are up; one is active."""
    standing.start()
    return standing


@pytest.fixture
def way(sandbox: Sandbox, cluster: Ha, tmp_path: Path) -> HdfsWay:
    environ = sandbox.env() | dict(cluster.connections())
    view = HdfsView(cluster.family, cluster.active)
    return HdfsWay(Folder(tmp_path / "feeds"), environ, view, cluster.name, "/ha")


def fail_over(cluster: Ha) -> None:
    """The active NameNode dies without a word, and the other one takes its place."""
    dying, heir = cluster.active(), cluster.standby()
    dying.kill()
    cluster.take_over(heir)


def test_a_fail_over_in_mid_landing_loses_and_doubles_nothing(way: HdfsWay, cluster: Ha) -> None:
    slow = [Message(random.randbytes(400).hex().encode()) for _ in range(15_000)]
    count = way.produce(slow, compression_level=19)  # it keeps a core busy for seconds
    command = way.command("land")
    wait_until(
        lambda: any("/_temporary/" in each for each in way.view.below(way.staging)),
        "tasks write",
        seconds=BOUND_SECONDS,
    )
    fail_over(cluster)
    assert command.ended().code == 0, command.out + command.err[-4000:]
    way.is_whole(count)


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_fail_over_in_mid_rename_publishes_once(
    way: HdfsWay, cluster: Ha, is_carried_out: bool
) -> None:
    """The rename happened or not, and nobody says so: the next run finds out."""
    count = way.produce(messages(500))
    told = Interruption("RENAME", "/_staging/", is_carried_out, lambda: fail_over(cluster))
    with interrupted(cluster.active().web_url, told) as url:
        first = way.command("land", **behind(way, cluster, url)).ended()
    assert told.happened.is_set()
    assert first.code != 0, "it can't know what has become of the rename"
    assert "it is unknown if" in first.err
    way.lands()
    way.is_whole(count)


def test_a_fail_over_in_mid_listing_is_not_noticed(way: HdfsWay, cluster: Ha) -> None:
    count = way.produce(messages(500))
    told = Interruption("LISTSTATUS", "/_staging/", False, lambda: fail_over(cluster))
    with interrupted(cluster.active().web_url, told) as url:
        landed = way.command("land", **behind(way, cluster, url)).ended()
    assert told.happened.is_set()
    assert landed.code == 0, landed.out + landed.err[-4000:]
    way.is_whole(count)


def test_a_fail_over_in_good_order_between_two_runs_is_not_noticed(
    way: HdfsWay, cluster: Ha
) -> None:
    count = way.produce(messages(500))
    cluster.hand_over(cluster.active(), cluster.standby())
    way.lands()
    way.is_whole(count)


def test_an_observer_that_lags_is_not_believed(cluster: Ha) -> None:
    active, observer = cluster.active(), cluster.standby()
    cluster.observe(observer)
    urls = [f"http://{each.web_at}" for each in (observer, active)]
    try:
        for number in range(20):
            path = f"/observed/{number}"
            put(active.web_url, path, b"x", "root")
            store = WebHdfsFileStore(NameNodes(urls, user="root"), "hdfs://tally")
            assert store.status(path), f"{path} was written a moment before"
    finally:
        cluster.stand_by(observer)


def behind(way: HdfsWay, cluster: Ha, url: str) -> dict[str, str]:
    """The connection with a pipe before the NameNode that is active now."""
    found = json.loads(way.environ[WEBHDFS])
    found["host"] = f"{url},http://{cluster.standby().web_at}"
    return {WEBHDFS: json.dumps(found)}
