"""The sandbox as a whole: which services there are, in what order they start, what is told about them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Protocol

from filelock import FileLock

from sandbox.connections import airflow_connections, client_variables
from sandbox.entry.layout import connections_file, state_dir
from sandbox.errors import SandboxError
from sandbox.ports import Ports
from sandbox.service import Home, Service
from sandbox.services.hdfs import Hdfs
from sandbox.services.kafka import Kafka, KafkaCluster
from sandbox.services.postgres import Postgres
from sandbox.state import State, write_private

USUAL_PORTS = {
    "kafka": 19092,
    "kafka-controller": 19093,
    "namenode": 19000,
    "namenode-http": 19870,
    "datanode": 19866,
    "datanode-http": 19864,
    "datanode-ipc": 19867,
    "postgres": 15432,
    "airflow": 18080,
}
GROUPS = ("kafka", "hdfs", "postgres")

Report = Callable[[str], None]


class _Startable(Protocol):
    def start(self) -> None: ...


class Sandbox:
    """One state directory and the services in it.

    ``kafka``, ``hdfs``, ``postgres`` and ``airflow`` can be started, stopped and killed one by one.
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self.directory = Path(directory).resolve() if directory is not None else state_dir()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.home = _home(self.directory, USUAL_PORTS)
        self.kafka = Kafka(self.home)
        self.hdfs = Hdfs(self.home)
        self.postgres = Postgres(self.home)

    @property
    def services(self) -> list[Service]:
        """Every service of the sandbox, in the order in which they are told of."""
        return [self.kafka, *self.kafka.added, *self.hdfs.services, self.postgres]

    def up(self, only: Iterable[str] | None = None, *, report: Report = lambda text: None) -> None:
        """Start the named groups (all of GROUPS by default) and return when each is really ready.

        What runs already is left alone. Raises SandboxError when a service does not come up.
        """
        wanted = _checked(only)
        with FileLock(self.directory / "lock"):
            self._start_together(wanted, report)
            for moved in self.home.ports.moved:
                report(moved)
            self.home.ports.moved.clear()
            self._write_connections()

    def down(self, *, purge: bool = False) -> int:
        """Stop everything; the number of processes that were ended. Data is kept unless purged.

        Raises SandboxError if a process survived.
        """
        with FileLock(self.directory / "lock"):
            before = len(self.processes())
            connections_file(self.directory).unlink(missing_ok=True)
            with ThreadPoolExecutor() as pool:
                for done in [pool.submit(service.stop) for service in reversed(self.services)]:
                    done.result()
            left = self.processes()
            if left:
                raise SandboxError(f"these processes could not be ended: {left}. Next: look at them with ps, then repeat")
            if purge:
                self.postgres.purge()
        if purge:
            _purge(self.directory)
        return before

    def kill(self) -> None:
        """SIGKILL everything at once, as a crash of the machine would."""
        for service in self.services:
            service.kill()

    def processes(self) -> list[int]:
        """The numbers of all processes that belong to the sandbox."""
        return sorted({pid for service in self.services for pid in service.members()})

    def env(self) -> dict[str, str]:
        """Addresses and passwords of the running services, by the variables that clients read."""
        return client_variables(self)

    @staticmethod
    def kafka_cluster(
        directory: Path | str, *, brokers: int = 2, settings: Mapping[str, str] | None = None
    ) -> KafkaCluster:
        """A Kafka cluster apart from any sandbox, not started: a controller, node 1, and brokers numbered from 2."""
        directory = Path(directory).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        return KafkaCluster(_home(directory, {}), brokers=brokers, settings=settings)

    def _start_together(self, wanted: Sequence[str], report: Report) -> None:
        starters: dict[str, Callable[[], None]] = {
            "kafka": self._start_kafka,
            "hdfs": self.hdfs.start,
            "postgres": self.postgres.start,
        }
        failures = []
        with ThreadPoolExecutor() as pool:
            running = {pool.submit(starters[group]): group for group in wanted}
            for done in as_completed(running):
                failure = done.exception()
                if failure is None:
                    report(f"{running[done]} is ready")
                elif isinstance(failure, SandboxError):
                    failures.append(str(failure))
                else:
                    raise failure
        if failures:
            raise SandboxError("\n".join(failures))

    def _start_kafka(self) -> None:
        self.kafka.start()
        for broker in self.kafka.added:
            broker.start()

    def _write_connections(self) -> None:
        found = {**client_variables(self), **airflow_connections(self)}
        write_private(connections_file(self.directory), json.dumps(found, indent=1, sort_keys=True))


def _home(directory: Path, usual_ports: dict[str, int]) -> Home:
    state = State(directory)
    return Home(directory, state, Ports(state, usual_ports))


def _checked(only: Iterable[str] | None) -> list[str]:
    if only is None:
        return list(GROUPS)
    wanted = list(only)
    unknown = [name for name in wanted if name not in GROUPS]
    if unknown or not wanted:
        raise SandboxError(f"no such service: {', '.join(unknown) or '(none named)'}. Known: {', '.join(GROUPS)}")
    return [name for name in GROUPS if name in wanted]


def _purge(directory: Path) -> None:
    """Delete what services wrote; what set-up fetched stays."""
    kept = {"jars", "setup.lock", "jars.lock", "lock"}
    for entry in directory.iterdir():
        if entry.name not in kept:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                os.unlink(entry)
