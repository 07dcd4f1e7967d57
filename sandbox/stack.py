"""The sandbox as a whole: which services there are, in what order they start and stop."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from filelock import FileLock

from sandbox.clusters.cluster import Cluster
from sandbox.clusters.known import CLUSTER_NAMES, CLUSTERS
from sandbox.connections import SPARK_MASTER, airflow_connections, client_variables
from sandbox.entry.class_archive import ensure_class_archive
from sandbox.entry.jars import ensure_jars
from sandbox.entry.layout import ROOT, connections_file, state_dir
from sandbox.errors import SandboxError, ServiceFailed, WrongUse
from sandbox.ports import Ports
from sandbox.service import Home, Service, program
from sandbox.services.airflow import Airflow
from sandbox.services.hdfs import Hdfs
from sandbox.services.kafka import FAST_FAILOVER, Kafka, KafkaCluster
from sandbox.services.postgres import Postgres
from sandbox.services.spark_connect import SparkConnect
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
    "spark-connect": 15002,
}
GROUPS = ("kafka", "hdfs", "postgres", "airflow", "spark-connect")

# HDFS takes no file, and PostgreSQL no commit, on a disk with less than their reserves.
LEAST_FREE_BYTES = 2_000_000_000

Report = Callable[[str], None]


class Sandbox:
    """One state directory and the services in it.

    Each service can be started, stopped and killed by itself.
    While a service is down, its port is another sandbox's for the taking. Free ports are taken by
    chance, so without ``usual_ports`` that does not come about.
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        usual_ports: Mapping[str, int] = USUAL_PORTS,
    ) -> None:
        self.directory = Path(directory).resolve() if directory is not None else state_dir()
        self.home = _home(self.directory, usual_ports)
        self.kafka = Kafka(self.home)
        self.hdfs = Hdfs(self.home)
        self.postgres = Postgres(self.home)
        self.spark_connect = SparkConnect(self.home, SPARK_MASTER)
        self.clusters = {each.name: each(self.home) for each in CLUSTERS}
        self.airflow = Airflow(self.home, self.postgres, self._connections)

    @property
    def groups(self) -> dict[str, Sequence[Service]]:
        """The services by the names that ``up`` takes."""
        return {
            "kafka": [self.kafka, *self.kafka.added],
            "hdfs": self.hdfs.services,
            "postgres": [self.postgres],
            "airflow": self.airflow.services,
            "spark-connect": [self.spark_connect],
            **{name: cluster.services for name, cluster in self.clusters.items()},
        }

    @property
    def services(self) -> list[Service]:
        """Every service of the sandbox, in the order in which they are told of."""
        return [service for group in self.groups.values() for service in group]

    @property
    def wanted(self) -> list[str]:
        """The groups that were asked for since the last ``down``."""
        return list(self.home.state.fact("wanted", []))

    def up(
        self,
        only: Iterable[str] | None = None,
        *,
        beside: Iterable[str] = (),
        report: Report = lambda text: None,
    ) -> None:
        """Start the named groups and return when each is really ready.

        ``only`` names all that is to be started, by default the usual groups; ``beside`` names what
        comes beside them, so clusters. What runs already is left alone; Airflow brings PostgreSQL
        along. Raises SandboxError on a full disk, and when a service does not come up; the others
        stay up.
        """
        wanted = _checked([*(GROUPS if only is None else only), *beside])
        require_free_disk(self.directory)
        with FileLock(self.directory / "lock"):
            self.home.state.replace("wanted", sorted({*self.wanted, *wanted}))
            self.home.interrupted.clear()
            self._choose_ports(report)
            try:
                if {"airflow", "spark-connect"} & set(wanted):
                    ensure_class_archive()
                self._start_together(wanted, report)
            finally:
                self.home.ports.release(*self._port_names)
                self._write_connections()

    def down(self, *, purge: bool = False) -> int:
        """Stop everything; the number of processes that were ended. Data is kept unless purged.

        Raises SandboxError if a process survived.
        """
        with FileLock(self.directory / "lock"):
            before = len(self.processes())
            connections_file(self.directory).unlink(missing_ok=True)
            self.home.state.replace("wanted", [])
            self.airflow.stop()  # before the database that it uses
            with ThreadPoolExecutor() as pool:
                for done in [pool.submit(service.stop) for service in self.services]:
                    done.result()
            left = self.processes()
            if left:
                raise SandboxError(
                    f"processes {left} could not be ended. Next: look at them with ps, then repeat"
                )
            if purge:
                self._purge()
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
        """A Kafka cluster apart from any sandbox, not started: controller 1, brokers from 2 on.

        A dead broker is noticed within seconds unless the settings say otherwise.
        """
        return KafkaCluster(
            _home(Path(directory).resolve(), {}),
            brokers=brokers,
            settings=FAST_FAILOVER if settings is None else settings,
        )

    @property
    def _wanted_clusters(self) -> list[Cluster]:
        return [self.clusters[name] for name in self.wanted if name in self.clusters]

    @property
    def _port_names(self) -> list[str]:
        """The ports of all that a sandbox always has, and of the clusters that were asked for."""
        added = [name for cluster in self._wanted_clusters for name in cluster.port_names]
        return [*USUAL_PORTS, *added]

    def _choose_ports(self, report: Report) -> None:
        """Choose the ports of all services before any starts: some need another's address."""
        running = {
            name for service in self.services if service.is_running for name in service.port_names
        }
        self.home.ports.claim(*(name for name in self._port_names if name not in running))
        for moved in self.home.ports.moved:
            report(moved)
        self.home.ports.moved.clear()

    def _start_together(self, wanted: Sequence[str], report: Report) -> None:
        starters: dict[str, Callable[[Report], None]] = {
            "kafka": self._start_kafka,
            "hdfs": self._start_hdfs,
            "postgres": lambda report: self._start_databases(
                report, with_airflow="airflow" in wanted
            ),
            "spark-connect": self._start_spark_connect,
            **{name: partial(self._start_cluster, each) for name, each in self.clusters.items()},
        }
        failures = []
        with ThreadPoolExecutor() as pool:
            running = [
                pool.submit(starters[group], report) for group in wanted if group in starters
            ]
            try:
                for done in as_completed(running):
                    failure = done.exception()
                    if isinstance(failure, SandboxError):
                        failures.append(str(failure))
                    elif failure is not None:
                        raise failure
            except BaseException:
                self.home.interrupted.set()  # or leaving this block would wait for all the rest
                raise
        if failures:
            raise SandboxError("\n".join(failures))

    def _start_kafka(self, report: Report) -> None:
        with _timed("Kafka", report):
            self.kafka.start()
            for broker in self.kafka.added:
                broker.start()
        ensure_jars("spark-kafka")  # the connections name them, for whatever reads Kafka by Spark

    def _start_spark_connect(self, report: Report) -> None:
        with _timed("Spark Connect", report):
            self.spark_connect.start()

    def _start_cluster(self, cluster: Cluster, report: Report) -> None:
        with _timed(cluster.title, report):
            cluster.start()

    def _start_hdfs(self, report: Report) -> None:
        with _timed("HDFS", report):
            self.hdfs.start()

    def _start_databases(self, report: Report, *, with_airflow: bool) -> None:
        with _timed("PostgreSQL", report):
            self.postgres.start()
        with ThreadPoolExecutor() as pool:
            migration = pool.submit(self._migrate_ledger, report)
            if with_airflow:
                if self.airflow.is_outdated:
                    report("Airflow's settings or addresses changed: it is started anew")
                with _timed("Airflow", report):
                    self.airflow.start()
            migration.result()

    def _migrate_ledger(self, report: Report) -> None:
        """Bring the ledger's schema up to date, by the package's own command."""
        if not (ROOT / "plugins" / "tallystick" / "__main__.py").exists():
            return
        log = self.home.folder("logs") / "ledger-migrate.log"
        env = {**os.environ, **airflow_connections(self), "PYTHONPATH": str(ROOT / "plugins")}
        env["LEDGER_DSN"] = self.postgres.dsn("tallystick")
        with _timed("the ledger's schema", report), log.open("wb") as out:
            argv = [program("python"), "-P", "-m", "tallystick", "ledger", "migrate"]
            done = subprocess.run(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        if done.returncode != 0:
            raise ServiceFailed("the ledger", "could not be migrated", log)

    def _connections(self) -> dict[str, str]:
        """Airflow's connections to all that was asked for. Values contain passwords."""
        found = airflow_connections(self)
        for cluster in self._wanted_clusters:
            found |= cluster.connections()
        return found

    def _purge(self) -> None:
        """Delete what services wrote, and nothing else: other things lie beside it."""
        for service in self.services:
            service.purge()
        for name in ("logs", "hdfs", "airflow"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
        (self.directory / "state.json").unlink(missing_ok=True)

    def _write_connections(self) -> None:
        found = {**client_variables(self), **self._connections()}
        write_private(connections_file(self.directory), json.dumps(found, indent=1, sort_keys=True))


def _home(directory: Path, usual_ports: Mapping[str, int]) -> Home:
    directory.mkdir(parents=True, exist_ok=True)
    # Others have no business here; as root PostgreSQL's user must get through to its own directory.
    directory.chmod(0o711 if os.geteuid() == 0 else 0o700)
    state = State(directory)
    return Home(directory, state, Ports(state, usual_ports))


def require_free_disk(directory: Path) -> None:
    """Return if services can write below the directory; raises SandboxError on a full disk."""
    free = shutil.disk_usage(directory).free
    if free < LEAST_FREE_BYTES:
        raise SandboxError(
            f"the disk of {directory} is full: {free / 1e9:.1f} GB are free, and HDFS takes no file"
            f" with less than {LEAST_FREE_BYTES / 1e9:.0f} GB. Next: free some, or name a directory"
            " on another disk by TALLYSTICK_SANDBOX_DIR"
        )


@contextlib.contextmanager
def _timed(what: str, report: Report) -> Iterator[None]:
    began = time.monotonic()
    yield
    report(f"{what} is ready ({time.monotonic() - began:.1f} s)")


def _checked(wanted: list[str]) -> list[str]:
    known = (*GROUPS, *CLUSTER_NAMES)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise WrongUse(
            f"no such service: {', '.join(unknown) or '(none named)'}. Known: {', '.join(known)}"
        )
    if "airflow" in wanted:
        wanted.append("postgres")
    return [name for name in known if name in wanted]
