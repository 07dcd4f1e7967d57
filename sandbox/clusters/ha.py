"""A HDFS with two NameNodes that share their edits by a JournalNode; people fail over, no daemon.

ZooKeeper would only decide when. What a client sees of a fail-over is the same: one NameNode that
is dead or refuses as a standby, and another one that answers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from sandbox.clusters.cluster import Cluster
from sandbox.connections import SPARK_MASTER
from sandbox.entry.jars import connector_jars, ensure_jars
from sandbox.errors import ServiceFailed
from sandbox.ports import answers
from sandbox.service import Home, Service, java
from sandbox.services.hdfs import OPENS, SERVER, DataNode, Family, HdfsDaemon, NameNode

NAME_SERVICE: Final = "tally"
ADMIN_SECONDS: Final = 120


class JournalNode(HdfsDaemon):
    """Keeps the edits; ready when it answers, formatted or not."""

    main = "org.apache.hadoop.hdfs.qjournal.server.JournalNode"

    def __init__(self, family: Family) -> None:
        super().__init__(family, "journal", port_names=("journal", "journal-http"))

    @property
    @override
    def address(self) -> str:
        return self.family.at("journal")

    @override
    def missing(self) -> str | None:
        is_up = answers(self.home.ports[self.family.named("journal")])
        return None if is_up else "it does not answer"


class HaNameNode(NameNode):
    """One of the two; ready when it answers, active or standby."""

    def __init__(self, family: Family, number: int, first: HaNameNode | None = None) -> None:
        """`first`: whose metadata it starts with; the first one formats its own."""
        self.own_name = "namenode" if number == 1 else f"namenode{number}"
        super().__init__(family, self.own_name)
        self.node_id, self._first = f"nn{number}", first

    @property
    @override
    def address(self) -> str:
        return f"hdfs://{NAME_SERVICE}"

    @override
    def _who(self) -> Sequence[str]:
        return ("-D", f"dfs.ha.namenode.id={self.node_id}")

    @override
    def format(self) -> None:
        if self._first is None:
            super().format()
        else:
            shutil.copytree(self._first.metadata, self.metadata)

    @property
    def is_active(self) -> bool:
        """True if it is the one that answers clients."""
        found = self.jmx("NameNodeStatus")
        return found is not None and found["State"] == "active"


class Ha(Cluster):
    """Two NameNodes, a JournalNode and a DataNode. They believe everybody who he says he is."""

    name = "ha"
    title = "HDFS with two NameNodes"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        family = Family(home, self.name, core_site=self._core_site, hdfs_site=self._hdfs_site)
        self.family = family
        self.journal = JournalNode(family)
        first = HaNameNode(family, 1)
        self.namenodes = (first, HaNameNode(family, 2, first))
        # Ready for both: one in safe mode can't take over in good order.
        self.datanode = DataNode(family, *self.namenodes)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return (self.journal, *self.namenodes, self.datanode)

    @override
    def start(self) -> None:
        """Both NameNodes answer, one of them is active, and out of safe mode."""
        ensure_jars("spark-kafka")  # the connections name them
        down = [each for each in self.services if not each.is_running]
        self.home.ports.claim(*(name for each in down for name in each.port_names))
        self.journal.start()
        for each in self.namenodes:
            each.start()
        if not any(each.is_active for each in self.namenodes):
            self.take_over(self.namenodes[0])
        self.datanode.start()

    def active(self) -> HaNameNode:
        """The NameNode that answers clients; the first one while none does."""
        return next((each for each in self.namenodes if each.is_active), self.namenodes[0])

    def standby(self) -> HaNameNode:
        """The other one."""
        return next(each for each in self.namenodes if each is not self.active())

    def take_over(self, node: HaNameNode) -> None:
        """Make a NameNode active, whatever the other one says; the journal shuts that one out."""
        self._admin("-transitionToActive", "--forceactive", node.node_id)

    def hand_over(self, source: HaNameNode, target: HaNameNode) -> None:
        """Fail over in good order: both live."""
        self._admin("-failover", source.node_id, target.node_id)

    def observe(self, node: HaNameNode) -> None:
        """Make a standby an observer: it answers what writes nothing, and lags."""
        self._admin("-transitionToObserver", node.node_id)

    def stand_by(self, node: HaNameNode) -> None:
        """Make an observer a standby again."""
        self._admin("-transitionToStandby", node.node_id)

    @override
    def connections(self) -> Mapping[str, str]:
        hosts = ",".join(each.web_at for each in self.namenodes)
        hdfs = {
            "conn_type": "webhdfs",
            "host": hosts,
            "login": "root",
            "extra": {"fs": f"hdfs://{NAME_SERVICE}"},
        }
        jars = connector_jars()
        spark = {
            "conn_type": "spark",
            "host": SPARK_MASTER,
            "extra": {"jars": jars, "hadoop-conf-dir": str(self.family.conf)},
        }
        return {
            "AIRFLOW_CONN_WEBHDFS_HA": json.dumps(hdfs),
            "AIRFLOW_CONN_SPARK_HA": json.dumps(spark),
        }

    def _core_site(self) -> Mapping[str, str]:
        return {"fs.defaultFS": f"hdfs://{NAME_SERVICE}"}

    def _hdfs_site(self) -> Mapping[str, str]:
        service, family = NAME_SERVICE, self.family
        found = {
            "dfs.nameservices": service,
            f"dfs.ha.namenodes.{service}": ",".join(each.node_id for each in self.namenodes),
            f"dfs.client.failover.proxy.provider.{service}": (
                f"{SERVER}.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
            # A client that finds nobody active looks again after half a second, not after 15.
            "dfs.client.failover.sleep.base.millis": "200",
            "dfs.client.failover.sleep.max.millis": "1000",
            "dfs.client.failover.max.attempts": "60",
            # The journal takes edits of one NameNode only, so nobody need be shot.
            "dfs.ha.fencing.methods": "shell(/bin/true)",
            "dfs.ha.tail-edits.in-progress": "true",
            "dfs.ha.tail-edits.period": "1",
            "dfs.namenode.shared.edits.dir": f"qjournal://{family.at('journal')}/{service}",
            "dfs.journalnode.edits.dir": str(family.storage / "journal"),
            "dfs.journalnode.rpc-address": family.at("journal"),
            "dfs.journalnode.http-address": family.at("journal-http"),
        }
        for node in self.namenodes:
            which = f"{service}.{node.node_id}"
            found[f"dfs.namenode.rpc-address.{which}"] = family.at(node.own_name)
            found[f"dfs.namenode.http-address.{which}"] = node.web_at
            found[f"dfs.namenode.name.dir.{which}"] = node.metadata.as_uri()
        return found

    def _admin(self, *arguments: str) -> None:
        command = java(
            *OPENS,
            classpath=[self.family.conf, ensure_jars("hdfs") / "*"],
            main="org.apache.hadoop.hdfs.tools.DFSHAAdmin",
            arguments=arguments,
        )
        log = self.home.folder("logs") / "ha-admin.log"
        with log.open("ab") as out:
            done = subprocess.run(
                command,
                # With --forceactive it asks if somebody has looked whether nobody else is active.
                input=b"Y\n",
                stdout=out,
                stderr=out,
                timeout=ADMIN_SECONDS,
                check=False,
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, f"{' '.join(arguments)} failed", log)
