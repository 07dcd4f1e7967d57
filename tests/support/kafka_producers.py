"""Producers of a real Kafka for tests: plain, transactional, aborting, empty, hung."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from sandbox.demo_topics import NOT_YET
from tests.support.kafka_topics import wait_until

TIMEOUT_SECONDS = 30.0
_TIMEOUT_MS = 30_000
_TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class Message:
    """What a producer sends; None for the timestamp means now."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None


# A producer's mistake: what it took for milliseconds. Spark can't show such a time.
NANOSECONDS = 1_795_000_000_000_000_000
AWKWARD = (
    Message(None, b"tombstone"),
    Message(b"", b""),
    Message(b"no key"),
    Message(None),
    Message(b"headers", b"k", [("a", b"1"), ("a", None), ("", b""), ("naïve", b"\xff\x00")]),
    Message(b"\x00\xff" * 512, b"\x00"),
    Message(b"early", timestamp_ms=1),
    Message(b"year 2262", timestamp_ms=9_223_372_036_854),
    Message(b"1 MB" * 250_000, b"big"),
)
"""Records that other pipelines choke on: nulls, empty ones, odd headers, extreme times, 1 MB."""


def messages(count: int, *, keys: int | None = None, of: str = "v") -> list[Message]:
    """Numbered messages; with `keys`, under so many keys in turn."""
    return [
        Message(f"{of}{n}".encode(), None if keys is None else f"k{n % keys}".encode())
        for n in range(count)
    ]


def produce(
    servers: str,
    topic: str,
    sent: Iterable[Message],
    *,
    partition: int = 0,
    config: Mapping[str, Any] | None = None,
) -> None:
    """Write the messages in order, as few batches as they fit in; returns when all are written."""
    producer = _knowing(topic, Producer(_settings(servers) | dict(config or {})))
    _send(producer, topic, partition, sent)
    _flush(producer)


class TransactionalProducer:
    """A transactional producer; each transaction is written when its method returns."""

    def __init__(self, servers: str, topic: str, *, timeout_ms: int = 60_000) -> None:
        self._log = _Log(servers, topic)
        self._topic = topic
        self._written: set[int] = set()
        transactional = {
            "transactional.id": f"test-{uuid4().hex}",
            "transaction.timeout.ms": timeout_ms,
        }
        self._producer = _knowing(topic, Producer(_settings(servers) | transactional))
        self._producer.init_transactions(TIMEOUT_SECONDS)

    def commit(self, sent: Iterable[Message], *, partition: int = 0) -> Self:
        self.open(sent, partition=partition)
        return self.end()

    def abort(self, sent: Iterable[Message], *, partition: int = 0) -> Self:
        self.open(sent, partition=partition)
        return self.abort_open()

    def open(self, sent: Iterable[Message], *, partition: int = 0) -> Self:
        """Begin a transaction and write into it; it hangs until `end`, `add` or its time-out."""
        self._producer.begin_transaction()
        return self.add(sent, partition=partition)

    def add(self, sent: Iterable[Message], *, partition: int = 0) -> Self:
        """Write more into the open transaction."""
        self._written.add(partition)
        _send(self._producer, self._topic, partition, sent)
        # librdkafka drops unsent records at an abort: what is aborted has to be in the log first.
        _flush(self._producer)
        return self

    def end(self) -> Self:
        """Commit the open transaction."""
        with self._log.growing(self._written):
            self._producer.commit_transaction(TIMEOUT_SECONDS)
        self._written.clear()
        return self

    def abort_open(self) -> Self:
        """Abort the open transaction."""
        with self._log.growing(self._written):
            self._producer.abort_transaction(TIMEOUT_SECONDS)
        self._written.clear()
        return self


class _Log:
    """The ends of a topic's partitions: a transaction ends before its markers are written."""

    def __init__(self, servers: str, topic: str) -> None:
        self._client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._topic = topic

    @contextmanager
    def growing(self, partitions: Iterable[int]) -> Iterator[None]:
        """Wait at the end of the block until each of the partitions has grown."""
        before = self._ends(partitions)
        yield

        def has_grown() -> bool:
            return all(now > before[each] for each, now in self._ends(before).items())

        wait_until(has_grown, f"markers in {self._topic}")

    def _ends(self, partitions: Iterable[int]) -> dict[int, int]:
        wanted = {TopicPartition(self._topic, each): OffsetSpec.latest() for each in partitions}
        answers = self._client.list_offsets(wanted) if wanted else {}
        return {
            each.partition: found.result(TIMEOUT_SECONDS).offset for each, found in answers.items()
        }


def empty_transaction(
    servers: str, topic: str, *, partition: int = 0, is_committed: bool = True
) -> None:
    """A transaction that holds the partition but no record: it leaves a lone marker in the log.

    librdkafka never makes one, so the requests are sent by hand.
    """
    name = f"test-{uuid4().hex}"
    with _wire(servers) as client:
        coordinator = _coordinator(client, name)
        producer = _asked(
            client,
            coordinator,
            InitProducerIdRequest(
                max_version=4,
                transactional_id=name,
                transaction_timeout_ms=60_000,
                producer_id=-1,
                producer_epoch=-1,
            ),
        )
        held = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
        known = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        added = _asked(
            client,
            coordinator,
            AddPartitionsToTxnRequest(
                max_version=3,
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[held],
            ),
        )
        (result,) = added.results_by_topic_v3_and_below
        assert all(each.partition_error_code == 0 for each in result.results_by_partition), added
        with _Log(servers, topic).growing([partition]):
            _asked(
                client,
                coordinator,
                EndTxnRequest(
                    max_version=3, transactional_id=name, committed=is_committed, **known
                ),
            )


@contextmanager
def _wire(servers: str) -> Any:
    client = KafkaNetClient(bootstrap_servers=servers.split(","), allow_auto_create_topics=False)
    try:
        client.check_version(timeout_ms=_TIMEOUT_MS)
        yield client
    finally:
        client.close()


def _coordinator(client: Any, transactional_id: str) -> int:
    while True:
        request = FindCoordinatorRequest(max_version=3, key=transactional_id, key_type=_TRANSACTION)
        answer = client.send_and_receive(client.least_loaded_node(), request, _TIMEOUT_MS)
        if answer.error_code == 0:
            return int(answer.node_id)
        assert answer.error_code in (14, 15), answer  # loading, or not available yet


def _asked(client: Any, node_id: int, request: Any) -> Any:
    while True:
        answer = client.send_and_receive(node_id, request, _TIMEOUT_MS)
        code = getattr(answer, "error_code", None) or 0
        if code not in NOT_YET:
            assert code == 0, answer
            return answer


def _settings(servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "linger.ms": 10_000,  # `flush` waits for none of it; a transaction has to last longer
        "acks": "all",
        "message.max.bytes": 2_000_000,
        "log_level": 0,
    }


def _knowing(topic: str, producer: Producer) -> Producer:
    """The producer, once it knows the topic's partitions.

    librdkafka hands records over one by one if it learns of a partition after they are sent, and
    makes a batch of those that have come.
    """
    producer.list_topics(topic, TIMEOUT_SECONDS)
    return producer


def _send(producer: Producer, topic: str, partition: int, sent: Iterable[Message]) -> None:
    for each in sent:
        at = {} if each.timestamp_ms is None else {"timestamp": each.timestamp_ms}
        producer.produce(
            topic,
            value=each.value,
            key=each.key,
            partition=partition,
            headers=list(each.headers),
            on_delivery=_raise_on_failure,
            **at,
        )
        producer.poll(0)


def _flush(producer: Producer) -> None:
    left = producer.flush(TIMEOUT_SECONDS)
    assert left == 0, f"{left} records were not written"


def _raise_on_failure(failure: Any, message: Any) -> None:
    assert failure is None, f"a record was not written: {failure}"
