"""Metadata of one topic with any number of partitions, answered in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, NamedTuple
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from tallystick.sources.bulk_request import BulkRequest, Reader

_INT32: Final = Struct(">i")
_BYTE: Final = Struct(">B")
_ERROR: Final = Struct(">h")
_PARTITION: Final = Struct(">hiii")
_ARRAYS_OF_REPLICAS: Final = 3
_WITH_RIGHTS: Final = 10
"""The version whose answer ends with what we may do with the cluster."""
# Numbers of operations, as in AclOperation.
_DESCRIBE: Final = 8
_NEEDED: Final = {"Read": 3, "DescribeConfigs": 10}
_MOST_LENGTH: Final = 0x7F
"""Of an array whose length, and one more, is a single byte."""
_NO_ID: Final = UUID(int=0)


class Broker(NamedTuple):
    """A broker's address, in the order of fields that the library's cluster reads."""

    node_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic as one broker knows it; its partitions as columns of one length."""

    error_code: int
    topic_id: UUID | None
    partitions: Sequence[int]
    error_codes: Sequence[int]
    leader_ids: Sequence[int]
    """-1 where there is none."""
    leader_epochs: Sequence[int]
    operations: int = 0
    """What our user may do with it: a bit for each operation (KIP-430)."""

    def missing_rights(self) -> Sequence[str]:
        """Which of the rights that reading takes are not ours.

        Who sees the topic may describe it: a broker that does not even say so says nothing.
        """
        if not self.operations & 1 << _DESCRIBE or self.operations < 0:
            return ()
        return [name for name, bit in _NEEDED.items() if not self.operations & 1 << bit]


@dataclass(frozen=True, slots=True)
class Described:
    """A broker's answer about one topic."""

    API_VERSION: int
    throttle_time_ms: int
    brokers: Sequence[Broker]
    cluster_id: str
    controller_id: int
    topic: DescribedTopic
    topics: Sequence[object] = ()
    """None for the library's cluster: it is to know the brokers, and would keep each partition."""


class DescribeTopic(BulkRequest):
    """Who leads the partitions of a topic; never makes the topic."""

    kind, answer_kind = MetadataRequest, MetadataResponse
    first_version, last_version = 10, 12

    def __init__(self, topic: str) -> None:
        super().__init__()
        self._topic = topic

    def body(self) -> bytes:
        """The request behind its header."""
        asked = MetadataRequest(
            version=self.API_VERSION,
            topics=[MetadataRequest.MetadataRequestTopic(name=self._topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        return bytes(asked.encode())

    def answer(self, data: bytes) -> Described:
        """What the broker says; ValueError where the answer has another layout."""
        assert self.API_VERSION is not None
        reader = Reader(data)
        (throttle_time_ms,) = reader.fields(_INT32)
        brokers = [_broker(reader) for _ in range(reader.count())]
        cluster_id = reader.string()
        (controller_id,) = reader.fields(_INT32)
        [topic] = [_topic(reader) for _ in range(reader.count())]
        if self.API_VERSION == _WITH_RIGHTS:
            reader.fields(_INT32)
        reader.end()
        return Described(
            self.API_VERSION, throttle_time_ms, brokers, cluster_id, controller_id, topic
        )


def _broker(reader: Reader) -> Broker:
    (node_id,) = reader.fields(_INT32)
    host = reader.string()
    (port,) = reader.fields(_INT32)
    broker = Broker(node_id, host, port, reader.string() or None)
    reader.skip_tags()
    return broker


def _topic(reader: Reader) -> DescribedTopic:
    (error_code,) = reader.fields(_ERROR)
    reader.string()
    topic_id = UUID(bytes=reader.bytes(16))
    reader.fields(_BYTE)
    rows = _partitions(reader, reader.count())
    codes, partitions, leaders, epochs = zip(*rows, strict=True) if rows else ((), (), (), ())
    (operations,) = reader.fields(_INT32)
    reader.skip_tags()
    known_id = None if topic_id == _NO_ID else topic_id
    return DescribedTopic(error_code, known_id, partitions, codes, leaders, epochs, operations)


def _partitions(reader: Reader, count: int) -> list[tuple[int, ...]]:
    """Error, number, leader and epoch of each; one loop without a call, for there are many."""
    data, position = reader.data, reader.position
    rows = []
    try:
        for _ in range(count):
            rows.append(_PARTITION.unpack_from(data, position))
            position += _PARTITION.size
            for _ in range(_ARRAYS_OF_REPLICAS):
                length = data[position]
                if not 0 < length <= _MOST_LENGTH:
                    raise ValueError(f"partition {len(rows)} has a list of replicas without end")
                position += 1 + _INT32.size * (length - 1)
            if data[position]:
                reader.position = position
                reader.skip_tags()
                position = reader.position
            else:
                position += 1
    except (IndexError, error) as failure:
        raise ValueError(f"the answer ends within partition {len(rows)}") from failure
    reader.position = position
    return rows
