"""An HDFS of a test's own with three DataNodes: as many as its smallest erasure coding takes."""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.hdfs import Hdfs
from sandbox.state import State
from tests.support.kafka_topics import wait_until
from tests.support.sandbox_fixtures import HdfsPlace
from tests.support.store_hdfs import run_hadoop

POLICY = "XOR-2-1-1024k"


@dataclass(frozen=True)
class StripedHdfs:
    """A running HDFS, and the DataNodes beside its first one."""

    _hdfs: Hdfs
    _more: list[subprocess.Popen[bytes]]

    @property
    def place(self) -> HdfsPlace:
        """Where it is."""
        node = self._hdfs.namenode
        return HdfsPlace(node.web_url, node.address, getpass.getuser())

    def put_in_stripes(self, path: str) -> None:
        """Have all files below the directory written in stripes from now on."""
        self._run("fs.FsShell", "-mkdir", "-p", path)
        self._run("hdfs.tools.ECAdmin", "-enablePolicy", "-policy", POLICY)
        self._run("hdfs.tools.ECAdmin", "-setPolicy", "-path", path, "-policy", POLICY)

    def shell(self, *arguments: str) -> None:
        """Run `hdfs dfs` with these arguments."""
        self._run("fs.FsShell", *arguments)

    def lose_a_data_node(self) -> None:
        """Kill one of the three; returns when the NameNode holds it for dead."""
        lost = self._more.pop()
        lost.kill()
        lost.wait()
        self.wait_for_data_nodes()

    def wait_for_data_nodes(self) -> None:
        """Return when as many DataNodes are alive as are running, with room for files."""
        wanted = 1 + len(self._more)

        def known() -> bool:
            live = self._hdfs.namenode.live_datanodes().values()
            return len(live) == wanted and all(each["capacity"] for each in live)

        wait_until(known, f"{wanted} DataNodes are alive")

    def _run(self, main: str, *arguments: str) -> None:
        conf = [self._hdfs.namenode.family.conf]
        run_hadoop(f"org.apache.hadoop.{main}", *arguments, conf=conf)


@contextmanager
def hdfs_with_three_data_nodes(directory: Path) -> Iterator[StripedHdfs]:
    """Start it; nothing of it is left after the block."""
    directory.mkdir(parents=True, exist_ok=True)
    state = State(directory)
    hdfs = Hdfs(Home(directory, state, Ports(state, {})))
    running = StripedHdfs(hdfs, [])
    try:
        hdfs.start()
        for number in (2, 3):
            running._more.append(_another_data_node(hdfs, directory / f"datanode{number}"))
        running.wait_for_data_nodes()
        yield running
    finally:
        for each in running._more:
            each.kill()
            each.wait()
        hdfs.stop()


def _another_data_node(hdfs: Hdfs, directory: Path) -> subprocess.Popen[bytes]:
    directory.mkdir()
    settings = {
        "dfs.datanode.data.dir": directory.as_uri(),
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
    }
    told = [part for name, value in settings.items() for part in ("-D", f"{name}={value}")]
    argv = [*hdfs.datanode.command(), *told]
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(argv, stdout=log, stderr=log)
