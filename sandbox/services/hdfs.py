"""HDFS: one NameNode, one DataNode, WebHDFS on."""

from __future__ import annotations

import grp
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import httpx
from typing_extensions import override

from sandbox.entry.jars import ensure_jars
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST
from sandbox.service import Home, Service, java, make_private

HEAP = "-Xmx256m"
ANSWER_SECONDS = 2.0
# Hadoop reaches into the JDK (HADOOP-19310).
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "sun.nio.ch")
]
SERVER = "org.apache.hadoop.hdfs.server"

LOGGING = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1}: %m%n
log4j.logger.org.apache.hadoop.hdfs.StateChange=WARN
log4j.logger.BlockStateChange=WARN
"""


class HdfsDaemon(Service):
    """A NameNode or DataNode: a JVM on the configuration that both share."""

    main: str

    @property
    @override
    def memory(self) -> str:
        return HEAP

    @override
    def command(self) -> list[str]:
        return self._java()

    @override
    def prepare(self) -> None:
        conf = self.home.folder("hdfs", "conf")
        (conf / "core-site.xml").write_text(_xml(self._core_site()))
        (conf / "hdfs-site.xml").write_text(_xml(self._hdfs_site()))
        (conf / "log4j.properties").write_text(LOGGING)
        for application in ("hdfs", "datanode"):  # the web pages, which the jars lack
            self.home.folder("hdfs", "www", "webapps", application)

    def _java(self, *arguments: str) -> list[str]:
        root = self.home.folder("hdfs")
        classpath = [root / "www", root / "conf", ensure_jars("hdfs") / "*"]
        return java(HEAP, *OPENS, classpath=classpath, main=self.main, arguments=arguments)

    def _core_site(self) -> dict[str, str]:
        return {
            "fs.defaultFS": f"hdfs://{HOST}:{self.home.ports['namenode']}",
            "hadoop.tmp.dir": str(storage_of(self.home) / "tmp"),
        }

    def _hdfs_site(self) -> dict[str, str]:
        ports = self.home.ports
        return {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": (storage_of(self.home) / "name").as_uri(),
            "dfs.datanode.data.dir": (storage_of(self.home) / "data").as_uri(),
            "dfs.namenode.http-address": f"{HOST}:{ports['namenode-http']}",
            "dfs.datanode.address": f"{HOST}:{ports['datanode']}",
            "dfs.datanode.http.address": f"{HOST}:{ports['datanode-http']}",
            "dfs.datanode.ipc.address": f"{HOST}:{ports['datanode-ipc']}",
            "dfs.datanode.hostname": HOST,
            "dfs.permissions.superusergroup": grp.getgrgid(os.getgid()).gr_name,
            "dfs.namenode.safemode.extension": "0",
            "dfs.namenode.safemode.min.datanodes": "1",
            "dfs.namenode.fs-limits.min-block-size": "1048576",
            # A DataNode that fell silent is dead after 30 s (2 x 10 s + 10 heartbeats), not after
            # ten minutes.
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.heartbeat.recheck-interval": "10000",
            # Read by the DataNode when it writes for WebHDFS: closing a small file waits this long
            # if the block's report isn't in yet, by default 400 ms in every second case.
            "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
        }


class NameNode(HdfsDaemon):
    """The NameNode; ready when it answers: safe mode ends only with the DataNode's report."""

    main = f"{SERVER}.namenode.NameNode"

    def __init__(self, home: Home) -> None:
        # The DataNode's ports belong to the configuration that both share: whoever comes first
        # chooses them.
        super().__init__(home, "namenode", port_names=("namenode", "namenode-http"))

    @property
    @override
    def address(self) -> str:
        return f"hdfs://{HOST}:{self.home.ports['namenode']}"

    @property
    def web_url(self) -> str:
        """WebHDFS and JMX."""
        return f"http://{HOST}:{self.home.ports['namenode-http']}"

    @override
    def prepare(self) -> None:
        super().prepare()
        storage = storage_of(self.home)
        formatted = storage / "formatted"
        if formatted.exists():
            return
        make_private(storage)
        for leftover in ("name", "data"):  # of a format that was killed
            shutil.rmtree(storage / leftover, ignore_errors=True)
        with self.log.open("ab") as out:
            done = subprocess.run(
                self._java("-format", "-nonInteractive"),
                cwd=self.folder,
                stdout=out,
                stderr=out,
                check=False,
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not format its storage", self.log)
        formatted.touch()

    @override
    def purge(self) -> None:
        super().purge()
        shutil.rmtree(storage_of(self.home), ignore_errors=True)

    @override
    def missing(self) -> str | None:
        found = self.jmx("NameNodeInfo")
        return "it does not answer" if found is None else None

    def in_safe_mode(self) -> bool:
        """True while it accepts no writes."""
        found = self.jmx("NameNodeInfo")
        return found is None or bool(found["Safemode"])

    def live_datanodes(self) -> dict[str, Any]:
        """What it knows of the DataNodes that it holds for alive."""
        found = self.jmx("NameNodeInfo")
        return {} if found is None else dict(json.loads(found["LiveNodes"]))

    def jmx(self, bean: str) -> dict[str, Any] | None:
        """A bean of its JMX page; None if it does not answer or has none such."""
        return _jmx(self.web_url, f"Hadoop:service=NameNode,name={bean}")


class DataNode(HdfsDaemon):
    """The DataNode; ready when the NameNode counts it as alive and has left safe mode."""

    main = f"{SERVER}.datanode.DataNode"

    def __init__(self, home: Home, namenode: NameNode) -> None:
        super().__init__(home, "datanode", port_names=("datanode", "datanode-http", "datanode-ipc"))
        self._namenode = namenode

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports['datanode']}"

    @override
    def missing(self) -> str | None:
        url = f"http://{HOST}:{self.home.ports['datanode-http']}"
        mine = _jmx(url, "Hadoop:service=DataNode,name=DataNodeInfo")
        if mine is None:
            return "it does not answer"
        # The attribute appears only when the DataNode has begun to look for its NameNode.
        actors = json.loads(mine.get("BPServiceActorInfo", "[]"))
        if not actors or any(actor["ActorState"] != "RUNNING" for actor in actors):
            return "it is not registered with the NameNode"
        if not self._namenode.live_datanodes():
            return "the NameNode counts no live DataNode"
        return "the NameNode is in safe mode" if self._namenode.in_safe_mode() else None


def storage_of(home: Home) -> Path:
    """Where both daemons keep their data.

    A DataNode takes its directory's URL for a format string: a space, a percent sign or an umlaut
    kills it. Such state directories get their HDFS data elsewhere.
    """
    if re.fullmatch(r"[A-Za-z0-9._/-]+", str(home.directory)):
        return home.directory / "hdfs" / "storage"
    return home.outside("hdfs")


class Hdfs:
    """NameNode and DataNode together."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.namenode = NameNode(home)
        self.datanode = DataNode(home, self.namenode)
        self.services: Sequence[Service] = (self.namenode, self.datanode)

    def start(self) -> None:
        """Start both; returns with a live DataNode, out of safe mode."""
        if not self.datanode.is_running:
            self.home.ports.claim(*self.datanode.port_names)
        self.namenode.start(wait=False)
        self.datanode.start(wait=False)
        self.namenode.wait()
        self.datanode.wait()

    def stop(self) -> None:
        """Stop both."""
        self.datanode.stop()
        self.namenode.stop()

    def kill(self) -> None:
        """SIGKILL both."""
        self.datanode.kill()
        self.namenode.kill()


def _jmx(url: str, bean: str) -> dict[str, Any] | None:
    try:
        answer = httpx.get(
            f"{url}/jmx", params={"qry": bean}, timeout=ANSWER_SECONDS, trust_env=False
        )
        beans = answer.raise_for_status().json()["beans"]
    except (httpx.HTTPError, ValueError, KeyError):
        return None
    return beans[0] if beans else None


def _xml(properties: dict[str, str]) -> str:
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>", ""])
