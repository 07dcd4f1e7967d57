"""What a person reads at three in the morning, and what a program gets: exit codes and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.trouble.command import Command, Folder, dead_port
from tests.trouble.scene import NewScene, Scene

Start = Callable[..., Command]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "feeds")


@pytest.fixture
def start(folder: Folder) -> Iterator[Start]:
    """Starts commands; none outlives the test."""
    with ExitStack() as stack:

        def started(environ: Mapping[str, str], *arguments: str) -> Command:
            command = Command(folder, environ, *arguments)
            stack.callback(command.kill)
            return command

        yield started


def said(command: Command, code: int, *words: str) -> None:
    """It ended with this code, and said all these words on standard error, without any stack."""
    assert command.code == code, (command.out, command.err)
    for each in words:
        assert each in command.err, (each, command.err)
    assert "Traceback" not in command.err
    assert "Error(" not in command.err


def test_a_service_is_down(scene: Scene, folder: Folder, start: Start) -> None:
    """All at the same time: each of them waits patiently before it gives up."""
    folder.write(scene.feed())
    usual, name = dict(scene.environ), scene.name
    with dead_port() as port:
        dead = f"127.0.0.1:{port}"
        no_kafka = usual | {"KAFKA_BOOTSTRAP_SERVERS": dead}
        no_hdfs = usual | {"WEBHDFS_URL": f"http://{dead}"}
        no_ledger = usual | {"LEDGER_DSN": f"postgresql://tallystick:secret@{dead}/ledger"}
        running = [
            start(no_kafka, "plan", name),
            start(no_kafka, "reconcile", name, "--json"),
            start(no_hdfs, "land", name, "--json"),
            start(no_ledger, "land", name),
            start(no_ledger, "batches", name, "--json"),
        ]
        plan, reconcile, land, unledgered, batches = (each.ended() for each in running)
    silent = f"Kafka at {dead} (connection kafka_default) did not answer"
    said(plan, 3, f"error: feed {name}, at plan: {silent}", "next: Check the")
    assert plan.out == ""
    said(reconcile, 3)
    [finding] = reconcile.document["findings"]
    assert finding["code"] == "U1"
    assert dead in finding["cause"]
    away = f"HDFS at {dead} (connection webhdfs_default) could not serve"
    said(land, 3, f"error: feed {name}, at plan: {away}", "next: Check the NameNode")
    assert land.document["error"]["kind"] == "StorageUnavailable"
    assert land.document["error"]["may_retry"] is True
    said(unledgered, 3, f"error: feed {name}, at finish: the ledger can't be reached", str(port))
    assert "secret" not in unledgered.err
    assert unledgered.out == ""
    said(batches, 3, "error: the ledger can't be reached", "next: Check the database")
    assert batches.document["error"]["kind"] == "LedgerUnavailable"
    assert batches.document["exit_code"] == 3
    scene.recovers()


def test_wrong_input(new_scene: NewScene, folder: Folder, start: Start) -> None:
    missing, good = new_scene(), new_scene()
    missing.topic = "never-made"
    folder.write(missing.feed())
    folder.write(good.feed())
    (folder.path / "broken.yaml").write_text("feed: broken\nsource: {topics: orders}\n")
    environ = good.environ
    running = [
        start(environ, "land", missing.name, "--json"),
        start(environ, "land", good.name, "--window-start", "2026-11-01", "--json"),
        start(environ, "land", "broken", "--json"),
        start(environ, "land", good.name),
    ]
    topic, half, broken, beside = (each.ended() for each in running)
    said(
        topic, 3, f"error: feed {missing.name}, at plan: topic 'never-made' does not exist",
        "next: Create the topic, or correct source.topic in the feed file",
    )  # fmt: skip
    assert topic.document["error"]["may_retry"] is False
    said(half, 2, "error: --window-end is missing", "next: Give both")
    assert half.document["error"]["kind"] == "WindowIncomplete"
    said(broken, 2, "broken.yaml:2: source.topics: unknown key", "next: Correct the feed file")
    assert broken.document["error"]["problems"]
    assert (beside.code, "nothing is due" in beside.out) == (0, True), "others are not held up"
