"""YARN: a ResourceManager and a NodeManager, which keep logs in the sandbox's HDFS."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil
from typing_extensions import override

from sandbox.clusters.cluster import Cluster
from sandbox.entry.jars import connector_jars, ensure_jars
from sandbox.entry.system import ensure_java
from sandbox.ports import HOST
from sandbox.processes import KILL_SECONDS
from sandbox.service import Home, Service, java, make_private, program
from sandbox.services.hdfs import HEAP, LOGGING, OPENS, site_xml

ANSWER_SECONDS = 10.0
CONTAINERS_MB = 4096
_SERVER = "org.apache.hadoop.yarn.server"
_PORTS = {
    "yarn-resourcemanager": "yarn.resourcemanager.address",
    "yarn-scheduler": "yarn.resourcemanager.scheduler.address",
    "yarn-tracker": "yarn.resourcemanager.resource-tracker.address",
    "yarn-admin": "yarn.resourcemanager.admin.address",
    "yarn-page": "yarn.resourcemanager.webapp.address",
    "yarn-nodemanager": "yarn.nodemanager.address",
    "yarn-localizer": "yarn.nodemanager.localizer.address",
    "yarn-node-page": "yarn.nodemanager.webapp.address",
}
_OF_NODE = ("yarn-nodemanager", "yarn-localizer", "yarn-node-page")
_ONE_QUEUE = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # Of two applications, each must be able to have its master.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.8",
}


class YarnDaemon(Service):
    """A ResourceManager or NodeManager: a JVM on the configuration that both share."""

    main: str

    @property
    @override
    def memory(self) -> str:
        return HEAP

    @override
    def environment(self) -> Mapping[str, str]:
        # Containers inherit these: Python of the driver, and where it listens.
        path = os.pathsep.join([str(Path(program("python")).parent), os.environ["PATH"]])
        settings = {"JAVA_HOME": str(ensure_java()), "PATH": path, "SPARK_LOCAL_IP": HOST}
        return {**os.environ, **settings}

    @override
    def prepare(self) -> None:
        ensure_jars("spark-kafka")  # the connections name them
        make_private(storage_of(self.home))
        conf = conf_of(self.home)
        (conf / "core-site.xml").write_text(site_xml(self._core_site()))
        (conf / "yarn-site.xml").write_text(site_xml(self._yarn_site()))
        (conf / "capacity-scheduler.xml").write_text(site_xml(_ONE_QUEUE))
        (conf / "log4j.properties").write_text(LOGGING)

    @override
    def command(self) -> list[str]:
        classpath = [conf_of(self.home), ensure_jars("yarn") / "*"]
        return java(HEAP, *OPENS, classpath=classpath, main=self.main)

    def _core_site(self) -> dict[str, str]:
        return {"fs.defaultFS": f"hdfs://{HOST}:{self.home.ports['namenode']}"}

    def _yarn_site(self) -> dict[str, str]:
        storage = storage_of(self.home)
        ports = {key: f"{HOST}:{self.home.ports[name]}" for name, key in _PORTS.items()}
        return {
            **ports,
            "yarn.resourcemanager.hostname": HOST,
            "yarn.resourcemanager.bind-host": HOST,
            "yarn.nodemanager.bind-host": HOST,
            "yarn.nodemanager.local-dirs": str(storage / "local"),
            "yarn.nodemanager.log-dirs": str(storage / "containers"),
            "yarn.nodemanager.resource.memory-mb": str(CONTAINERS_MB),
            "yarn.nodemanager.resource.cpu-vcores": "4",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.env-whitelist": "JAVA_HOME,PATH,SPARK_LOCAL_IP",
            # A node is unhealthy by default when its disk is nine tenths full.
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
            # What a container has written is asked for after its end.
            "yarn.log-aggregation-enable": "true",
            "yarn.nodemanager.remote-app-log-dir": "/yarn-logs",
            # A node is asked once a second by default, and each step of a start waits for that.
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
        }


class ResourceManager(YarnDaemon):
    """Gives out containers; ready when its page says that it has started."""

    main = f"{_SERVER}.resourcemanager.ResourceManager"

    def __init__(self, home: Home) -> None:
        # The NodeManager's ports belong to the configuration that both share.
        names = tuple(name for name in _PORTS if name not in _OF_NODE)
        super().__init__(home, "yarn-resourcemanager", port_names=names)

    @property
    @override
    def address(self) -> str:
        return self.web_url

    @property
    def web_url(self) -> str:
        """Its page, and its REST interface."""
        return f"http://{HOST}:{self.home.ports['yarn-page']}"

    @override
    def missing(self) -> str | None:
        found = self.said("info")
        if found is None:
            return "it does not answer"
        state = found["clusterInfo"]["state"]
        return None if state == "STARTED" else f"it is {state}"

    def nodes(self) -> int:
        """How many nodes it can start containers on."""
        found = self.said("metrics")
        return int(found["clusterMetrics"]["activeNodes"]) if found else 0

    def said(self, what: str) -> dict[str, Any] | None:
        """An answer of its REST interface; None if it gives none."""
        url = f"{self.web_url}/ws/v1/cluster/{what}"
        try:
            answer = httpx.get(url, timeout=ANSWER_SECONDS, trust_env=False)
            return dict(answer.raise_for_status().json())
        except (httpx.HTTPError, ValueError):
            return None


class NodeManager(YarnDaemon):
    """Starts containers, each in a session of its own; ready when it is counted."""

    main = f"{_SERVER}.nodemanager.NodeManager"

    def __init__(self, home: Home, resource_manager: ResourceManager) -> None:
        super().__init__(home, "yarn-nodemanager", port_names=_OF_NODE)
        self._resource_manager = resource_manager

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports[self.name]}"

    @override
    def missing(self) -> str | None:
        return None if self._resource_manager.nodes() else "the ResourceManager counts no live node"

    @override
    def members(self) -> list[int]:
        return sorted({*super().members(), *(each.pid for each in self.containers())})

    @override
    def stop(self) -> None:
        super().stop()
        self._end_containers()

    @override
    def kill(self, *, whole_session: bool = True) -> None:
        super().kill(whole_session=whole_session)
        if whole_session:
            self._end_containers()

    @override
    def purge(self) -> None:
        super().purge()
        for path in (self.home.folder("yarn"), storage_of(self.home)):
            shutil.rmtree(path, ignore_errors=True)

    def containers(self) -> list[psutil.Process]:
        """The processes of all containers: they work below the node's directory."""
        below = str(storage_of(self.home) / "local")
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.cwd().startswith(below):
                    found.append(process)
        return found

    def _end_containers(self) -> None:
        left = self.containers()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=KILL_SECONDS)


def conf_of(home: Home) -> Path:
    """The directory of the configuration, for daemons and clients."""
    return home.folder("yarn", "conf")


def storage_of(home: Home) -> Path:
    """The directory in which containers work and write: its path never has a blank.

    The script by which YARN starts a container does not quote it.
    """
    inside = home.directory / "yarn"
    return home.outside("yarn") if re.search(r"\s", str(inside)) else inside


class Yarn(Cluster):
    """A ResourceManager with one node. It believes everybody who he says he is."""

    name = "yarn"
    title = "YARN"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.resource_manager = ResourceManager(home)
        self.node_manager = NodeManager(home, self.resource_manager)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return (self.resource_manager, self.node_manager)

    @override
    def connections(self) -> Mapping[str, str]:
        jars = connector_jars()
        extra = {"jars": jars, "hadoop-conf-dir": str(conf_of(self.home))}
        modes = {"SPARK_YARN": "client", "SPARK_YARN_CLUSTER": "cluster"}
        return {
            f"AIRFLOW_CONN_{name}": json.dumps(
                {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": mode, **extra}}
            )
            for name, mode in modes.items()
        }
