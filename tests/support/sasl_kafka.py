"""A Kafka of its own that lets nobody in without a password."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from sandbox.ports import HOST, Ports
from sandbox.service import Home
from sandbox.services.kafka import CONTROLLER_ID, KafkaNode
from sandbox.state import State

MECHANISM = "PLAIN"
USER = "vera"
PASSWORD = 'Qx7#=s3cr3t ü"\\'


class SaslKafka(KafkaNode):
    """One node with a second listener; `secured_address` takes SASL_PLAINTEXT alone."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        state = State(directory)
        super().__init__(
            Home(directory, state, Ports(state, {})),
            "kafka",
            node_id=CONTROLLER_ID,
            roles=("broker", "controller"),
            controller_port="kafka-controller",
        )
        self.port_names = (*self.port_names, "kafka-secured")

    @property
    def secured_address(self) -> str:
        return f"{HOST}:{self.home.ports['kafka-secured']}"

    @property
    def properties(self) -> dict[str, str]:
        """What a client needs, under librdkafka's names."""
        return {
            "bootstrap.servers": self.secured_address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": PASSWORD,
        }

    @override
    def _properties(self) -> dict[str, str]:
        found = super()._properties()
        secured = f",SECURED://{self.secured_address}"
        password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        login = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
            f' user_{USER}="{password}";'
        )
        return found | {
            "listeners": found["listeners"] + secured,
            "advertised.listeners": found["advertised.listeners"] + secured,
            "listener.security.protocol.map": (
                f"{found['listener.security.protocol.map']},SECURED:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": MECHANISM,
            # The file is read as ISO 8859-1, and a backslash there begins an escape.
            "listener.name.secured.plain.sasl.jaas.config": (
                "".join(
                    c if c.isascii() else f"\\u{ord(c):04x}" for c in login.replace("\\", "\\\\")
                )
            ),
        }
