"""Feeds that land on a cluster of the sandbox by the command line, each in a process of its own."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import pyspark

from sandbox import Sandbox
from sandbox.clusters.cluster import Cluster
from sandbox.service import QUICK_JVM
from tallystick.settings.feed import Feed
from tests.support.kafka_producers import Message, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.landed_files import names_below, write_once
from tests.support.sandbox_fixtures import running
from tests.support.whole_way import Way
from tests.trouble.command import Command, Folder

USER = "root"
BOUND_SECONDS = 120.0
# What was killed ends soon; what is started on a busy machine may begin late.
BEGIN_SECONDS = 240.0
SOON_UP = " ".join(QUICK_JVM)
STANDALONE_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "600m",
    "spark.executor.extraJavaOptions": SOON_UP,
    "spark.ui.enabled": "false",
}
YARN_CONF = {
    "spark.driver.extraJavaOptions": SOON_UP,
    "spark.executor.extraJavaOptions": SOON_UP,
    "spark.driver.memory": "600m",
    "spark.executor.memory": "600m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.yarn.am.memory": "300m",
    "spark.ui.enabled": "false",
    # The nodes are this machine: nothing need be uploaded.
    "spark.yarn.jars": f"local:{quote(str(Path(pyspark.__file__).parent))}/jars/*",
}
HARD_TO_PACK = {"replication": 1, "compression_level": 19}


@dataclass(frozen=True)
class ClusterPlace:
    """A sandbox with a cluster up, and a folder of feeds."""

    sandbox: Sandbox
    folder: Folder
    environ: Mapping[str, str]

    @classmethod
    @contextlib.contextmanager
    def up(cls, sandbox: Sandbox, folder: Path, kind: type[Cluster]) -> Iterator[ClusterPlace]:
        """Kafka, HDFS, PostgreSQL, and this cluster while the block lasts."""
        with running(sandbox, kind, "kafka", "hdfs", "postgres") as cluster:
            env = sandbox.env()
            write_once(env["WEBHDFS_URL"], USER)
            yield cls(sandbox, Folder(folder), env | cluster.connections())

    def way(
        self, connection: str, conf: Mapping[str, str], records: Iterable[Message], **parts: Any
    ) -> ClusterWay:
        """A feed that lands on this connection what is in its topic."""
        kafka = self.environ["KAFKA_BOOTSTRAP_SERVERS"]
        topic = create_topic(kafka, partitions=2)
        sent = list(records)
        for partition in range(2):
            produce(kafka, topic, sent, partition=partition)
        way = Way(topic, self.environ)
        spark = {"connection": connection, "conf": dict(conf)}
        found = ClusterWay(self, way, {0: (0, len(sent)), 1: (0, len(sent))})
        self.folder.write(found.feed(spark=spark, **parts))
        return found


@dataclass(frozen=True)
class ClusterWay:
    """One feed on a cluster."""

    place: ClusterPlace
    way: Way
    ranges: Mapping[int, tuple[int, int]]

    def feed(self, **parts: Any) -> Feed:
        target = {"root": self.way.root, "replication": 1} | parts.pop("target", {})
        return self.way.feed(target=target, **parts)

    def command(self, *arguments: str) -> Command:
        """A command about the feed, started."""
        verb, *rest = arguments
        return Command(self.place.folder, self.place.environ, verb, self.way.name, "--json", *rest)

    def lands(self) -> None:
        """Lands by a command, and that ends well."""
        ended = self.command("land").ended()
        assert ended.code == 0, ended.err[-4000:]

    def lands_after_a_kill(self) -> None:
        """Lands what a killed command has left, as if its lease were over."""
        with psycopg.connect(self.place.environ["LEDGER_DSN"], autocommit=True) as ledger:
            ledger.execute(
                "UPDATE batch SET lease_until = now() WHERE holder IS NOT NULL AND feed = %s",
                [self.way.name],
            )
        self.lands()

    def is_whole(self) -> None:
        """Every record once, by pyarrow and by our own proof; nothing is left in staging."""
        assert self.way.rows() == self.way.produced(self.ranges)
        told = self.command("reconcile").ended()
        assert told.code == 0, told.out + told.err[-2000:]
        assert told.document["verdict"] == "PROVEN_OK"
        assert self.way.staged() == []

    def until_it_writes(self) -> None:
        """Returns when tasks have begun to write files that nobody has committed."""
        url, staging = self.place.environ["WEBHDFS_URL"], f"{self.way.root}/_staging"
        wait_until(
            lambda: any("/_temporary/" in each for each in names_below(url, staging)),
            "tasks write",
            seconds=BEGIN_SECONDS,
        )


def slow_messages(count: int = 6_000) -> list[Message]:
    """Packed at the highest level they keep a core busy for seconds."""
    return [Message(random.randbytes(400).hex().encode()) for _ in range(count)]


def java_of(processes: Iterable[psutil.Process], word: str) -> list[psutil.Process]:
    """The JVMs among them whose command line has this word."""
    found = []
    for each in processes:
        with contextlib.suppress(psutil.Error):
            if Path(each.exe()).name == "java" and any(word in part for part in each.cmdline()):
                found.append(each)
    return found


def killed(find: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    """Those that were found, and are gone by SIGKILL."""
    doomed: list[psutil.Process] = []

    def are_there() -> bool:
        doomed[:] = find()
        return bool(doomed)

    wait_until(are_there, "there is something to kill", seconds=BEGIN_SECONDS)
    for each in doomed:
        each.kill()
    psutil.wait_procs(doomed, timeout=BOUND_SECONDS)
    return doomed
