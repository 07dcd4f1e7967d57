"""A ledger in few words: open logs, plan ranges, begin, verify, commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from secrets import token_hex
from typing import Any

import psycopg

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.manifest import AccountedRange, Manifest, TailAnchor
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Accounts, LogChanges, OpenedGeneration
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.ledger.ledger import Ledger
from tests.support.builders import (
    CLUSTER,
    FEED,
    NOON,
    TOPIC,
    TOPIC_ID,
    a_batch,
    a_finding,
    a_snapshot,
    planned,
)
from tests.support.ledger_server import OWNER_ROLE

HOUR = Window(NOON - timedelta(hours=1), NOON)
OWNER, RIVAL = Owner("run 1"), Owner("run 2")
MINUTE, NO_TIME = timedelta(minutes=1), timedelta(0)

Bounds = Mapping[int, tuple[int, int]]
"""By partition: log start and high watermark."""


def snapshot_of(bounds: Bounds, *, topic_id: str = TOPIC_ID, topic: str = TOPIC) -> BrokerSnapshot:
    """What the broker says of these partitions."""
    partitions = {each: PartitionBounds(a, b, b, 0) for each, (a, b) in bounds.items()}
    shown = a_snapshot(partitions, topic_id=topic_id)
    return replace(shown, topic=topic, retention_ms=604_800_000)


def opened(
    partition: int,
    first_offset: int = 0,
    *,
    ordinal: int = 1,
    topic_id: str = TOPIC_ID,
    topic: str = TOPIC,
) -> OpenedGeneration:
    """A log to account for from now on."""
    return OpenedGeneration(
        TopicPartition(topic, partition), CLUSTER, topic_id, ordinal, first_offset, "first seen"
    )


_CODES = {Verdict.SUSPECTED: FindingCode.LOSS_NEAR, Verdict.PROVEN_DUP: FindingCode.ABORTED_LANDED}


def finding_of(
    from_offset: int = 0,
    until_offset: int = 5,
    *,
    partition: int | None = 0,
    verdict: Verdict = Verdict.PROVEN_LOSS,
    cause: str = "it is gone.",
    **evidence: object,
) -> Finding:
    """A finding of a loss, or one that may have the verdict."""
    return a_finding(
        _CODES.get(verdict, FindingCode.EXPIRED),
        Level.L1,
        verdict=verdict,
        partition=partition,
        from_offset=from_offset,
        until_offset=until_offset,
        cause=cause,
        evidence=evidence,
    )


@dataclass
class LedgerStory:
    """A ledger and what a test does with it."""

    dsn: str
    feed: FeedName = FEED
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.dsn)

    def another(self) -> LedgerStory:
        """The same ledger through another connection: another process, as far as it can tell."""
        return LedgerStory(self.dsn, self.feed)

    def change(
        self,
        changes: LogChanges,
        bounds: Bounds | None = None,
        *,
        topic_id: str = TOPIC_ID,
        findings: Sequence[Finding] = (),
    ) -> Accounts:
        """Apply changes in a planning session of their own."""
        with self.ledger.planning(self.feed, TOPIC) as session:
            session.apply(changes, snapshot_of(bounds or {}, topic_id=topic_id))
            session.record_findings(findings)
            return session.accounts()

    def open(self, bounds: Bounds) -> Accounts:
        """Account for these partitions, each from its log start."""
        logs = [opened(partition, start) for partition, (start, _) in bounds.items()]
        return self.change(LogChanges(opened=logs), bounds)

    @property
    def generations(self) -> Mapping[int, GenerationAccount]:
        """The newest generation of each partition."""
        return self.ledger.accounts(self.feed).generations

    def account(self, partition: int = 0) -> GenerationAccount:
        """The newest generation of a partition."""
        return self.generations[partition]

    def batch_of(
        self,
        *ranges: tuple[int, int, int],
        window: Window | None = None,
        generations: Mapping[int, GenerationAccount] | None = None,
        topic_id: str = TOPIC_ID,
        ordinal: int = 1,
        feed: FeedName | None = None,
    ) -> BatchPlan:
        """A batch of ranges given as (partition, from, until)."""
        known = generations if generations is not None else self.generations
        planned_ranges = [
            planned(
                from_offset,
                until_offset,
                partition=p,
                generation_id=known[p].generation_id if p in known else 0,
            )
            for p, from_offset, until_offset in ranges
        ]
        plan = a_batch(
            *planned_ranges,
            batch_id=BatchId(token_hex(8)),
            label=window.from_instant if window else NOON,
            window=window,
            ordinal=ordinal,
            topic_id=topic_id,
        )
        return replace(plan, feed=feed or self.feed, root="/landing")

    def freeze(
        self,
        *batches: BatchPlan,
        adopted: Sequence[BatchId] = (),
        window: Window | None = None,
        owner: Owner = OWNER,
        lease: timedelta = MINUTE,
    ) -> FrozenPlan:
        """Freeze a plan."""
        with self.ledger.planning(self.feed, TOPIC) as session:
            return session.freeze(window, batches, adopted, owner=owner, lease=lease)

    def open_plan(self, window: Window | None) -> FrozenPlan | None:
        """The window's plan while something of it is unfinished."""
        with self.ledger.planning(self.feed, TOPIC) as session:
            newest = session.newest_plan(window)
        return newest if newest and newest.is_open else None

    def planned(
        self,
        *ranges: tuple[int, int, int],
        owner: Owner = OWNER,
        lease: timedelta = MINUTE,
        window: Window | None = None,
    ) -> BatchId:
        """A new batch of these ranges."""
        batch = self.batch_of(*ranges, window=window)
        self.freeze(batch, owner=owner, lease=lease, window=window)
        return batch.batch_id

    def begin(
        self,
        batch_id: BatchId,
        *,
        owner: Owner = OWNER,
        lease: timedelta = MINUTE,
        attempt_id: str | None = None,
    ) -> Attempt:
        """A new attempt of a batch that is not over."""
        attempt = self.ledger.begin_attempt(
            batch_id, attempt_id=AttemptId(attempt_id or token_hex(8)), owner=owner, lease=lease
        )
        assert attempt, f"batch {batch_id} is over"
        return attempt

    def verify(self, attempt: Attempt, **holes: object) -> Manifest:
        """Verify all that the batch claims now; `holes` as `manifest_of` takes them."""
        plan = self.ledger.batch(attempt.batch_id).plan
        manifest = manifest_of(plan, attempt, **holes)  # type: ignore[arg-type]
        self.ledger.record_verified(attempt, manifest)
        return manifest

    def verified(self, *ranges: tuple[int, int, int]) -> Attempt:
        """An attempt that may commit."""
        attempt = self.begin(self.planned(*ranges))
        self.verify(attempt)
        return attempt

    def committed(self, *ranges: tuple[int, int, int]) -> Attempt:
        """An attempt that has committed these ranges."""
        attempt = self.verified(*ranges)
        self.ledger.commit(attempt)
        return attempt

    def manifests(self) -> list[Manifest]:
        """The proofs on record."""
        batches = (each.status.plan.batch_id for each in self.ledger.batches(FEED))
        found = (self.ledger.committed_batch(each) for each in batches)
        return [each.manifest for each in found if each]

    def finding(self, number: int = 1) -> StoredFinding:
        """The finding on record under this number."""
        found = self.ledger.finding(number)
        assert found
        return found

    def status(self, batch_id: BatchId) -> BatchStatus:
        """The batch as it stands."""
        return self.ledger.batch(batch_id)

    @contextmanager
    def raw(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        """The database by hand, as its owner."""
        connection = psycopg.connect(self.dsn, user=OWNER_ROLE, autocommit=True)
        try:
            yield connection
        finally:
            connection.close()

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """What a query by hand gives."""
        with self.raw() as connection:
            return connection.execute(query.encode()).fetchall()


def manifest_of(
    plan: BatchPlan,
    attempt: Attempt,
    *,
    holes: Mapping[int, Mapping[HoleClass, OffsetRuns]] | None = None,
    anchored: bool = True,
    bytes_per_record: int = 10,
) -> Manifest:
    """A proof of exactly the planned ranges; `holes` by partition, everything else is rows.

    One file per partition; its anchor is the last offset of the range.
    """
    ranges, files = [], []
    for each in plan.ranges:
        offsets, partition = each.offsets, each.offsets.partition.partition
        found = dict((holes or {}).get(partition, {}))
        count = offsets.span - sum(runs.count for runs in found.values())
        last = offsets.until_offset - 1
        anchor = TailAnchor(last, 3, last.to_bytes(16, "big")) if anchored and count else None
        ranges.append(AccountedRange(each, count, found, anchor))
        if count:
            files.append(
                LandedFile(
                    f"{plan.batch_id}-{attempt.attempt_id}-{partition:05}.parquet",
                    count * bytes_per_record,
                    "crc32c:00000000",
                    (FileSlice(partition, offsets.from_offset, last, count),),
                )
            )
    return Manifest(plan, attempt, Isolation.READ_COMMITTED, tuple(ranges), tuple(files))
