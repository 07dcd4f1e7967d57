"""A kafka-python client that gives scripted answers: for those that no broker gives on demand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from kafka.future import Future
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest

TOPIC_ID, OTHER_ID = UUID(int=1), UUID(int=2)
_KINDS = {
    MetadataRequest: "metadata",
    FetchRequest: "fetch",
    ListOffsetsRequest: "offsets",
    OffsetForLeaderEpochRequest: "epochs",
    DescribeConfigsRequest: "configs",
}


def metadata(
    leaders: Mapping[int, tuple[int, int]],
    *,
    code: int = 0,
    topic_id: UUID | None = TOPIC_ID,
    operations: Collection[int] | None = None,
) -> Any:
    """A topic's partitions with the node and the epoch of each one's leader; node -1 is none.

    `operations`: what its reader may do with it, by the numbers of AclOperation.
    """
    partitions = [
        SimpleNamespace(partition_index=each, leader_id=node, leader_epoch=epoch, error_code=0)
        for each, (node, epoch) in leaders.items()
    ]
    topic = SimpleNamespace(
        error_code=code, partitions=partitions, topic_id=topic_id, authorized_operations=operations
    )
    return SimpleNamespace(topics=[topic], cluster_id="cluster")


def part(
    partition: int = 0,
    *,
    code: int = 0,
    records: bytes | None = None,
    aborted: Sequence[tuple[int, int]] | None = None,
    high: int = 100,
    stable: int = 90,
) -> Any:
    return SimpleNamespace(
        partition_index=partition,
        error_code=code,
        records=records,
        aborted_transactions=aborted
        and [SimpleNamespace(producer_id=a, first_offset=b) for a, b in aborted],
        high_watermark=high,
        last_stable_offset=stable,
    )


def fetched(*parts: Any, code: int = 0) -> Any:
    responses = [SimpleNamespace(partitions=list(parts))] if parts else []
    return SimpleNamespace(error_code=code, responses=responses)


class ScriptedClient:
    """Gives the answers of one script per kind of request, the last of them for ever.

    An answer may be a function of the request. Nodes 1 to 3 are known once one has answered.
    """

    def __init__(self, **scripts: Sequence[Any]) -> None:
        self._scripts = {name: list(script) for name, script in scripts.items()}
        self._brokers = [
            SimpleNamespace(node_id=node, host=f"node-{node}", port=9092) for node in (1, 2, 3)
        ]
        self.cluster = SimpleNamespace(
            update_metadata=lambda answer: None,
            brokers=lambda: self._brokers,
            broker_metadata=lambda node: next(
                (each for each in self._brokers if each.node_id == node), None
            ),
        )
        self.sent: list[tuple[Any, Any]] = []
        self.opened = self.closed = 0

    def least_loaded_node(self, *, bootstrap_fallback: bool) -> str:
        return "bootstrap-0"

    def send(self, node_id: Any, request: Any) -> Future:
        self.sent.append((node_id, request))
        script = self._scripts[_KINDS[type(request)]]
        answer = script.pop(0) if len(script) > 1 else script[0]
        if isinstance(answer, Exception):
            return Future().failure(answer)
        return Future().success(answer(request) if callable(answer) else answer)

    def poll(self, *, timeout_ms: float, future: Future) -> None:
        assert timeout_ms > 0

    def close(self) -> None:
        self.closed += 1

    def asked(self, kind: str) -> list[Any]:
        """The nodes that got requests of this kind."""
        return [node for node, request in self.sent if _KINDS[type(request)] == kind]

    def fetches(self) -> list[tuple[Any, list[tuple[int, int, int]]]]:
        """Node, and partition, offset and epoch of what was fetched there."""
        return [
            (
                node,
                [
                    (each.partition, each.fetch_offset, each.current_leader_epoch)
                    for each in request.topics[0].partitions
                ],
            )
            for node, request in self.sent
            if isinstance(request, FetchRequest)
        ]
