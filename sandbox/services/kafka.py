"""Kafka in KRaft mode: a node that is broker and controller, further brokers, whole clusters.

The static quorum (``controller.quorum.voters``) is used throughout and never mixed with the
dynamic one (KAFKA-18987).
"""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from typing_extensions import override

from sandbox.entry.jars import ensure_jars
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST, answers
from sandbox.service import Home, Service, java

HEAP = "-Xmx512m"
ANSWER_SECONDS = 10.0
CONTROLLER_ID = 1

SETTINGS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may register again only when its old session has run out; the default is 9 s.
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    # Twice a second the controller would write that nothing has happened, and force it to disk.
    "metadata.max.idle.interval.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "log.segment.bytes": "16777216",
    "log.retention.check.interval.ms": "2000",
    # The default buffer of 128 MB does not fit the heap.
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Compaction and the end of hung transactions within seconds: tests wait for both.
    "log.cleaner.backoff.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

# Dead brokers are noticed, and unclean leaders elected, within seconds: for tests of truncation.
FAST_FAILOVER: Mapping[str, str] = {
    "controlled.shutdown.enable": "false",
    "replica.lag.time.max.ms": "3000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "unclean.leader.election.interval.ms": "1000",
}

LOGGING = """\
rootLogger.level = info
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c{1}: %m%n
"""


class KafkaNode(Service):
    """One Kafka process: broker, controller or both."""

    cluster_id_fact = "kafka_cluster_id"
    """Under what the state remembers the id; a second cluster of one sandbox has its own."""

    def __init__(
        self,
        home: Home,
        name: str,
        *,
        node_id: int,
        roles: Sequence[str],
        controller_port: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """``controller_port``: the name of the port of the one controller, node CONTROLLER_ID."""
        names = {"broker": name, "controller": f"{name}-controller"}
        super().__init__(home, name, port_names=[names[role] for role in roles])
        self.node_id = node_id
        self._roles = tuple(roles)
        self._controller_port = controller_port
        self._settings = dict(settings or {})

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports[self.port_names[0]]}"

    @property
    @override
    def memory(self) -> str:
        return HEAP

    @property
    def cluster_id(self) -> str:
        """16 random bytes in URL-safe base 64, as Kafka's own tool makes them."""
        return str(self.home.state.once(self.cluster_id_fact, _random_id()))

    @override
    def prepare(self) -> None:
        (self.folder / "server.properties").write_text(
            "".join(f"{key}={value}\n" for key, value in self._properties().items())
        )
        (self.folder / "log4j2.properties").write_text(LOGGING)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format()

    @override
    def command(self) -> list[str]:
        return self._java("kafka.Kafka", ["server.properties"])

    @override
    def missing(self) -> str | None:
        if not all(answers(self.home.ports[name]) for name in self.port_names):
            return "it does not accept connections"
        return self._missing_metadata() if "broker" in self._roles else None

    def _missing_metadata(self) -> str | None:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            found = client.list_topics(timeout=ANSWER_SECONDS)
        except KafkaException as failure:
            return f"it gives no metadata ({failure.args[0]})"
        if found.cluster_id != self.cluster_id:
            return "another cluster answers on its port"
        return None if self.node_id in found.brokers else "it is not registered with the controller"

    def _properties(self) -> dict[str, str]:
        ports = self.home.ports
        listeners = []
        if "broker" in self._roles:
            listeners.append(f"PLAINTEXT://{HOST}:{ports[self.name]}")
        if "controller" in self._roles:
            listeners.append(f"CONTROLLER://{HOST}:{ports[f'{self.name}-controller']}")
        properties = {
            "process.roles": ",".join(self._roles),
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{ports[self._controller_port]}",
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
        }
        if "broker" in self._roles:
            properties["advertised.listeners"] = listeners[0]
        return {**properties, **SETTINGS, **self._settings}

    def _format(self) -> None:
        argv = self._java(
            "kafka.tools.StorageTool",
            [
                "format",
                "-t",
                self.cluster_id,
                "-c",
                "server.properties",
                "--ignore-formatted",
            ],
        )
        with self.log.open("ab") as out:
            done = subprocess.run(argv, cwd=self.folder, stdout=out, stderr=out, check=False)
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not format its storage", self.log)

    def _java(self, main: str, arguments: Sequence[str]) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return java(
            HEAP, logging, classpath=[ensure_jars("kafka") / "*"], main=main, arguments=arguments
        )


class Kafka(KafkaNode):
    """The sandbox's Kafka: node 1, and the brokers that were added to it."""

    def __init__(self, home: Home) -> None:
        super().__init__(
            home,
            "kafka",
            node_id=CONTROLLER_ID,
            roles=("broker", "controller"),
            controller_port="kafka-controller",
        )
        self.added = [self._broker(node_id) for node_id in home.state.fact("added_brokers", [])]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(node.address for node in (self, *self.added))

    def add_broker(self) -> KafkaNode:
        """One more broker, started and ready; it stays part of this sandbox."""
        node = self._broker(2 + len(self.added))
        self.added.append(node)
        self.home.state.replace("added_brokers", [added.node_id for added in self.added])
        node.start()
        return node

    def _broker(self, node_id: int) -> KafkaNode:
        return KafkaNode(
            self.home,
            f"kafka-{node_id}",
            node_id=node_id,
            roles=("broker",),
            controller_port="kafka-controller",
        )


class KafkaCluster:
    """A cluster of its own: node 1 is the controller alone, the brokers are numbered from 2."""

    def __init__(self, home: Home, *, brokers: int, settings: Mapping[str, str]) -> None:

        def node(node_id: int, role: str) -> KafkaNode:
            return KafkaNode(
                home,
                f"kafka-{node_id}",
                node_id=node_id,
                roles=(role,),
                controller_port=f"kafka-{CONTROLLER_ID}-controller",
                settings=settings,
            )

        self.controller = node(CONTROLLER_ID, "controller")
        self.brokers = {node_id: node(node_id, "broker") for node_id in range(2, 2 + brokers)}

    @property
    def nodes(self) -> list[KafkaNode]:
        """All nodes, the controller first."""
        return [self.controller, *self.brokers.values()]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for clients."""
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Start all nodes, then wait until every one is ready."""
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait()

    def stop(self) -> None:
        """Stop the brokers, then the controller."""
        for node in reversed(self.nodes):
            node.stop()


def _random_id() -> str:
    while True:
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not found.startswith("-"):  # would read as an option
            return found
