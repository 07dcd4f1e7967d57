"""A Kafka log in memory, and a landing job that reads it: for crashes and races, not for Kafka
itself.

What Kafka, Spark and HDFS really do is tested against the real ones; here only their answers count.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.domain.landing import LandingPlan
from tallystick.domain.ranges import OffsetRange, TopicPartition
from tallystick.domain.record_hash import record_hash
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import ScrubPlan
from tallystick.domain.snapshot import BatchHead, BrokerSnapshot, PartitionBounds, RecordEvidence
from tallystick.domain.states import HoleClass, Isolation
from tallystick.errors import TopicUnknown
from tallystick.ports.file_store import FileStore
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tests.support.scripted_scrub import scrub_by_pyarrow

NOW = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
LANDED_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class Kind(Enum):
    """What stands at an offset."""

    RECORD = "record"
    ABORTED = "aborted"
    CONTROL = "control"
    COMPACTED = "compacted"


@dataclass
class Entry:
    kind: Kind
    value: bytes
    timestamp_ms: int
    epoch: int


@dataclass
class Log:
    """One partition."""

    entries: list[Entry] = field(default_factory=list)
    log_start_offset: int = 0
    epoch: int = 0

    def append(self, kind: Kind, count: int, *, value: bytes = b"v", at: datetime = NOW) -> None:
        first = len(self.entries)
        self.entries.extend(
            Entry(kind, value + str(first + n).encode(), int(at.timestamp() * 1000), self.epoch)
            for n in range(count)
        )

    def cut(self, until_offset: int) -> None:
        """What an unclean election does: all from the offset on is gone, under a new epoch."""
        del self.entries[until_offset:]
        self.epoch += 1


class ScriptedBroker:
    """BrokerView over logs that a test writes."""

    def __init__(self, topic: str, partitions: int = 2) -> None:
        self.topic, self.topic_id = topic, "topic-id-1"
        self.is_compacted = False
        self.leaderless: set[int] = set()
        self.batch_bases: dict[tuple[int, int], int] = {}
        self.retention_ms: int | None = None
        self.logs = {number: Log() for number in range(partitions)}

    def recreate(self, partitions: int = 2) -> None:
        self.topic_id = self.topic_id[:-1] + str(int(self.topic_id[-1]) + 1)
        self.logs = {number: Log() for number in range(partitions)}

    def snapshot(self, topic: str) -> BrokerSnapshot:
        if topic != self.topic:
            raise TopicUnknown(topic, "scripted")
        return BrokerSnapshot(
            cluster_id="cluster-1",
            topic=topic,
            topic_id=self.topic_id,
            taken_at=NOW,
            partitions={
                number: PartitionBounds(
                    log.log_start_offset, len(log.entries), len(log.entries), log.epoch
                )
                for number, log in self.logs.items()
                if number not in self.leaderless
            },
            leaderless=frozenset(self.leaderless),
            is_compacted=self.is_compacted,
            retention_ms=self.retention_ms,
        )

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        wanted = int(instant.timestamp() * 1000)
        return {
            number: next(
                (
                    offset
                    for offset, entry in enumerate(self.logs[number].entries)
                    if entry.timestamp_ms >= wanted and offset >= self.logs[number].log_start_offset
                ),
                None,
            )
            for number in partitions
        }

    def explain_holes(
        self, offsets: OffsetRange, holes: OffsetRuns, isolation: Isolation
    ) -> Mapping[HoleClass, OffsetRuns]:
        log = self.logs[offsets.partition.partition]
        classes = {Kind.CONTROL: HoleClass.CONTROL, Kind.COMPACTED: HoleClass.COMPACTED}
        if isolation is Isolation.READ_COMMITTED:
            classes[Kind.ABORTED] = HoleClass.ABORTED
        found: dict[HoleClass, list[tuple[int, int]]] = {}
        for start, until in holes:
            for offset in range(max(start, log.log_start_offset), min(until, len(log.entries))):
                kind = classes.get(log.entries[offset].kind)
                if kind:
                    found.setdefault(kind, []).append((offset, offset + 1))
        return {kind: OffsetRuns.of(pairs) for kind, pairs in found.items()}

    def records_at(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
        return {
            number: RecordEvidence(offset, entry.epoch, self._hash(number, offset, entry))
            for number, offset in offsets.items()
            if (entry := self._entry(number, offset)) and entry.kind in (Kind.RECORD, Kind.ABORTED)
        }

    def batch_heads(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, BatchHead]:
        """Every entry is a batch of its own, unless `batch_bases` says where its batch begins."""
        return {
            number: BatchHead(
                self.batch_bases.get((number, offset), offset),
                offset + 1,
                entry.timestamp_ms,
                100,
                None,
            )
            for number, offset in offsets.items()
            if (entry := self._entry(number, offset))
        }

    def longest_transaction(self) -> timedelta | None:
        return timedelta(minutes=15)

    def epoch_end(self, partition: TopicPartition, leader_epoch: int) -> int | None:
        log = self.logs[partition.partition]
        ends = [n + 1 for n, entry in enumerate(log.entries) if entry.epoch <= leader_epoch]
        return max(ends, default=None)

    def visible(self, offsets: OffsetRange, isolation: Isolation) -> list[tuple[int, Entry]]:
        """What a reader of the range is given."""
        log = self.logs[offsets.partition.partition]
        kinds = {Kind.RECORD}
        if isolation is Isolation.READ_UNCOMMITTED:
            kinds.add(Kind.ABORTED)
        return [
            (offset, log.entries[offset])
            for offset in range(offsets.from_offset, min(offsets.until_offset, len(log.entries)))
            if offset >= log.log_start_offset and log.entries[offset].kind in kinds
        ]

    def _entry(self, number: int, offset: int) -> Entry | None:
        log = self.logs[number]
        if not log.log_start_offset <= offset < len(log.entries):
            return None
        return log.entries[offset]

    @staticmethod
    def _hash(number: int, offset: int, entry: Entry) -> bytes:
        return record_hash(
            partition=number,
            offset=offset,
            timestamp_ms=entry.timestamp_ms,
            key=None,
            value=entry.value,
            headers=(),
        )


class MinuteByMinute(ScriptedBroker):
    """Every snapshot is a minute younger than the one before."""

    minutes = 0

    def snapshot(self, topic: str) -> BrokerSnapshot:
        self.minutes += 1
        seen = super().snapshot(topic)
        return replace(seen, taken_at=seen.taken_at + timedelta(minutes=self.minutes))


class ScriptedSpark:
    """Lands a plan from a ScriptedBroker with pyarrow; `before_write` may change it first."""

    def __init__(self, broker: ScriptedBroker, store: FileStore) -> None:
        self._broker, self._store = broker, store
        self.before_write: Callable[[LandingPlan], None] = lambda plan: None

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        base = self._store.uri("/landing").removesuffix("/landing")
        plan_path = order.plan_uri.removeprefix(base)
        plan = LandingPlan.from_json(self._store.read(plan_path).decode())
        started(f"local-{plan.attempt_id[:6]}")
        self.before_write(plan)
        directory = plan.output.removeprefix(base)
        for number, scan in enumerate(plan.scans):
            rows = [
                {
                    "topic": plan.topic,
                    "partition": each.partition.partition,
                    "offset": offset,
                    "timestamp": datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC),
                    "timestamp_type": 0,
                    "key": None,
                    "value": entry.value,
                    "headers": None,
                }
                for each in scan.ranges
                for offset, entry in self._broker.visible(each, plan.isolation)
            ]
            sink = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows, schema=LANDED_SCHEMA), sink)
            name = f"{plan.file_prefix}-{number:05d}-c000.zstd.parquet"
            self._store.write(f"{directory}/{name}", sink.getvalue())

    def scrub(self, order: ScrubOrder) -> None:
        base = self._store.uri("/landing").removesuffix("/landing")
        text = self._store.read(order.plan_uri.removeprefix(base)).decode()
        plan = ScrubPlan.from_json(text)
        result = scrub_by_pyarrow(self._store, plan, base).to_json()
        path = f"{plan.output.removeprefix(base)}/part-00000.txt"
        self._store.write(path, f"{result}\n".encode())
