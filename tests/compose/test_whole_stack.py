"""docker-compose.yml on a real engine: up, landed, proven, accepted by two, down and up again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.compose_stack import UP, Stack, stack
from tests.support.kafka_producers import messages, produce
from tests.support.repository import DOCS, commands_in

# A build from nothing takes minutes.
pytestmark = pytest.mark.timeout(2400)
HEALTHY = {
    "init": "exited 0",
    **dict.fromkeys(
        (
            "postgres",
            "kafka",
            "namenode",
            "datanode",
            "spark-connect",
            "api-server",
            "scheduler",
            "dag-processor",
            "triggerer",
        ),
        "healthy",
    ),
}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, up from empty volumes, with both topics and records in them."""
    with stack(tmp_path_factory.mktemp("compose")) as made:
        made.must(*UP)
        (said,) = commands_in(DOCS / "install.md", "docker compose exec kafka")
        as_said = [each for each in shlex.split(said)[2:] if each != "exec"]
        made.must("exec", "-T", *as_said)
        made.must("exec", "-T", *("clicks" if each == "orders" else each for each in as_said))
        for topic in ("orders", "clicks"):
            produce(made.kafka, topic, messages(300))
        for topic in ("orders", "clicks"):
            made.run_of(f"ingest_{topic}")
        yield made


def test_every_service_is_healthy_and_stays_on_loopback(up: Stack) -> None:
    assert up.states() == HEALTHY
    lines = up.must("ps", "--format", "json").splitlines()
    published = {each["URL"] for line in lines for each in json.loads(line)["Publishers"] or []}
    assert published - {""} == {"127.0.0.1"}


def test_what_was_landed_through_airflow_is_proven(up: Stack) -> None:
    for feed in ("orders", "clicks"):
        up.run_of(f"reconcile_{feed}")
        told = up.tallystick("reconcile", feed, "--json")
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout)["verdict"] == "PROVEN_OK"
        assert sum(each["rows"] for each in _files(up, feed)) == 300
        assert up.tallystick("complete", feed).returncode == 0


def test_no_more_copies_are_asked_for_than_there_are_datanodes(up: Stack) -> None:
    for each in _files(up, "orders"):
        told = json.loads(_webhdfs(up, "GET", each["path"], "GETFILESTATUS"))
        assert told["FileStatus"]["replication"] == 1


def test_a_connection_that_is_made_in_airflow_is_read_by_another_part(up: Stack) -> None:
    made = {"connection_id": "made_here", "conn_type": "http", "password": "a secret"}
    up.rest().post("/connections", made)
    told = up.must(
        "exec", "-T", "scheduler", "airflow", "connections", "get", "made_here", "-ojson"
    )
    assert '"a secret"' in told


def test_two_users_accept_a_loss_and_all_of_it_outlives_down_and_up(up: Stack) -> None:
    lost = _files(up, "clicks")[0]["path"]
    _webhdfs(up, "DELETE", lost, "DELETE")
    assert up.tallystick("reconcile", "clicks").returncode == 1
    (finding, *_) = up.page("admin", "GET", "/feeds/clicks/findings")["findings"]
    path = f"/findings/{finding['number']}/waiver-requests"
    read = up.page("admin", "GET", f"/findings/{finding['number']}")["waiver_evidence"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    asked = up.page(
        "admin",
        "POST",
        path,
        reason="tried",
        until=tomorrow,
        evidence=list(read.values()),
    )
    number = asked["waiver_request"]["number"]
    with pytest.raises(AssertionError, match="somebody else must approve"):
        up.page("admin", "POST", f"{path}/{number}/approve")
    up.page("op", "POST", f"{path}/{number}/approve")
    told = up.tallystick("reconcile", "clicks", "--json")
    assert (told.returncode, json.loads(told.stdout)["verdict"]) == (0, "WAIVED"), told.stdout

    up.must("down")
    up.must(*UP)
    assert up.states() == HEALTHY
    for feed, verdict in (("orders", "PROVEN_OK"), ("clicks", "WAIVED")):
        told = up.tallystick("reconcile", feed, "--json")
        assert (told.returncode, json.loads(told.stdout)["verdict"]) == (0, verdict), told.stdout
    produce(up.kafka, "orders", messages(30))
    up.run_of("ingest_orders")
    assert sum(each["rows"] for each in _files(up, "orders")) == 330


def _files(up: Stack, feed: str) -> list[dict[str, str | int]]:
    files: list[dict[str, str | int]] = json.loads(up.tallystick("files", feed, "--json").stdout)[
        "files"
    ]
    return files


def _webhdfs(up: Stack, verb: str, path: str, operation: str) -> str:
    """An answer of the NameNode, which is asked where it is reached: in its own container."""
    address = f"http://namenode:9870/webhdfs/v1{path}?op={operation}&user.name=hdfs"
    return up.must("exec", "-T", "namenode", "curl", "-fsS", "-X", verb, address)
