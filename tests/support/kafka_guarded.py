"""A real broker that lets nobody in without a password, over TLS or not, for tests of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import Sandbox
from sandbox.clusters.kafka_tls import GUEST, READING, USER, KafkaTls

__all__ = ["GUEST", "READER", "GuardedKafka", "guarded_kafka"]
READER = USER


@dataclass(frozen=True, slots=True)
class GuardedKafka:
    """A broker with an open listener for tests, and two guarded ones."""

    cluster: KafkaTls

    @property
    def open_servers(self) -> str:
        return self.cluster.broker.address

    @property
    def sasl_servers(self) -> str:
        return self.cluster.properties("SASL_PLAINTEXT")["bootstrap.servers"]

    def password(self, user: str) -> str:
        """Of PLAIN and SCRAM."""
        return self.cluster.broker.password(user)

    def properties(self, user: str, mechanism: str, *, tls: bool = False) -> dict[str, str]:
        """What a client of the guarded listeners needs, under librdkafka's names."""
        return self.cluster.properties("SASL_SSL" if tls else "SASL_PLAINTEXT", mechanism, user)

    def let_in(self, user: str, topic: str) -> None:
        """Give the user the rights that reading the topic takes."""
        self.cluster.broker.allow(user, topic, *READING)


@contextmanager
def guarded_kafka(directory: Path) -> Iterator[GuardedKafka]:
    """A running broker of this directory's own; stopped at the end."""
    sandbox = Sandbox(directory, usual_ports={})
    cluster = sandbox.clusters[KafkaTls.name]
    assert isinstance(cluster, KafkaTls)
    try:
        sandbox.up(only=[KafkaTls.name])
        yield GuardedKafka(cluster)
    finally:
        sandbox.down()
