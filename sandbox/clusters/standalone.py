"""Spark's own cluster: a master, and a worker that starts executors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence

import httpx
from typing_extensions import override

from sandbox.clusters.cluster import Cluster
from sandbox.entry.jars import connector_jars, ensure_jars
from sandbox.entry.system import ensure_java
from sandbox.ports import HOST
from sandbox.service import QUICK_JVM, Home, Service, program

DAEMON_MEMORY = "256m"
CORES = 2
WORKER_MEMORY = "2g"
ANSWER_SECONDS = 10.0
_DEPLOY = "org.apache.spark.deploy"
_MASTER, _MASTER_PAGE = "standalone-master", "standalone-master-page"
_WORKER, _WORKER_PAGE = "standalone-worker", "standalone-worker-page"


class Daemon(Service):
    """A process of the cluster; both say what they are on a page in JSON."""

    main: str
    page: str

    @override
    def environment(self) -> Mapping[str, str]:
        settings = {
            "JAVA_HOME": str(ensure_java()),
            "SPARK_DAEMON_MEMORY": DAEMON_MEMORY,
            "SPARK_DAEMON_JAVA_OPTS": " ".join(QUICK_JVM),
            "SPARK_LOCAL_IP": HOST,
        }
        return {**os.environ, **settings}

    @override
    def prepare(self) -> None:
        ensure_jars("spark-kafka")  # the connection names them

    @override
    def command(self) -> Sequence[str]:
        ports = self.home.ports
        listens = ["--host", HOST, "--port", str(ports[self.name])]
        listens += ["--webui-port", str(ports[self.page])]
        return [program("spark-class"), f"{_DEPLOY}.{self.main}", *listens, *self.arguments()]

    def arguments(self) -> Sequence[str]:
        """What it is told beside its ports."""
        return ()

    @property
    @override
    def address(self) -> str:
        return f"spark://{HOST}:{self.home.ports[self.name]}"

    def said(self) -> Mapping[str, object] | None:
        """What its page says; None if it does not answer."""
        url = f"http://{HOST}:{self.home.ports[self.page]}/json/"
        try:
            answer = httpx.get(url, timeout=ANSWER_SECONDS, trust_env=False).raise_for_status()
            return dict(answer.json())
        except (httpx.HTTPError, ValueError):
            return None


class Master(Daemon):
    """Knows workers and applications; ready when it is the one that leads."""

    main, page = "master.Master", _MASTER_PAGE

    def __init__(self, home: Home) -> None:
        super().__init__(home, _MASTER, port_names=(_MASTER, _MASTER_PAGE))

    @property
    @override
    def memory(self) -> str:
        return f"-Xmx{DAEMON_MEMORY}"

    @override
    def missing(self) -> str | None:
        found = self.said()
        if found is None:
            return "it does not answer"
        return None if found["status"] == "ALIVE" else f"it is {found['status']}"

    def workers(self) -> int:
        """How many workers it holds for alive."""
        found = self.said()
        return int(str(found["aliveworkers"])) if found else 0


class Worker(Daemon):
    """Starts executors, as children in its own session; ready when the master counts it."""

    main, page = "worker.Worker", _WORKER_PAGE

    def __init__(self, home: Home, master: Master) -> None:
        super().__init__(home, _WORKER, port_names=(_WORKER, _WORKER_PAGE))
        self._master = master

    @property
    @override
    def memory(self) -> str:
        return f"-Xmx{DAEMON_MEMORY}, executors {WORKER_MEMORY}"

    @override
    def arguments(self) -> Sequence[str]:
        return (
            *("--cores", str(CORES), "--memory", WORKER_MEMORY),
            *("--work-dir", str(self.folder / "work")),
            self._master.address,
        )

    @override
    def missing(self) -> str | None:
        if self.said() is None:
            return "it does not answer"
        return None if self._master.workers() else "the master counts no live worker"


class Standalone(Cluster):
    """A master with one worker. Nobody proves to it who he is."""

    name = "standalone"
    title = "Spark standalone"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.master = Master(home)
        self.worker = Worker(home, self.master)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return (self.master, self.worker)

    @override
    def connections(self) -> Mapping[str, str]:
        jars = connector_jars()
        port = self.home.ports[_MASTER]
        found = {
            "conn_type": "spark",
            "host": f"spark://{HOST}",
            "port": port,
            "extra": {"jars": jars},
        }
        return {"AIRFLOW_CONN_SPARK_STANDALONE": json.dumps(found)}
