"""A HDFS with Kerberos and https under an authority of its own, by the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from sandbox.clusters.kerberos import CLIENT, ROOT, Kerberos
from tests.support.hdfs_clusters import HdfsView, HdfsWay
from tests.support.kafka_producers import messages
from tests.support.sandbox_fixtures import running
from tests.trouble.command import Folder

WEBHDFS, SPARK = "AIRFLOW_CONN_WEBHDFS_KERBEROS", "AIRFLOW_CONN_SPARK_KERBEROS"
BY_KEYTAB = ("principal", "keytab")
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def cluster(sandbox: Sandbox) -> Iterator[Kerberos]:
    with running(sandbox, Kerberos, "kafka", "postgres") as found:
        # The first write of new daemons takes seconds: no impatient test shall wait for it.
        first = f"{found.namenode.web_url}/webhdfs/v1{ROOT}/first-write"
        found.send_as(CLIENT, "PUT", first, {"op": "CREATE"}).raise_for_status()
        yield found


@pytest.fixture
def way(sandbox: Sandbox, cluster: Kerberos, tmp_path: Path) -> HdfsWay:
    """A feed whose processes have no ticket of their own."""
    no_tickets = {"KRB5CCNAME": f"FILE:{tmp_path / 'no-tickets'}"}
    environ = sandbox.env() | dict(cluster.connections()) | dict(cluster.environment) | no_tickets
    view = HdfsView(cluster.family, lambda: cluster.namenode)
    return HdfsWay(Folder(tmp_path / "feeds"), environ, view, cluster.name, ROOT)


def without(way: HdfsWay, variable: str, *extras: str, **others: Any) -> str:
    """A connection that lacks these extras, and has others."""
    found = json.loads(way.environ[variable])
    kept = {key: value for key, value in found["extra"].items() if key not in extras}
    return json.dumps({**found, "extra": {**kept, **others}})


def test_a_landing_by_keytab_alone_is_proven_to_the_last_byte(way: HdfsWay) -> None:
    count = way.produce(messages(3_000))
    way.lands()
    way.is_whole(count, level=3)


def test_a_landing_by_ticket_cache_is_proven_to_the_last_byte(
    way: HdfsWay, cluster: Kerberos, tmp_path: Path
) -> None:
    cluster.kdc.log_in(CLIENT, tmp_path / "tickets")
    environ = {
        "KRB5CCNAME": f"FILE:{tmp_path / 'tickets'}",
        WEBHDFS: without(way, WEBHDFS, *BY_KEYTAB),
        SPARK: without(way, SPARK, *BY_KEYTAB),
    }
    count = way.produce(messages(3_000))
    way.lands(**environ)
    way.is_whole(count, level=3, **environ)


def test_nobody_is_let_in_without_a_ticket(way: HdfsWay) -> None:
    way.produce(messages(10))
    environ = {WEBHDFS: without(way, WEBHDFS, *BY_KEYTAB)}
    refused = way.command("land", **environ).ended()
    assert refused.code != 0
    assert "Kerberos gives no ticket for the server" in refused.err
    assert "(connection webhdfs_kerberos)" in refused.err
    assert list(way.view.below(way.root)) == []


def test_a_connection_that_knows_nothing_of_kerberos_is_told(way: HdfsWay) -> None:
    way.produce(messages(10))
    environ = {WEBHDFS: without(way, WEBHDFS, "kerberos", *BY_KEYTAB)}
    refused = way.command("land", **environ).ended()
    assert refused.code != 0
    assert "(connection webhdfs_kerberos)" in refused.err
    assert "asks for Kerberos." in refused.err


def test_an_authority_that_nobody_knows_is_refused_and_the_extra_named(way: HdfsWay) -> None:
    way.produce(messages(10))
    refused = way.command("land", **{WEBHDFS: without(way, WEBHDFS, "verify")}).ended()
    assert refused.code != 0
    assert "is not trusted" in refused.err
    assert "(connection webhdfs_kerberos)" in refused.err
    assert "extra verify names." in refused.err


def test_a_delegation_token_stands_for_a_ticket(way: HdfsWay, cluster: Kerberos) -> None:
    query = {"op": "GETDELEGATIONTOKEN", "renewer": CLIENT}
    url = f"{cluster.namenode.web_url}/webhdfs/v1/"
    token = cluster.send_as(CLIENT, "GET", url, query).json()["Token"]["urlString"]
    environ = {WEBHDFS: without(way, WEBHDFS, "kerberos", *BY_KEYTAB, token=token)}
    count = way.produce(messages(500))
    way.lands(**environ)
    way.is_whole(count, **environ)
    forged = token[:40] + token[40:48].swapcase() + token[48:]
    environ = {WEBHDFS: without(way, WEBHDFS, "kerberos", *BY_KEYTAB, token=forged)}
    refused = way.command("land", **environ).ended()
    assert refused.code != 0
    assert "(connection webhdfs_kerberos)" in refused.err
    assert token[:20] not in refused.out + refused.err
