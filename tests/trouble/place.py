"""Kafka, HDFS and the ledger of the tests of trouble: real ones, each behind a gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import Sandbox
from sandbox.ports import HOST
from sandbox.services.kafka import KafkaNode
from tests.support.landed_files import write_once
from tests.trouble.gate import Gate

KAFKA_USER, KAFKA_PASSWORD = "lander", 'kafka-pa55word$1:/@ "x\\'
_GATES = ("kafka-gate", "kafka-sasl", "webhdfs-gate", "namenode-gate", "ledger-gate")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the services are, and how each is taken away."""

    sandbox: Sandbox
    kafka: KafkaNode
    kafka_gate: Gate
    sasl_servers: str
    """Another listener of the same Kafka, not behind the gate: by user and password."""
    webhdfs_gate: Gate
    namenode_gate: Gate
    ledger_gate: Gate

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.kafka_gate.port}"

    @property
    def webhdfs_url(self) -> str:
        return f"http://{HOST}:{self.webhdfs_gate.port}"

    @property
    def hdfs_url(self) -> str:
        return f"hdfs://{HOST}:{self.namenode_gate.port}"

    @contextmanager
    def without_hdfs(self) -> Iterator[None]:
        """The NameNode is there for nobody, neither over HTTP nor for Spark."""
        with self.webhdfs_gate.closed(), self.namenode_gate.closed():
            yield


@contextmanager
def started(directory: Path, ledger_port: int) -> Iterator[Place]:
    """All services up; gone without a trace afterwards."""
    sandbox = Sandbox(directory, usual_ports={})
    ports = sandbox.home.ports
    ports.claim(*_GATES, "kafka", "kafka-controller")
    kafka = _kafka(sandbox)
    with ExitStack() as stack:
        stack.callback(sandbox.down, purge=True)
        stack.callback(kafka.stop)
        kafka.start(wait=False)
        sandbox.up(only=["hdfs"])
        kafka.wait()
        write_once(sandbox.hdfs.namenode.web_url, "root")
        gates = [
            stack.enter_context(Gate(ports[name], target))
            for name, target in (
                ("kafka-gate", ports["kafka"]),
                ("webhdfs-gate", ports["namenode-http"]),
                ("namenode-gate", ports["namenode"]),
                ("ledger-gate", ledger_port),
            )
        ]
        stack.callback(ports.release, *_GATES)
        sasl_servers = f"{HOST}:{ports['kafka-sasl']}"
        yield Place(sandbox, kafka, gates[0], sasl_servers, *gates[1:])


def _kafka(sandbox: Sandbox) -> KafkaNode:
    """A broker that sends its clients to the gate, and a second listener that asks for a user."""
    ports = sandbox.home.ports
    escaped = KAFKA_PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' user_{KAFKA_USER}="{escaped}";'
    )
    listeners = {
        "PLAINTEXT": ports["kafka"], "CONTROLLER": ports["kafka-controller"],
        "SASL": ports["kafka-sasl"],
    }  # fmt: skip
    advertised = {"PLAINTEXT": ports["kafka-gate"], "SASL": ports["kafka-sasl"]}
    settings = {
        "listeners": _addresses(listeners),
        "advertised.listeners": _addresses(advertised),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT"
        ),
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        # A properties file takes one more backslash away.
        "listener.name.sasl.plain.sasl.jaas.config": login.replace("\\", "\\\\"),
    }
    return KafkaNode(
        sandbox.home,
        "kafka",
        node_id=1,
        roles=("broker", "controller"),
        controller_port="kafka-controller",
        settings=settings,
    )


def _addresses(ports: dict[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
