"""HDFS: one NameNode, one DataNode, WebHDFS on.

A sandbox may have several: each a family of these daemons, with a name and settings of its own.
"""

from __future__ import annotations

import grp
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
ANSWER_SECONDS = 10.0
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


def _plain_send(method: str, url: str, query: Mapping[str, str]) -> httpx.Response:
    return httpx.request(
        method,
        url,
        params=query,
        timeout=ANSWER_SECONDS,
        trust_env=False,
        follow_redirects=True,
    )


@dataclass(frozen=True, slots=True)
class Family:
    """The daemons of one HDFS: what they are called, where they lie, how they are secured."""

    home: Home
    name: str = "hdfs"
    """Also their folder's, below the state directory."""
    host: str = HOST
    scheme: str = "http"
    core_site: Callable[[], Mapping[str, str]] = dict
    """What their settings have beside the usual ones, or in their place."""
    hdfs_site: Callable[[], Mapping[str, str]] = dict
    prepare: Callable[[Path], None] = lambda conf: None
    """Makes what the settings name, in the folder of the configuration or elsewhere."""
    java_options: Sequence[str] = ()
    send: Callable[[str, str, Mapping[str, str]], httpx.Response] = _plain_send
    """Makes a request of a daemon (method, URL, query) as its superuser."""

    def named(self, name: str) -> str:
        """What a service or port of this name is called in the sandbox."""
        return name if self.name == "hdfs" else f"{self.name}-{name}"

    def at(self, name: str) -> str:
        """Host and port."""
        return f"{self.host}:{self.home.ports[self.named(name)]}"

    @property
    def conf(self) -> Path:
        """The folder of the configuration, for daemons and clients."""
        return self.home.folder(self.name, "conf")

    @property
    def storage(self) -> Path:
        """Where the daemons keep their data.

        A DataNode takes its directory's URL for a format string: a space, a percent sign or an
        umlaut kills it. Such state directories get their HDFS data elsewhere.
        """
        if re.fullmatch(r"[A-Za-z0-9._/-]+", str(self.home.directory)):
            return self.home.directory / self.name / "storage"
        return self.home.outside(self.name)

    def bean(self, at: str, name: str) -> dict[str, Any] | None:
        """A bean of a daemon's JMX page; None if it does not answer or has none such."""
        try:
            url = f"{self.scheme}://{at}/jmx"
            answer = self.send("GET", url, {"qry": f"Hadoop:service={name}"})
            beans = answer.raise_for_status().json()["beans"]
        except (httpx.HTTPError, ValueError, KeyError):
            return None
        return beans[0] if beans else None


class HdfsDaemon(Service):
    """A NameNode or DataNode: a JVM on the configuration that its family shares."""

    main: str

    def __init__(self, family: Family, name: str, *, port_names: Sequence[str]) -> None:
        names = [family.named(each) for each in port_names]
        super().__init__(family.home, family.named(name), port_names=names)
        self.family = family

    @property
    @override
    def memory(self) -> str:
        return HEAP

    @override
    def command(self) -> list[str]:
        return self._java()

    @override
    def prepare(self) -> None:
        conf = self.family.conf
        (conf / "core-site.xml").write_text(site_xml(self._core_site()))
        (conf / "hdfs-site.xml").write_text(site_xml(self._hdfs_site()))
        (conf / "log4j.properties").write_text(LOGGING)
        for application in ("hdfs", "datanode", "journal"):  # the web pages, which the jars lack
            self.home.folder(self.family.name, "www", "webapps", application)
        self.family.prepare(conf)

    def _java(self, *arguments: str) -> list[str]:
        www = self.home.folder(self.family.name, "www")
        classpath = [www, self.family.conf, ensure_jars("hdfs") / "*"]
        options = (HEAP, *OPENS, *self.family.java_options)
        return java(*options, classpath=classpath, main=self.main, arguments=arguments)

    def _core_site(self) -> dict[str, str]:
        return {
            "fs.defaultFS": f"hdfs://{self.family.at('namenode')}",
            "hadoop.tmp.dir": str(self.family.storage / "tmp"),
            **self.family.core_site(),
        }

    def _hdfs_site(self) -> dict[str, str]:
        family = self.family
        return {
            "dfs.replication": "1",
            "dfs.namenode.name.dir": (family.storage / "name").as_uri(),
            "dfs.datanode.data.dir": (family.storage / "data").as_uri(),
            f"dfs.namenode.{family.scheme}-address": family.at("namenode-http"),
            "dfs.datanode.address": family.at("datanode"),
            f"dfs.datanode.{family.scheme}.address": family.at("datanode-http"),
            "dfs.datanode.ipc.address": family.at("datanode-ipc"),
            "dfs.datanode.hostname": family.host,
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
            **family.hdfs_site(),
        }


class NameNode(HdfsDaemon):
    """The NameNode; ready when it answers: safe mode ends only with the DataNode's report."""

    main = f"{SERVER}.namenode.NameNode"

    def __init__(self, family: Family, own_name: str = "namenode") -> None:
        # The DataNode's ports belong to the configuration that both share: whoever comes first
        # chooses them.
        super().__init__(family, own_name, port_names=(own_name, f"{own_name}-http"))
        self._own_name = own_name
        self.metadata = family.storage / own_name.replace("namenode", "name")

    @property
    @override
    def address(self) -> str:
        return f"hdfs://{self.family.at('namenode')}"

    @override
    def command(self) -> list[str]:
        return self._java(*self._who())

    def _who(self) -> Sequence[str]:
        """What tells it from another NameNode with the same configuration."""
        return ()

    @property
    def web_url(self) -> str:
        """WebHDFS and JMX."""
        return f"{self.family.scheme}://{self.web_at}"

    @property
    def web_at(self) -> str:
        """Host and port of its pages."""
        return self.family.at(f"{self._own_name}-http")

    @override
    def prepare(self) -> None:
        super().prepare()
        make_private(self.family.storage)
        formatted = self.family.storage / self._own_name.replace("namenode", "formatted")
        if formatted.exists():
            return
        for leftover in (self.metadata, self.family.storage / "data"):  # of one that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        self.format()
        formatted.touch()

    def format(self) -> None:
        """Make its metadata, of a file system without files."""
        with self.log.open("ab") as out:
            done = subprocess.run(
                self._java(*self._who(), "-format", "-nonInteractive"),
                cwd=self.folder,
                stdout=out,
                stderr=out,
                check=False,
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not format its storage", self.log)

    @override
    def purge(self) -> None:
        super().purge()
        shutil.rmtree(self.family.storage, ignore_errors=True)
        shutil.rmtree(self.home.directory / self.family.name, ignore_errors=True)

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
        return self.family.bean(self.web_at, f"NameNode,name={bean}")


class DataNode(HdfsDaemon):
    """The DataNode; ready when each NameNode knows its room and has left safe mode: it is alive and
    out of safe mode a moment before, and then no file can be written.
    """

    main = f"{SERVER}.datanode.DataNode"

    def __init__(self, family: Family, *namenodes: NameNode) -> None:
        names = ("datanode", "datanode-http", "datanode-ipc")
        super().__init__(family, "datanode", port_names=names)
        self._namenodes = namenodes

    @property
    @override
    def address(self) -> str:
        return self.family.at("datanode")

    @override
    def missing(self) -> str | None:
        mine = self.family.bean(self.family.at("datanode-http"), "DataNode,name=DataNodeInfo")
        if mine is None:
            return "it does not answer"
        # The attribute appears only when the DataNode has begun to look for its NameNode.
        actors = json.loads(mine.get("BPServiceActorInfo", "[]"))
        if not actors or any(actor["ActorState"] != "RUNNING" for actor in actors):
            return "it is not registered with the NameNode"
        found = map(self._unknown_to, self._namenodes)
        return next((each for each in found if each), None)

    def _unknown_to(self, namenode: NameNode) -> str | None:
        """What the NameNode lacks to have files written here; None if nothing."""
        live = namenode.live_datanodes()
        if not live:
            return f"{namenode.name} counts no live DataNode"
        if not any(each["capacity"] for each in live.values()):
            return f"{namenode.name} does not know yet what room it has"
        return f"{namenode.name} is in safe mode" if namenode.in_safe_mode() else None


class Hdfs:
    """NameNode and DataNode together."""

    def __init__(self, home: Home) -> None:
        self.home = home
        family = Family(home)
        self.namenode = NameNode(family)
        self.datanode = DataNode(family, self.namenode)
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


def site_xml(properties: Mapping[str, str]) -> str:
    """Hadoop's configuration file of these properties."""
    lines = [
        f"  <property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    return "\n".join(['<?xml version="1.0"?>', "<configuration>", *lines, "</configuration>", ""])
