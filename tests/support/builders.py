"""Values for tests in a few characters: whatever a test doesn't name has a harmless default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus, PlannedRange
from tallystick.domain.batches.landed import FileSlice, LandedFile, ReadBack
from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.manifest import AccountedRange, Manifest, TailAnchor
from tallystick.domain.batches.states import BatchState, HoleClass, Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import (
    AttemptId,
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
)
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState
from tallystick.domain.window import Window

TOPIC = "orders"
FEED = FeedName("orders")
CLUSTER = "cluster-1"
TOPIC_ID = "topic-id-1"
BATCH = BatchId("00000000000000b1")
ATTEMPT = AttemptId("00000000000000a1")
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
ANCHOR_HASH = bytes(16)


def a_partition(partition: int = 0) -> TopicPartition:
    """A partition of the topic of all tests."""
    return TopicPartition(TOPIC, partition)


def a_range(from_offset: int, until_offset: int, *, partition: int = 0) -> OffsetRange:
    """[from_offset, until_offset) of one partition."""
    return OffsetRange(a_partition(partition), from_offset, until_offset)


def planned(
    from_offset: int, until_offset: int, *, partition: int = 0, generation_id: int | None = None
) -> PlannedRange:
    """A planned range; the id of a partition's first generation is its number plus 100."""
    identity = GenerationId(100 + partition if generation_id is None else generation_id)
    return PlannedRange(identity, a_range(from_offset, until_offset, partition=partition))


def a_landing(*ranges: OffsetRange, output: str = "hdfs://nn/data") -> LandingPlan:
    """What Spark is told to land these ranges, in one file."""
    return LandingPlan(
        batch_id=BATCH,
        attempt_id=ATTEMPT,
        topic=TOPIC,
        isolation=Isolation.READ_COMMITTED,
        scans=(Scan(ranges, None, 1),),
        output=output,
        kafka_options={"kafka.bootstrap.servers": "localhost:9092"},
        compression="zstd",
        compression_level=1,
        replication=None,
        leader_epochs={0: 3, 1: None},
    )


def a_batch(
    *ranges: PlannedRange,
    batch_id: BatchId = BATCH,
    label: datetime = NOON,
    window: Window | None = None,
    ordinal: int = 1,
    topic_id: str = TOPIC_ID,
) -> BatchPlan:
    """A frozen batch."""
    return BatchPlan(
        batch_id=batch_id,
        feed=FEED,
        root="/data/landing",
        topic=TOPIC,
        cluster_id=CLUSTER,
        topic_id=topic_id,
        ordinal=ordinal,
        label=label,
        window=window,
        ranges=ranges,
    )


def a_status(
    *ranges: PlannedRange,
    state: BatchState = BatchState.PLANNED,
    lease_seconds_left: float = 0.0,
    batch_id: BatchId = BATCH,
) -> BatchStatus:
    """A batch in the ledger; nobody holds it unless a lease is given."""
    return BatchStatus(
        plan=a_batch(*ranges, batch_id=batch_id),
        state=state,
        newest_token=FencingToken(0),
        applications=0,
        committed_by=None,
        lease_seconds_left=lease_seconds_left,
        holder=Owner("run 1") if lease_seconds_left > 0 else None,
    )


def an_attempt(token: int = 1) -> Attempt:
    """The batch's attempt with this token."""
    return Attempt(ATTEMPT, BATCH, FencingToken(token), Owner("run 1"))


def an_account(
    *,
    partition: int = 0,
    frontier: int = 0,
    beyond: Iterable[tuple[int, int]] = (),
    first_offset: int = 0,
    last_seen_until: int | None = None,
    state: GenerationState = GenerationState.OPEN,
    ordinal: int = 1,
    topic_id: str = TOPIC_ID,
    cluster_id: str = CLUSTER,
    anchor_offset: int | None = None,
    generation_id: int | None = None,
) -> GenerationAccount:
    """What the ledger holds of one partition's generation."""
    reach = max([frontier, *(until for _, until in beyond)])
    return GenerationAccount(
        generation_id=GenerationId(100 + partition if generation_id is None else generation_id),
        partition=a_partition(partition),
        cluster_id=cluster_id,
        topic_id=topic_id,
        ordinal=ordinal,
        state=state,
        first_offset=first_offset,
        frontier=frontier,
        beyond=tuple(a_range(a, b, partition=partition) for a, b in beyond),
        last_seen_until=reach if last_seen_until is None else last_seen_until,
        anchor=None if anchor_offset is None else TailAnchor(anchor_offset, 0, ANCHOR_HASH),
    )


def by_partition(*accounts: GenerationAccount) -> dict[int, GenerationAccount]:
    """The accounts as `Accounts.generations` has them."""
    return {each.partition.partition: each for each in accounts}


def bounds(
    log_start_offset: int,
    high_watermark: int,
    *,
    last_stable_offset: int | None = None,
    leader_epoch: int | None = 0,
) -> PartitionBounds:
    """Bounds; the last stable offset is the high watermark unless it is given."""
    stable = high_watermark if last_stable_offset is None else last_stable_offset
    return PartitionBounds(log_start_offset, high_watermark, stable, leader_epoch)


def a_snapshot(
    partitions: Mapping[int, PartitionBounds],
    *,
    topic_id: str = TOPIC_ID,
    cluster_id: str = CLUSTER,
) -> BrokerSnapshot:
    """The topic at noon."""
    return BrokerSnapshot(cluster_id, TOPIC, topic_id, NOON, partitions)


def a_file(name: str, *slices: FileSlice, length_bytes: int = 1_000) -> LandedFile:
    """A landed file with a made-up checksum."""
    return LandedFile(name, length_bytes, "crc32c:00000000", slices)


def read_back_of(
    landed: Mapping[int, Iterable[tuple[int, int]]],
    doubled: Mapping[int, Iterable[tuple[int, int]]] | None = None,
) -> ReadBack:
    """What storage holds, by partition; the files themselves don't count here."""
    return ReadBack(
        (),
        {partition: OffsetRuns.of(pairs) for partition, pairs in landed.items()},
        {partition: OffsetRuns.of(pairs) for partition, pairs in (doubled or {}).items()},
    )


def a_manifest(
    *ranges: AccountedRange, files: tuple[LandedFile, ...] = (), window: Window | None = None
) -> Manifest:
    """The proof of the batch; by default of ten offsets, one of them a control marker."""
    proven = ranges or (
        AccountedRange(
            planned(0, 10),
            record_count=9,
            holes={HoleClass.CONTROL: OffsetRuns.of([(9, 10)])},
            anchor=TailAnchor(8, 0, ANCHOR_HASH),
        ),
    )
    return Manifest(
        plan=a_batch(*(each.planned for each in proven), window=window),
        attempt=an_attempt(),
        isolation=Isolation.READ_COMMITTED,
        ranges=proven,
        files=files,
    )


def a_finding(
    code: str | FindingCode, level: Level | None = None, name: str = "", **changed: object
) -> Finding:
    """The first that the rule may say, about offsets [0, 5) of partition 0's first generation."""
    rule = RULE_OF[FindingCode(code)]
    known = Finding(
        rule=rule,
        verdict=rule.verdicts[0],
        level=level or rule.levels[0],
        feed=FEED,
        topic=TOPIC,
        generation=1,
        partition=0,
        from_offset=0,
        until_offset=5,
        cause="it is so.",
        next_step="Look.",
        name=name or next(iter(rule.names), ""),
    )
    return replace(known, **changed)  # type: ignore[arg-type]


def a_stored(finding: Finding, number: int = 1) -> StoredFinding:
    """The finding as it stands open in the ledger since noon."""
    return StoredFinding(number, finding, NOON, NOON, FindingState.OPEN)
