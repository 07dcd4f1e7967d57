"""A Kafka log in memory, and a landing job that reads it: for crashes and races, not for Kafka
itself.

What Kafka, Spark and HDFS really do is tested against the real ones; here only their answers count.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.polling import MAX_POLL_RECORDS
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.snapshot import (
    BatchHead,
    BrokerSnapshot,
    EpochEnd,
    PartitionBounds,
    RecordEvidence,
)
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.planning.unreadable import (
    Pieces,
    ReadNote,
    SearchPlan,
    after_known,
    searched,
)
from tallystick.domain.rows.record_hash import record_hash
from tallystick.domain.rows.scrub import ScrubPlan, ScrubResult
from tallystick.domain.rows.second_read import SeenRecord, SliceRead
from tallystick.errors import ApplicationFailed, ApplicationOverdue, BrokerUnavailable, TopicUnknown
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


PRODUCER_ID = 7
"""Of every transaction."""


@dataclass
class Entry:
    kind: Kind
    value: bytes
    timestamp_ms: int
    epoch: int
    producer_id: int | None = None


@dataclass
class Log:
    """One partition."""

    entries: list[Entry] = field(default_factory=list)
    log_start_offset: int = 0
    epoch: int = 0
    open_from: int | None = None
    """Where the transaction begins that is open now."""

    @property
    def last_stable_offset(self) -> int:
        """One past what read_committed may see; a purge may pass an open transaction."""
        end = len(self.entries) if self.open_from is None else self.open_from
        return max(end, self.log_start_offset)

    def append(self, kind: Kind, count: int, *, value: bytes = b"v", at: datetime = NOW) -> None:
        first = len(self.entries)
        producer_id = PRODUCER_ID if kind in (Kind.ABORTED, Kind.CONTROL) else None
        time_ms = int(at.timestamp() * 1000)
        self.entries.extend(
            Entry(kind, value + str(first + n).encode(), time_ms, self.epoch, producer_id)
            for n in range(count)
        )

    def open(self, count: int) -> None:
        """So many records of a transaction that does not end yet."""
        self.open_from = len(self.entries)
        self.append(Kind.RECORD, count)
        for entry in self.entries[self.open_from :]:
            entry.producer_id = PRODUCER_ID

    def end(self, *, is_committed: bool) -> None:
        """End the open transaction by its marker."""
        for entry in self.entries[self.open_from :]:
            if entry.producer_id is not None and not is_committed:
                entry.kind = Kind.ABORTED
        self.open_from = None
        self.append(Kind.CONTROL, 1)

    def cut(self, until_offset: int) -> None:
        """What an unclean election does: all from the offset on is gone, under a new epoch."""
        del self.entries[until_offset:]
        self.epoch += 1

    def epoch_end(self, leader_epoch: int) -> int | None:
        """Where the next epoch begins, by the rules of the broker's LeaderEpochFileCache.

        The log's end for the newest epoch, None for a newer one. What went below the log start took
        its epochs along.
        """
        starts: dict[int, int] = {}
        for offset, entry in enumerate(self.entries):
            starts.setdefault(entry.epoch, offset)
        starts.setdefault(self.epoch, len(self.entries))
        if leader_epoch >= self.epoch:
            return len(self.entries) if leader_epoch == self.epoch else None
        return max(
            self.log_start_offset,
            min(start for epoch, start in starts.items() if epoch > leader_epoch),
        )


class ScriptedBroker:
    """BrokerView over logs that a test writes."""

    def __init__(self, topic: str, partitions: int = 2) -> None:
        self.topic, self.topic_id = topic, "topic-id-1"
        self.others: set[str] = set()
        """Topics that are on the cluster, too."""
        self.is_compacted = False
        self.leaderless: set[int] = set()
        self.batch_bases: dict[tuple[int, int], int] = {}
        self.record_bytes = 100.0
        self.retention_ms: int | None = None
        self.retention_bytes: int | None = None
        self.logs = {number: Log() for number in range(partitions)}

    def recreate(self, partitions: int = 2) -> None:
        self.topic_id = self.topic_id[:-1] + str(int(self.topic_id[-1]) + 1)
        self.logs = {number: Log() for number in range(partitions)}

    def snapshot(self, topic: str) -> BrokerSnapshot:
        self._require(topic)
        if self.leaderless >= self.logs.keys():
            raise BrokerUnavailable("scripted", f"{topic} has no leader")
        return BrokerSnapshot(
            cluster_id="cluster-1",
            topic=topic,
            topic_id=self.topic_id,
            taken_at=NOW,
            partitions={
                number: PartitionBounds(
                    log.log_start_offset, len(log.entries), log.last_stable_offset, log.epoch
                )
                for number, log in self.logs.items()
                if number not in self.leaderless
            },
            leaderless=frozenset(self.leaderless),
            is_compacted=self.is_compacted,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
        )

    def identity(self, topic: str) -> str:
        self._require(topic)
        return self.topic_id

    def topics(self) -> Collection[str]:
        return {self.topic, *self.others}

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        wanted = math.ceil(instant.timestamp() * 1000)
        return {
            number: next(
                (
                    offset
                    for offset, entry in self._stored(self._log(topic, number))
                    if entry.timestamp_ms >= wanted
                ),
                None,
            )
            for number in partitions
        }

    def explain_holes(
        self,
        offsets: OffsetRange,
        holes: OffsetRuns,
        isolation: Isolation,
        *,
        cleaned: OffsetRange | None = None,
    ) -> Mapping[HoleClass, OffsetRuns]:
        log = self._log(offsets.partition.topic, offsets.partition.partition)
        classes = {Kind.CONTROL: HoleClass.CONTROL, Kind.COMPACTED: HoleClass.COMPACTED}
        if isolation is Isolation.READ_COMMITTED:
            classes[Kind.ABORTED] = HoleClass.ABORTED
        first = max(offsets.from_offset, log.log_start_offset)
        until = min(offsets.until_offset, self._readable_until(log, isolation))
        found: dict[HoleClass, list[tuple[int, int]]] = {}
        for start, end in holes:
            for offset in range(max(start, first), min(end, until)):
                kind = classes.get(log.entries[offset].kind)
                is_bare = kind is HoleClass.COMPACTED and not self.is_compacted
                if kind and not (is_bare and offset not in (cleaned or ())):
                    found.setdefault(kind, []).append((offset, offset + 1))
        return {kind: OffsetRuns.of(pairs) for kind, pairs in found.items()}

    def records_at(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
        return {
            number: RecordEvidence(offset, entry.epoch, self._hash(number, offset, entry))
            for number, offset in offsets.items()
            if (entry := dict(self._stored(self._log(topic, number))).get(offset))
            and entry.kind is not Kind.CONTROL
        }

    def batch_heads(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, BatchHead]:
        """Every entry is a batch of its own, unless `batch_bases` says where its batch begins."""
        found: dict[int, BatchHead] = {}
        for number, asked in offsets.items():
            log = self._log(topic, number)
            held = ((offset, entry) for offset, entry in self._stored(log) if offset >= asked)
            offset, entry = next(held, (0, None))
            if entry and asked >= log.log_start_offset:
                base = self.batch_bases.get((number, offset), offset)
                found[number] = BatchHead(
                    base, offset + 1, entry.timestamp_ms, 100, entry.producer_id
                )
        return found

    def bytes_per_record(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, float]:
        """All records are small, unless `record_bytes` says otherwise."""
        self._require(topic)
        return dict.fromkeys(offsets, self.record_bytes)

    def longest_transaction(self) -> timedelta | None:
        return timedelta(minutes=15)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]:
        logs = {number: self._log(topic, number) for number in epochs}
        return {
            number: EpochEnd(end, logs[number].log_start_offset)
            for number, epoch in epochs.items()
            if (end := logs[number].epoch_end(epoch)) is not None
        }

    def visible(self, offsets: OffsetRange, isolation: Isolation) -> list[tuple[int, Entry]]:
        """What a reader of the range is given."""
        log = self.logs[offsets.partition.partition]
        kinds = {Kind.RECORD}
        if isolation is Isolation.READ_UNCOMMITTED:
            kinds.add(Kind.ABORTED)
        until = min(offsets.until_offset, self._readable_until(log, isolation))
        return [
            (offset, entry)
            for offset, entry in self._stored(log)
            if offsets.from_offset <= offset < until and entry.kind in kinds
        ]

    def _require(self, topic: str) -> None:
        if topic != self.topic:
            raise TopicUnknown(topic, "scripted")

    def _log(self, topic: str, number: int) -> Log:
        self._require(topic)
        if number in self.leaderless or number not in self.logs:
            raise BrokerUnavailable("scripted", f"{topic}-{number} has no leader")
        return self.logs[number]

    @staticmethod
    def _stored(log: Log) -> Iterator[tuple[int, Entry]]:
        """What is in the log now, by offset."""
        for offset, entry in enumerate(log.entries):
            if offset >= log.log_start_offset and entry.kind is not Kind.COMPACTED:
                yield offset, entry

    @staticmethod
    def _readable_until(log: Log, isolation: Isolation) -> int:
        is_committed = isolation is Isolation.READ_COMMITTED
        return log.last_stable_offset if is_committed else len(log.entries)

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


class ScriptedReader:
    """SecondReader over the same logs, as another client library would read them."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker = broker

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        return [self._read(each, isolation) for each in slices]

    def _read(self, asked: OffsetRange, isolation: Isolation) -> SliceRead:
        number = asked.partition.partition
        log = self._broker.logs[number]
        if number in self._broker.leaderless:
            return SliceRead(asked, (), asked.from_offset, asked.from_offset, "no answer")
        start = max(asked.from_offset, log.log_start_offset)
        until = max(min(asked.until_offset, len(log.entries)), start)
        records = tuple(
            SeenRecord.of(
                partition=number,
                offset=offset,
                timestamp_ms=entry.timestamp_ms,
                timestamp_type=0,
                key=None,
                value=entry.value,
                headers=(),
            )
            for offset, entry in self._broker.visible(asked, isolation)
        )
        reason = None if until >= asked.until_offset else f"the log ends at {len(log.entries)}"
        return SliceRead(asked, records, start, until, reason)


class MinuteByMinute(ScriptedBroker):
    """Every snapshot is a minute younger than the one before; it may be the clock, too."""

    minutes = 0

    def now(self) -> datetime:
        return NOW + timedelta(minutes=self.minutes)

    def pause(self, seconds: float) -> None:
        return None

    def snapshot(self, topic: str) -> BrokerSnapshot:
        self.minutes += 1
        seen = super().snapshot(topic)
        return replace(seen, taken_at=seen.taken_at + timedelta(minutes=self.minutes))


class ScriptedSpark:
    """Lands a plan from a ScriptedBroker with pyarrow; `before_write` may change it first."""

    def __init__(self, broker: ScriptedBroker, store: FileStore) -> None:
        self._broker, self._store = broker, store
        self.before_write: Callable[[LandingPlan], None] = lambda plan: None
        self.unreadable: dict[tuple[int, int], str] = {}
        """By partition and offset: why no application can read the record."""
        self.deadly: set[tuple[int, int]] = set()
        """By partition and offset: records that end every application which reads them."""
        self.hanging: set[tuple[int, int]] = set()
        """By partition and offset: records at which every application hangs until it is ended."""
        self.interrupted: list[str] = []
        """Attempts whose work was ended, in that order."""
        self.is_heard = True
        """False: the server is silent when an attempt's work is to be ended."""
        self.longest_orphan = timedelta(0)
        """Its work dies with the process that started it."""

    def interrupt(self, attempt_id: str) -> bool:
        self.interrupted.append(attempt_id)
        return self.is_heard

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        plan = LandingPlan.from_json(self._text(order.plan_uri))
        started(f"local-{plan.attempt_id[:6]}")
        reason = self._failure(plan)
        if reason:
            raise ApplicationFailed(plan.batch_id, "local", reason)
        self.before_write(plan)
        self._write(plan)

    def _write(self, plan: LandingPlan) -> None:
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
            self._store.write(f"{self._path(plan.output)}/{name}", sink.getvalue())

    def _failure(self, plan: LandingPlan) -> str | None:
        """Why these ranges can't be read; raises where no application survives it."""
        polled = {
            (each.partition.partition, offset)
            for scan in plan.scans
            for each in scan.ranges
            for offset in self._polled(each, scan.max_poll_records or MAX_POLL_RECORDS, plan)
        }
        if polled & self.deadly:
            raise ApplicationFailed(plan.batch_id, "local", "exit code 52: OutOfMemoryError")
        if polled & self.hanging:
            raise ApplicationOverdue(f"batch {plan.batch_id}", "local", "0:02:00")
        return next(
            (
                reason
                for (partition, offset), reason in sorted(self.unreadable.items())
                for each in plan.ranges
                if each.partition.partition == partition and offset in each
            ),
            None,
        )

    def _polled(self, wanted: OffsetRange, most: int, plan: LandingPlan) -> Iterator[int]:
        """What the polls for a range bring: the last one may go beyond its end, as Spark's does."""
        log = OffsetRange(wanted.partition, wanted.from_offset, 2**62)
        records = [offset for offset, _ in self._broker.visible(log, plan.isolation)]
        position = wanted.from_offset
        while records and position < wanted.until_offset:
            yield from records[:most]
            position = records[:most][-1] + 1
            records = records[most:]

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        plan = from_plain(SearchPlan, json.loads(self._text(order.plan_uri)))
        before = list(plan.known)

        def read(pieces: Pieces) -> str | None:
            noted(json.dumps(to_plain(ReadNote(len(before), before[-1] if before else None))))
            landing = plan.landing_of(pieces)
            before.append(self._failure(landing))
            self._store.delete(self._path(landing.output))
            self._write(landing)
            return before[-1]

        result = searched(plan.landing.ranges, plan.logs, after_known(plan.known, read))
        path = f"{self._path(plan.output)}/part-00000.txt"
        self._store.write(path, json.dumps(to_plain(result)).encode())

    def _text(self, uri: str) -> str:
        return self._store.read(self._path(uri)).decode()

    def _path(self, uri: str) -> str:
        return uri.removeprefix(self._store.uri("/landing").removesuffix("/landing"))

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        plan = ScrubPlan.from_json(self._text(order.plan_uri))
        base = self._store.uri("/landing").removesuffix("/landing")
        result = scrub_by_pyarrow(self._store, plan, base).to_json()
        self._store.write(f"{self._path(plan.output)}/part-00000.txt", f"{result}\n".encode())
        return order.written()
