"""Connections to brokers by kafka-python: who leads what, and one request at a time.

A failed connection takes the whole client with it, so the next request starts from the bootstrap
servers again. Decides nothing about answers.
"""

from __future__ import annotations

import logging
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.metadata import MetadataRequest

from tallystick.errors import BrokerUnavailable, RightMissing, SourceRefused, TopicUnknown
from tallystick.sources.broker_answers import NO_ERROR, AskAgain, SecondsLeft, raise_for_code
from tallystick.sources.client_properties import TOKEN_PROVIDER, ClientProperties
from tallystick.sources.oauth_token import ClientCredentials, is_about_certificates

# kafka-python's network client, with two flaws of version 3.0.12 mended.
#
# A broker that refuses a password answers and hangs up at once. The library throws an answer away
# when the end of the stream comes with it, so a wrong password looks like a broker that is down.
# And it forgets to close a socket whose connection or handshake failed.
_DIRECT = "direct"


def open_client(config: Mapping[str, object]) -> Any:
    """A client that connects at its first request."""
    whole = dict(config) | {"proxy_url": f"{_DIRECT}://"}
    net = NetworkSelector(**whole)
    return KafkaNetClient(net=net, manager=_Manager(net, **whole), **whole)


class _ClosedOnFailure(KafkaNetSocket):
    """A direct connection; the library picks it by the scheme of its proxy address."""

    SCHEMES: ClassVar = (_DIRECT,)

    async def sock_connect(
        self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None
    ) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class _LastAnswerKept:
    """Hands on what came before the end of the stream; the end shows at the next read."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, failure = super()._sock_recv()  # type: ignore[misc]
        return (received, None) if received else (received, failure)


class _TcpTransport(_LastAnswerKept, KafkaTCPTransport):
    pass


class _SslTransport(_LastAnswerKept, KafkaSSLTransport):
    pass


class _Manager(KafkaConnectionManager):
    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """The library's own steps, with the transports above, closed when the handshake fails."""
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if self.ssl_enabled:
            settings = {key: each for key, each in self.config.items() if key.startswith("ssl_")}
            transport = _SslTransport(self._net, sock, host=node.host, **settings)
        else:
            transport = _TcpTransport(self._net, sock, host=node.host)
        try:
            await transport.handshake()
        except Exception as failure:
            transport.abort(failure)
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {failure}") from failure
        return transport


# An answer may hold one batch of any size; the protocol's own bound is 2 GB.
_LARGEST_ANSWER_BYTES: Final = 2**31 - 1
_CONNECT_SECONDS: Final = 5
# A broker that is silent for longer may be in trouble; for as long it may just be busy.
_MOMENT_SECONDS: Final = 1.0
_REFUSALS: Final = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.UnsupportedVersionError,
)
# At ERROR these tell of every try, which is ours to say, once; at DEBUG of every byte sent,
# passwords among them.
_TALKATIVE: Final = ("kafka.cluster", "kafka.net", "kafka.protocol")
# Numbers of operations, as in AclOperation.
_DESCRIBE: Final = 8
_NEEDED: Final = {"Read": 3, "DescribeConfigs": 10}


class Leader(NamedTuple):
    """A broker leads a partition, since this term."""

    node_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One broker's description of a topic."""

    cluster_id: str
    topic_id: str
    """22 characters of URL-safe base 64, as Kafka's own tools print it."""
    partitions: tuple[int, ...]
    """Sorted; of a broker that lags behind, not all."""
    leaders: Mapping[int, Leader]
    """Of the partitions that have one."""
    told_by: str
    """Address of the broker."""


class _TimeIsOver(TimeoutError):
    """The time that was left for a request is over; nothing else is known to be wrong."""


class LeaderConnections:
    """One client, opened at the first request, and what it knows of topics' leaders."""

    def __init__(self, properties: ClientProperties, *, request_seconds: float) -> None:
        self.servers = properties.servers
        self._properties = properties
        self._request_seconds = request_seconds
        self._client: Any = None
        self._answered: set[Any] = set()
        self._known: dict[str, TopicMetadata] = {}

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._known.clear()
        self._answered.clear()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def described(
        self, topic: str, left: SecondsLeft, *, rather_not_by: str | None = None
    ) -> TopicMetadata:
        """The topic as one broker describes it now; by another than the given one if there is one.

        Never makes the topic. AskAgain where the broker doesn't know it, RightMissing where our
        user may see it and no more.
        """
        request = MetadataRequest(
            min_version=10,
            max_version=12,
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        node_id = self._node(rather_not_by)
        told_by = self._address(node_id)
        answer = self.send(node_id, request, left)
        (found,) = answer.topics
        # Read before the client does: it blanks the epochs of a topic that was made anew.
        leaders = {
            each.partition_index: Leader(each.leader_id, each.leader_epoch)
            for each in found.partitions
            if each.leader_id >= 0 and each.error_code == NO_ERROR
        }
        self._opened().cluster.update_metadata(answer)  # makes the brokers' addresses known
        try:
            self.check(found.error_code, topic, f"metadata of topic {topic!r}")
        except AskAgain as denied:
            if isinstance(denied.becomes, TopicUnknown):
                denied.becomes.cluster_id = answer.cluster_id
            raise
        missing = _missing_rights(found.authorized_operations)
        if missing:
            # Spark would be the first to ask for records, and tell it as a landing that failed.
            asked = f"topic {topic!r} at {self.servers}"
            raise RightMissing(asked, f"{' and '.join(missing)} on topic {topic!r}")
        if found.topic_id is None:
            reason = f"{told_by} gives it no id; Kafka 2.8 or newer is needed"
            raise SourceRefused(f"the identity of topic {topic!r} at {self.servers}", reason)
        known = self._known[topic] = TopicMetadata(
            cluster_id=answer.cluster_id,
            topic_id=urlsafe_b64encode(found.topic_id.bytes).decode().rstrip("="),
            partitions=tuple(sorted(each.partition_index for each in found.partitions)),
            leaders=leaders,
            told_by=told_by,
        )
        return known

    def leaders(self, topic: str, left: SecondsLeft) -> Mapping[int, Leader]:
        """The leaders of the topic's partitions, asked for once; `check` forgets them."""
        known = self._known.get(topic) or self.described(topic, left)
        return known.leaders

    def leader(self, topic: str, partition: int, left: SecondsLeft) -> Leader:
        """The partition's leader; AskAgain where it has none."""
        found = self.leaders(topic, left).get(partition)
        if found is None:
            self._known.pop(topic, None)
            raise self.again(f"{topic}-{partition} has no leader")
        return found

    def any_node(self) -> Any:
        """A broker that can be asked what every broker knows."""
        return self._opened().least_loaded_node(bootstrap_fallback=True)

    def known_node(self, left: SecondsLeft) -> Any:
        """A broker by its own id; a bootstrap address has none."""
        brokers = self._opened().cluster.brokers()
        if not brokers:
            answer = self.send(self.any_node(), MetadataRequest(max_version=12, topics=[]), left)
            self._opened().cluster.update_metadata(answer)
            brokers = self._opened().cluster.brokers()
        return min(each.node_id for each in brokers)

    def send(self, node_id: Any, request: Any, left: SecondsLeft) -> Any:
        """The answer; AskAgain after a failed connection, SourceRefused where it was refused."""
        client, seconds = self._opened(), left()
        try:
            future = client.send(node_id, request)
            client.poll(timeout_ms=seconds * 1000, future=future)
            if not future.succeeded():
                raise future.exception or _TimeIsOver("no answer in time")
        except _REFUSALS as failure:
            self.close()
            raise SourceRefused(f"the connection to {self.servers}", str(failure)) from failure
        except (kafka_errors.KafkaError, OSError) as failure:
            self.close()
            if is_about_certificates(failure):
                raise SourceRefused(f"the connection to {self.servers}", str(failure)) from failure
            # Its client goes on asking for a token, and then says that the time is over.
            provider = self._properties.kafka_python.get(TOKEN_PROVIDER)
            trouble = provider.trouble if isinstance(provider, ClientCredentials) else ""
            is_silent = isinstance(failure, _TimeIsOver) and not trouble
            reason = trouble or str(failure) or type(failure).__name__
            raise self.again(reason, is_cut=is_silent and seconds <= _MOMENT_SECONDS) from failure
        self._answered.add(node_id)
        return future.value

    def check(self, code: int, topic: str, asked: str, *, right: str = "Read") -> None:
        """Return for success; else forget the topic's leaders and raise what the code means."""
        if code == NO_ERROR:
            return
        self._known.pop(topic, None)
        text = kafka_errors.for_code(code).__name__
        raise_for_code(code, text, topic=topic, servers=self.servers, asked=asked, right=right)

    def again(self, reason: str, *, is_cut: bool = False) -> AskAgain:
        """Returns what to raise when the answer may come later."""
        return AskAgain(BrokerUnavailable(self.servers, reason), is_cut=is_cut)

    def _node(self, rather_not: str | None) -> Any:
        """A broker that has answered before and isn't the given one; any broker otherwise."""
        others = [
            each.node_id
            for each in self._opened().cluster.brokers()
            if each.node_id in self._answered and f"{each.host}:{each.port}" != rather_not
        ]
        return others[0] if rather_not and others else self.any_node()

    def _address(self, node_id: Any) -> str:
        known = self._opened().cluster.broker_metadata(node_id)
        return f"{known.host}:{known.port}" if known else str(node_id)

    def _opened(self) -> Any:
        if self._client is None:
            for name in _TALKATIVE:
                logging.getLogger(name).setLevel(logging.CRITICAL)
            self._client = open_client(
                {
                    **self._properties.kafka_python,
                    "allow_auto_create_topics": False,
                    "receive_message_max_bytes": _LARGEST_ANSWER_BYTES,
                    "socket_connection_setup_timeout_ms": _CONNECT_SECONDS * 1000,
                    "request_timeout_ms": int(self._request_seconds * 1000),
                }
            )
        return self._client


def _missing_rights(operations: Collection[int] | None) -> list[str]:
    """Returns the rights that reading takes and we lack (KIP-430).

    Who sees the topic may describe it: a broker that does not even say so says nothing.
    """
    if not operations or _DESCRIBE not in operations:
        return []
    return [name for name, number in _NEEDED.items() if number not in operations]
