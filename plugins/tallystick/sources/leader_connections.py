"""Connections to partition leaders by kafka-python: who leads, and one request at a time.

A failed connection takes the whole client with it, so the next request starts from the bootstrap
servers again. Decides nothing about answers.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import MetadataRequest

from tallystick.errors import BrokerUnavailable, SourceRefused
from tallystick.sources.broker_answers import NO_ERROR, AskAgain, SecondsLeft, raise_for_code
from tallystick.sources.client_properties import ClientProperties

# A fetch answer may be as large as one batch of any size; the protocol's own bound is 2 GB.
_LARGEST_ANSWER_BYTES: Final = 2**31 - 1
_CONNECT_SECONDS: Final = 5
_REFUSALS: Final = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.UnsupportedVersionError,
)
# At DEBUG these write every byte sent, passwords of SASL PLAIN among them.
_TALKATIVE: Final = ("kafka.net", "kafka.protocol")


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition, and since which term."""

    node_id: int
    epoch: int


class LeaderConnections:
    """One client, opened at the first request, and the leaders of the topics asked for."""

    def __init__(self, properties: ClientProperties, *, request_seconds: float) -> None:
        self.servers = properties.servers
        self._properties = properties
        self._request_seconds = request_seconds
        self._client: Any = None
        self._leaders: dict[str, dict[int, Leader]] = {}

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._leaders.clear()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def leaders(self, topic: str, left: SecondsLeft) -> Mapping[int, Leader]:
        """The leaders of the topic's partitions, of those that have one; asked for once.

        `check` forgets them where an answer says that they changed.
        """
        known = self._leaders.get(topic)
        if known is None:
            known = self._leaders[topic] = self._looked_up(topic, left)
        return known

    def leader(self, topic: str, partition: int, left: SecondsLeft) -> Leader:
        """The partition's leader; AskAgain where it has none."""
        found = self.leaders(topic, left).get(partition)
        if found is None:
            self._leaders.pop(topic, None)
            raise self.again(f"{topic}-{partition} has no leader")
        return found

    def send(self, node_id: Any, request: Any, left: SecondsLeft) -> Any:
        """The answer; AskAgain after a failed connection, SourceRefused where it was refused."""
        client = self._opened()
        try:
            future = client.send(node_id, request)
            client.poll(timeout_ms=left() * 1000, future=future)
            if future.succeeded():
                return future.value
            raise future.exception or kafka_errors.KafkaTimeoutError("no answer in time")
        except _REFUSALS as failure:
            self.close()
            raise SourceRefused(f"the connection to {self.servers}", str(failure)) from failure
        except (kafka_errors.KafkaError, OSError) as failure:
            self.close()
            if isinstance(failure.__context__, ssl.SSLCertVerificationError):
                raise SourceRefused(f"the connection to {self.servers}", str(failure)) from failure
            raise self.again(str(failure) or type(failure).__name__) from failure

    def check(self, code: int, topic: str, asked: str) -> None:
        """Return for success; else forget the topic's leaders and raise what the code means."""
        if code == NO_ERROR:
            return
        self._leaders.pop(topic, None)
        text = kafka_errors.for_code(code).__name__
        raise_for_code(code, text, topic=topic, servers=self.servers, asked=asked)

    def again(self, reason: str) -> AskAgain:
        """What to raise when the answer may come later."""
        return AskAgain(BrokerUnavailable(self.servers, reason))

    def _looked_up(self, topic: str, left: SecondsLeft) -> dict[int, Leader]:
        request = MetadataRequest(
            min_version=9,
            max_version=12,
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        client = self._opened()
        answer = self.send(client.least_loaded_node(bootstrap_fallback=True), request, left)
        client.cluster.update_metadata(answer)  # makes the brokers' addresses known
        (described,) = answer.topics
        self.check(described.error_code, topic, f"metadata of topic {topic!r}")
        return {
            each.partition_index: Leader(each.leader_id, each.leader_epoch)
            for each in described.partitions
            if each.leader_id >= 0
        }

    def _opened(self) -> Any:
        if self._client is None:
            for name in _TALKATIVE:
                logging.getLogger(name).setLevel(logging.INFO)
            self._client = KafkaNetClient(
                **self._properties.kafka_python,
                receive_message_max_bytes=_LARGEST_ANSWER_BYTES,
                socket_connection_setup_timeout_ms=_CONNECT_SECONDS * 1000,
                request_timeout_ms=int(self._request_seconds * 1000),
            )
        return self._client
