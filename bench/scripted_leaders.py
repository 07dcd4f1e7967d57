"""Brokers in a process of their own that lead logs of one length: so nothing of them is measured.

They speak Kafka's protocol over sockets, each request answered after 5 ms, and know what a plan
asks: `python -m bench.scripted_leaders PARTITIONS UNTIL` prints their addresses and serves.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)

from tests.support.kafka_batches import a_batch

LEADERS: Final = 3
ANSWER_SECONDS: Final = 0.005
LANDED: Final = 100
"""Offsets of each log that are landed, where some are; the last of them is served."""
TOPIC_ID: Final = UUID(int=1)
_EARLIEST: Final = -2
_RECORD: Final = a_batch(LANDED - 1, LANDED, values=[b"last"], timestamps=[1_000])
_POLICY: Final = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}
_CORRELATION_ENDS: Final = 8
_REQUESTS: Final[dict[int, Any]] = {
    each.API_KEY: each
    for each in (
        ApiVersionsRequest,
        DescribeConfigsRequest,
        FetchRequest,
        ListOffsetsRequest,
        MetadataRequest,
    )
}


@contextmanager
def scripted_leaders(partitions: int, until_offset: int) -> Iterator[str]:
    """The bootstrap address of brokers that serve so long as the block lasts."""
    argv = [sys.executable, "-m", "bench.scripted_leaders", str(partitions), str(until_offset)]
    root = Path(__file__).resolve().parents[1]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=root) as served:
        assert served.stdout
        try:
            yield served.stdout.readline().strip()
        finally:
            served.terminate()


class _Leaders:
    """The answers, by kind of request."""

    def __init__(self, partitions: int, until_offset: int, ports: list[int]) -> None:
        self._partitions, self._until_offset, self._ports = partitions, until_offset, ports
        self._encoded: dict[tuple[object, ...], bytes] = {}

    def encoded(self, node: int, kind: int, version: int, data: bytes) -> bytes:
        """The answer behind its header. One to the same question is made once."""
        key = (node, kind, data[:4], data[_CORRELATION_ENDS:])
        if key not in self._encoded:
            request = _REQUESTS[kind].decode(data, version=version, header=True)
            self._encoded[key] = bytes(self._answer(node, request, version).encode())
        return self._encoded[key]

    def _answer(self, node: int, request: Any, version: int) -> Any:
        if isinstance(request, ApiVersionsRequest):
            keys = [
                ApiVersionsResponse.ApiVersion(key, 0, each.max_version)
                for key, each in _REQUESTS.items()
            ]
            return ApiVersionsResponse(version=version, error_code=0, api_keys=keys)
        if isinstance(request, MetadataRequest):
            return self._metadata(version, has_topics=bool(request.topics))
        if isinstance(request, ListOffsetsRequest):
            return self._offsets(node, version, request.topics[0])
        if isinstance(request, FetchRequest):
            return self._records(version, request.topics[0])
        configs = [
            DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult(
                name=name, value=value, read_only=False, is_sensitive=False
            )
            for name, value in _POLICY.items()
        ]
        result = DescribeConfigsResponse.DescribeConfigsResult(
            error_code=0, resource_type=2, resource_name="orders", configs=configs
        )
        return DescribeConfigsResponse(version=version, results=[result])

    def _metadata(self, version: int, *, has_topics: bool) -> Any:
        brokers = [
            MetadataResponse.MetadataResponseBroker(node, "127.0.0.1", port, None)
            for node, port in enumerate(self._ports, 1)
        ]
        of_topic = MetadataResponse.MetadataResponseTopic
        partitions = [
            of_topic.MetadataResponsePartition(
                error_code=0,
                partition_index=each,
                leader_id=1 + each % LEADERS,
                leader_epoch=0,
                replica_nodes=[1, 2, 3],
                isr_nodes=[1, 2, 3],
                offline_replicas=[],
            )
            for each in range(self._partitions if has_topics else 0)
        ]
        topic = of_topic(
            error_code=0,
            name="orders",
            topic_id=TOPIC_ID,
            is_internal=False,
            partitions=partitions,
        )
        return MetadataResponse(
            version=version,
            brokers=brokers,
            cluster_id="cluster",
            controller_id=1,
            topics=[topic] if has_topics else [],
        )

    def _offsets(self, node: int, version: int, asked: Any) -> Any:
        timestamp = asked.partitions[0].timestamp
        of_topic = ListOffsetsResponse.ListOffsetsTopicResponse
        partitions = [
            of_topic.ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                error_code=0,
                timestamp=-1,
                offset=0 if timestamp == _EARLIEST else self._until_offset,
                leader_epoch=0,
            )
            for each in asked.partitions
        ]
        topics = [of_topic(name="orders", partitions=partitions)]
        return ListOffsetsResponse(version=version, topics=topics)

    def _records(self, version: int, asked: Any) -> Any:
        of_topic = FetchResponse.FetchableTopicResponse
        partitions = [
            of_topic.PartitionData(
                partition_index=each.partition,
                error_code=0,
                high_watermark=self._until_offset,
                last_stable_offset=self._until_offset,
                log_start_offset=0,
                aborted_transactions=None,
                records=_RECORD,
            )
            for each in asked.partitions
        ]
        topics = [of_topic(topic="orders", partitions=partitions)]
        return FetchResponse(version=version, error_code=0, session_id=0, responses=topics)


def _serve(connection: socket.socket, node: int, leaders: _Leaders) -> None:
    read = connection.makefile("rb")
    while size := read.read(4):
        data = read.read(int.from_bytes(size, "big"))
        kind, version = (int.from_bytes(data[at : at + 2], "big") for at in (0, 2))
        header = _REQUESTS[kind].parse_header(BytesIO(data), version=version)
        time.sleep(ANSWER_SECONDS)
        found = leaders.encoded(node, kind, version, data)
        tags = b"" if kind == ApiVersionsRequest.API_KEY else b"\0"
        is_flexible = _REQUESTS[kind].flexible_version_q(version)
        whole = header.correlation_id.to_bytes(4, "big") + (tags if is_flexible else b"") + found
        connection.sendall(len(whole).to_bytes(4, "big") + whole)


def main() -> None:
    """Serve until the parent ends this process."""
    partitions, until_offset = map(int, sys.argv[1:])
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(LEADERS)]
    leaders = _Leaders(partitions, until_offset, [each.getsockname()[1] for each in listeners])

    def listen(listener: socket.socket, node: int) -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, node, leaders), daemon=True).start()

    for node, each in enumerate(listeners, 1):
        threading.Thread(target=listen, args=(each, node), daemon=True).start()
    host, port = listeners[0].getsockname()
    print(f"{host}:{port}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
