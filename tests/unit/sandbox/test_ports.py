"""Ports: kept over restarts, never shared between sandboxes, replaced when taken."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.errors import SandboxError
from sandbox.ports import FREE_FROM, FREE_UNTIL, Ports, answers, is_free
from sandbox.state import State, write_private


def ports_in(directory: Path, usual: dict[str, int] | None = None) -> Ports:
    directory.mkdir(exist_ok=True)
    return Ports(State(directory), usual or {})


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_usual_port_is_taken_when_free_and_kept(tmp_path: Path) -> None:
    usual = a_free_port()
    first = ports_in(tmp_path, {"kafka": usual})
    first.claim("kafka")
    first.release("kafka")
    again = ports_in(tmp_path, {"kafka": usual + 1})
    again.claim("kafka")
    assert (first["kafka"], again["kafka"]) == (usual, usual)
    assert again.moved == []
    again.release("kafka")


def test_a_port_that_a_killed_server_is_just_closing_is_kept(tmp_path: Path) -> None:
    """Its configuration, and its clients, know the port already."""
    ports = ports_in(tmp_path)
    ports.claim("kafka")
    ports.release("kafka")
    with socket.create_server(("127.0.0.1", ports["kafka"])) as dying, ThreadPoolExecutor() as pool:
        again = ports_in(tmp_path)
        claimed = pool.submit(again.claim, "kafka")
        time.sleep(0.3)
        dying.close()
        claimed.result(10)
    assert (again["kafka"], again.moved) == (ports["kafka"], [])
    again.release("kafka")


def test_two_sandboxes_that_choose_at_once_choose_differently(tmp_path: Path) -> None:
    usual = a_free_port()
    many = [ports_in(tmp_path / str(number), {"kafka": usual}) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda ports: ports.claim("kafka"), many))
    assert len({ports["kafka"] for ports in many}) == 8
    assert sorted(ports["kafka"] == usual for ports in many) == [False] * 7 + [True]
    for ports in many:
        ports.release("kafka")


def test_a_port_that_a_stranger_took_is_replaced_and_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        assert answers(taken)
        assert not is_free(taken)
        ports = ports_in(tmp_path, {"kafka": taken})
        ports.claim("kafka")
    assert FREE_FROM <= ports["kafka"] < FREE_UNTIL
    assert ports.moved == [f"port {taken} is taken by another program: kafka uses {ports['kafka']}"]
    ports.release("kafka")


def test_a_port_that_was_never_chosen_is_asked_for_in_words(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="sandbox up"):
        ports_in(tmp_path)["kafka"]


def test_secrets_stay_the_same_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: State(tmp_path).secret("airflow"), range(16)))
    assert len(found) == 1
    assert len(found.pop()) >= 24
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
