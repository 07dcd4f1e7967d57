"""The demo's topics and what is in them: `orders` in transactions, `clicks` plain.

Filled once; a later run adds a little, so that there is something to land again.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from sandbox.errors import SandboxError

ORDERS, CLICKS = "orders", "clicks"
PARTITIONS = 6
ANSWER_SECONDS = 30.0
CHUNK = 10_000
TRANSACTION = 1
QUIET: dict[str, Any] = {"log_level": 3}  # no word of what is tried again
JUST_MADE = (  # what a broker says of a topic that was made a moment ago
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
# The coordinator loads, is not available, does not know yet that it is it, or ends the last one.
NOT_YET = (14, 15, 16, 51)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is written, for each partition."""

    orders: int
    """Records of each transaction that is committed."""
    transactions: int
    aborted: int
    """Records of the one transaction that is aborted."""
    clicks: int

    @property
    def visible(self) -> int:
        """Records that a reader gets to see, in all partitions."""
        return PARTITIONS * (self.orders * self.transactions + self.clicks)


FIRST = Amount(orders=10_000, transactions=5, aborted=2_000, clicks=130_000)
LATER = Amount(orders=500, transactions=1, aborted=100, clicks=1_000)


def fill(servers: str) -> Amount:
    """Make the topics if they are missing and write into them; what was written.

    Raises SandboxError when Kafka does not take it.
    """
    try:
        _make_topics(servers)
        has_all = _offsets(servers, CLICKS) >= PARTITIONS * FIRST.clicks and (
            _offsets(servers, ORDERS) >= PARTITIONS * FIRST.orders * FIRST.transactions
        )
        amount = LATER if has_all else FIRST
        _write_orders(servers, amount)
        _write_clicks(servers, amount)
    except KafkaException as failure:
        raise SandboxError(f"Kafka did not take the sample records: {failure}") from failure
    return amount


def _make_topics(servers: str) -> None:
    admin = AdminClient(QUIET | {"bootstrap.servers": servers})
    wanted = [NewTopic(name, PARTITIONS, 1) for name in (ORDERS, CLICKS)]
    for done in admin.create_topics(wanted).values():
        try:
            done.result(ANSWER_SECONDS)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _offsets(servers: str, topic: str) -> int:
    """One past the last offset, of all partitions together."""
    consumer = Consumer(QUIET | {"bootstrap.servers": servers, "group.id": "demo"})
    try:
        return sum(_until(consumer, TopicPartition(topic, number)) for number in range(PARTITIONS))
    finally:
        consumer.close()


def _until(consumer: Consumer, partition: TopicPartition) -> int:
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return int(consumer.get_watermark_offsets(partition, ANSWER_SECONDS)[1])
        except KafkaException as failure:
            if failure.args[0].code() not in JUST_MADE or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _write_clicks(servers: str, amount: Amount) -> None:
    writer = _Writer(servers, {})
    for number in range(PARTITIONS):
        writer.write(CLICKS, number, _clicks(number, amount.clicks))
    writer.flush()


def _write_orders(servers: str, amount: Amount) -> None:
    """Committed transactions, one that is aborted, one without a record."""
    writer = _Writer(servers, {"transactional.id": f"demo-{uuid.uuid4().hex}"})
    writer.producer.init_transactions(ANSWER_SECONDS)
    for turn in range(amount.transactions):
        _write_transaction(writer, amount.orders, "placed")
        writer.producer.commit_transaction(ANSWER_SECONDS)
        if turn == 0:
            _write_transaction(writer, amount.aborted, "never happened")
            writer.producer.abort_transaction(ANSWER_SECONDS)
    _empty_transaction(servers)


def _write_transaction(writer: _Writer, count: int, what: str) -> None:
    writer.producer.begin_transaction()
    for number in range(PARTITIONS):
        writer.write(ORDERS, number, _orders(number, count, what))
    writer.flush()  # an abort would drop what is not in the log yet


def _clicks(partition: int, count: int) -> Iterator[dict[str, bytes]]:
    for n in range(count):
        visitor = b"visitor-%d" % (n * 7 % 9973)
        yield {
            "key": visitor,
            "value": b'{"visitor": "%s", "page": "/shop/%d", "from": "/", "ms": %d, "tab": %d}'
            % (visitor, n % 499, n % 3000, partition),
        }


def _orders(partition: int, count: int, what: str) -> Iterator[dict[str, bytes]]:
    for n in range(count):
        yield {
            "key": b"customer-%d" % (n * 13 % 4999),
            "value": b'{"order": %d, "what": "%s", "amount": %d.%02d, "currency": "EUR"}'
            % (n * PARTITIONS + partition, what.encode(), n % 900, n % 100),
        }


class _Writer:
    """A producer that writes many records at once and forgets no failure."""

    def __init__(self, servers: str, settings: dict[str, Any]) -> None:
        self._failures: list[KafkaError] = []
        self.producer = Producer(
            QUIET
            | {
                "bootstrap.servers": servers,
                "acks": "all",
                "linger.ms": 20,
                "compression.type": "lz4",
                "delivery.report.only.error": True,
                "on_delivery": lambda failure, _: self._failures.append(failure),
                **settings,
            }
        )

    def write(self, topic: str, partition: int, records: Iterator[dict[str, bytes]]) -> None:
        """Hand the records over, as fast as the queue takes them."""
        left: list[dict[str, bytes]] = []
        while left := left or list(itertools.islice(records, CHUNK)):
            taken = self.producer.produce_batch(topic, left, partition=partition)
            left = left[taken:]
            self.producer.poll(0.05 if left else 0)

    def flush(self) -> None:
        """Return when all is in the log; raises SandboxError if it isn't."""
        waiting = self.producer.flush(ANSWER_SECONDS)
        if waiting or self._failures:
            raise SandboxError(
                f"Kafka did not take the sample records: {waiting} are waiting, "
                f"{len(self._failures)} failed {self._failures[:1]}. Next: repeat"
            )


def _empty_transaction(servers: str) -> None:
    """Commit a transaction that holds every partition and no record: a lone marker in each.

    Producers never make one by themselves, so the requests are sent by hand.
    """
    name = f"demo-{uuid.uuid4().hex}"
    client = KafkaNetClient(bootstrap_servers=servers.split(","), allow_auto_create_topics=False)
    try:
        client.check_version(timeout_ms=int(ANSWER_SECONDS * 1000))
        find = FindCoordinatorRequest(max_version=3, key=name, key_type=TRANSACTION)
        node = int(_answer(client, client.least_loaded_node(), find).node_id)
        begin = InitProducerIdRequest(
            max_version=4,
            transactional_id=name,
            transaction_timeout_ms=60_000,
            producer_id=-1,
            producer_epoch=-1,
        )
        producer = _answer(client, node, begin)
        held = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=ORDERS, partitions=list(range(PARTITIONS))
        )
        hold = AddPartitionsToTxnRequest(
            max_version=3,
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[held],
        )
        _answer(client, node, hold)
        end = EndTxnRequest(
            max_version=3,
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=True,
        )
        _answer(client, node, end)
    finally:
        client.close()


def _answer(client: Any, node: int, request: Any) -> Any:
    """The broker's answer, asked again while it is not ready; raises SandboxError."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        answer = client.send_and_receive(node, request, int(ANSWER_SECONDS * 1000))
        code = getattr(answer, "error_code", None) or 0
        if code not in NOT_YET or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if code:
        raise SandboxError(f"Kafka answered {type(request).__name__} with error {code}")
    return answer
