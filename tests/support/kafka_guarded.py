"""A real broker that lets nobody in without a password, over TLS or not, for tests of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox import Sandbox
from sandbox.clusters.kafka_tls import GUEST, READING, USER, KafkaTls
from tests.support.sandbox_fixtures import running

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
    """A running broker of this directory's own, that ends with the block."""
    with running(Sandbox(directory, usual_ports={}), KafkaTls) as cluster:
        yield GuardedKafka(cluster)
