"""The one transaction of a plan: what is known, what has changed, what is claimed.

Everybody locks in the same order, so nobody waits in a circle: the feed, then batches, then
generations, each by id. Batches adopted at the end are taken only where nobody holds their row.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import (
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
    PlanId,
)
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.plain_json import to_plain
from tallystick.domain.planning.feed_edits import ONLY_TOPIC, FeedInFile
from tallystick.domain.planning.log_changes import Accounts, LogChanges
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding
from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, LedgerRefused, RetirementRefused
from tallystick.ledger.change_rows import LookBegun, apply_changes, begun_look, record_snapshot, see
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import record_findings
from tallystick.ledger.rows import batch_rows, batch_statuses, generation_account, offset_columns
from tallystick.ledger.texts import storable


def frozen_plan(transaction: Transaction, plan_id: int, planned_at: datetime) -> FrozenPlan:
    """The plan as it stands now: its own batches and the adopted ones, each in its order."""
    rows = transaction.rows("plan_batches", plan_id=plan_id)
    own: list[BatchStatus] = []
    adopted: list[BatchStatus] = []
    for row, status in zip(rows, batch_statuses(transaction, rows), strict=True):
        (adopted if row.is_adopted else own).append(status)
    return FrozenPlan(PlanId(plan_id), planned_at, own, adopted)


def _new(plan: BatchPlan, owner: Owner, lease: timedelta) -> BatchStatus:
    """A batch as it stands once it is entered."""
    seconds = lease.total_seconds()
    return BatchStatus(
        plan=replace(plan, ranges=tuple(sorted(plan.ranges, key=lambda each: each.offsets))),
        state=BatchState.PLANNED,
        newest_token=FencingToken(0),
        applications=0,
        committed_by=None,
        lease_seconds_left=max(0.0, seconds),
        holder=owner if seconds > 0 else None,
    )


def _is_within(own: Window | None, window: Window | None) -> bool:
    """True for a window that ends no later than the plan's, and where neither has one."""
    if own is None or window is None:
        return own is window
    return own.until_instant <= window.until_instant


def _enter(
    transaction: Transaction,
    feed: FeedName,
    plan_id: int,
    batches: Sequence[BatchPlan],
    owner: Owner,
    lease: timedelta,
) -> None:
    transaction.change(
        "make_batches",
        feed=feed,
        plan_id=plan_id,
        owner=owner,
        lease=lease,
        batch_ids=[each.batch_id for each in batches],
        roots=[each.root for each in batches],
        topics=[each.topic for each in batches],
        cluster_ids=[each.cluster_id for each in batches],
        topic_ids=[each.topic_id for each in batches],
        ordinals=[each.ordinal for each in batches],
        labels=[each.label for each in batches],
        windows_from=[each.window and each.window.from_instant for each in batches],
        windows_until=[each.window and each.window.until_instant for each in batches],
    )


def _claim(transaction: Transaction, feed: FeedName, batches: Sequence[BatchPlan]) -> None:
    claims = [(batch.batch_id, each) for batch in batches for each in batch.ranges]
    if not claims:
        return
    repairs = {each.batch_id for each in batches if each.is_repair}
    transaction.partitions = {each.generation_id: str(each.offsets.partition) for _, each in claims}
    entered = transaction.change(
        "claim_ranges",
        feed=feed,
        batch_ids=[batch_id for batch_id, _ in claims],
        **offset_columns([(each.generation_id, each.offsets) for _, each in claims]),
        partitions=[each.offsets.partition.partition for _, each in claims],
        replaces=[batch_id in repairs for batch_id, _ in claims],
    )
    if entered != len(claims):
        missing = len(claims) - entered
        raise LedgerRefused("claim_ranges", f"{missing} ranges name a foreign generation")


def _replace(transaction: Transaction, batches: Sequence[BatchPlan]) -> None:
    replaced = [(batch.batch_id, each) for batch in batches for each in batch.replaces]
    if not replaced:
        return
    entered = transaction.change(
        "replace_files",
        batch_ids=[batch_id for batch_id, _ in replaced],
        old_batch_ids=[each.batch_id for _, each in replaced],
        names=[each.name for _, each in replaced],
    )
    if entered != len(replaced):
        gone = len(replaced) - entered
        raise LedgerRefused("replace_files", f"{gone} of the files are replaced already")


def _adopted(
    transaction: Transaction,
    feed: FeedName,
    batch_ids: Sequence[BatchId],
    owner: Owner,
    lease: timedelta,
) -> list[BatchId]:
    """The batches that were really taken over, in the order they were given."""
    if not batch_ids:
        return []
    rows = transaction.rows(
        "adopt_batches", feed=feed, owner=owner, lease=lease, batch_ids=list(batch_ids)
    )
    taken = {row.batch_id for row in rows}
    return [each for each in batch_ids if each in taken]


@dataclass(frozen=True, slots=True)
class Retirement:
    """With what a feed has ended."""

    commits: int
    digest: bytes | None
    """Of the last link of its chain; None without a commit."""


class PlanningSession:
    """The one transaction of a plan; the feed's planning lock is held until it ends."""

    def __init__(self, transaction: Transaction, feed: FeedName, begun: LookBegun) -> None:
        self._transaction = transaction
        self._feed = feed
        self._begun = begun
        self.snapshot_id: int | None = None
        """The number of the look that was recorded."""

    @classmethod
    def entered(cls, transaction: Transaction, feed: FeedName, topic: str) -> PlanningSession:
        """A session that holds the feed's planning lock.

        Raises ConfigurationError when the feed has been landing another topic: their offsets would
        be taken for one another's.
        """
        transaction.feed = feed
        transaction.change("enter_feed", feed=feed, topic=topic)
        known = transaction.one("lock_feed", feed=feed).topic
        if known != topic:
            accepted = ONLY_TOPIC.format(known)
            raise ConfigurationError("source.topic", topic, accepted, where=f"feed {feed}")
        return cls(transaction, feed, begun_look(transaction))

    def describe(self, file: FeedInFile) -> None:
        """Keep what the feed's file says, for who has the ledger only."""
        self._transaction.change(
            "describe_feed", feed=self._feed, described=json.dumps(to_plain(file))
        )

    def newest_plan(self, window: Window | None) -> FrozenPlan | None:
        """The newest plan of this window, as its batches stand; None before it.

        A run without a window never has one: it plans anew, after adopting what was left.
        """
        return _newest_plan(self._transaction, self._feed, window)

    def first_planned_at(self, owner: Owner) -> datetime | None:
        """When this owner first froze a plan of the feed; None if it never did.

        All tries of a run are one owner: what an earlier one found, and died, is this run's news.
        """
        found = self._transaction.one("first_plan", feed=self._feed, owner=owner)
        return cast("datetime | None", found.planned_at)

    def accounts(self) -> Accounts:
        """Generations and unfinished batches of the feed, as of this transaction."""
        return _accounts(self._transaction, self._feed)

    def record_look(
        self, snapshot: BrokerSnapshot, witnessed: Collection[int], doubt: str | None = None
    ) -> int:
        """Keep a look without changes; its number.

        It is the witness of these partitions from here on: it has asked the one before, which held.
        `doubt` says why nothing is proven to be complete up to it.
        """
        number = record_snapshot(self._transaction, self._feed, snapshot, self._begun, doubt)
        see(self._transaction, self._feed, snapshot, witnessed)
        self.snapshot_id = number
        return number

    def apply(
        self, changes: LogChanges, snapshot: BrokerSnapshot | None
    ) -> Mapping[int, GenerationId] | None:
        """Cut, lose, set due again, end and open generations, then record the snapshot.

        Returns the ids of opened generations by partition. None, and nothing is changed, where a
        claim that it cuts was committed in the meantime.

        Without a snapshot no broker was asked, or its look is recorded on its own.
        A batch that loses its last range is abandoned. Batches of a closed generation are abandoned
        whatever their lease says.
        """
        opened = apply_changes(self._transaction, self._feed, changes, snapshot)
        if snapshot and opened is not None:
            self.snapshot_id = record_snapshot(self._transaction, self._feed, snapshot, self._begun)
        return opened

    def record_findings(self, findings: Sequence[Finding]) -> None:
        """Keep findings with this very transaction, as `Ledger.record_findings` does."""
        record_findings(self._transaction, self._feed, findings)

    def freeze(
        self,
        window: Window | None,
        batches: Sequence[BatchPlan],
        adopted: Sequence[BatchId],
        *,
        owner: Owner,
        lease: timedelta,
    ) -> FrozenPlan:
        """Claim the ranges and take over the adopted batches; raises ClaimConflict.

        Each batch has a window of its own, which ends no later than the run's `window`. New and
        adopted batches carry a lease for this owner, so no other run adopts them at once. A batch
        that has found a living owner in the meantime is not adopted.
        """
        transaction, feed, planned_at = self._transaction, self._feed, self._begun.begun_at
        plan_id = transaction.one(
            "make_plan",
            feed=feed,
            window_from=window.from_instant if window else None,
            window_until=window.until_instant if window else None,
            owner=owner,
            snapshot_id=self.snapshot_id,
            planned_at=planned_at,
        ).plan_id
        foreign = [
            each.batch_id
            for each in batches
            if each.feed != feed or not _is_within(each.window, window)
        ]
        if foreign:
            raise LedgerRefused(
                "make_batches", f"{foreign} belong to another feed or a later window"
            )
        if batches:
            _enter(transaction, feed, plan_id, batches, owner, lease)
            _claim(transaction, feed, batches)
            _replace(transaction, batches)
        taken = _adopted(transaction, feed, adopted, owner, lease)
        own = [each.batch_id for each in batches]
        for batch_ids, is_adopted in ((own, False), (taken, True)):
            if batch_ids:
                transaction.change(
                    "join_batches", plan_id=plan_id, batch_ids=batch_ids, is_adopted=is_adopted
                )
        if taken:
            return frozen_plan(transaction, plan_id, planned_at)
        new = [_new(each, owner, lease) for each in batches]
        return FrozenPlan(PlanId(plan_id), planned_at, new, [])


class Planning(Tables):
    """What plans read and write."""

    @contextmanager
    def planning(self, feed: FeedName, topic: str) -> Iterator[PlanningSession]:
        """One plan's transaction: committed when the block ends well, undone when it raises."""
        with self._connection.writing() as transaction:
            yield PlanningSession.entered(transaction, feed, topic)

    def accounts(self, feed: FeedName) -> Accounts:
        """The same as in planning, without the lock: for a dry run and for reconcile."""
        with self._connection.reading() as transaction:
            return _accounts(transaction, feed)

    def newest_tokens(self, feed: FeedName) -> Mapping[BatchId, FencingToken]:
        """The feed's unfinished batches that nobody holds, each with its newest token."""
        rows = self._connection.rows("newest_tokens", feed=feed)
        return {BatchId(row.batch_id): FencingToken(row.newest_token) for row in rows}

    def newest_plan(self, feed: FeedName, window: Window | None) -> FrozenPlan | None:
        """The same as in planning, without the lock: for a dry run."""
        with self._connection.reading() as transaction:
            return _newest_plan(transaction, feed, window)

    def retire(self, feed: FeedName, *, reason: str, by: str) -> Retirement:
        """End a feed: nobody plans it again. What is on record of it stays.

        Raises RetirementRefused while a batch is not over, or a finding is open, or when it has
        ended before.
        """
        verdicts = [each.value for each in FAILING_VERDICTS]
        with self._connection.writing() as transaction:
            transaction.rows("lock_feed", feed=feed)
            if ended := transaction.one("on_record", feed=feed, topic="").retired:
                raise RetirementRefused(feed, f"it was retired by {ended}")
            left = transaction.one("left_of_feed", feed=feed, verdicts=verdicts)
            if left.batches or left.findings:
                told = (
                    f"{left.batches} of its batches are not over, {left.findings} findings are open"
                )
                raise RetirementRefused(feed, told)
            row = transaction.one(
                "retire_feed", feed=feed, reason=storable(reason), by=storable(by)
            )
        return Retirement(row.commits, row.digest)


def _accounts(transaction: Transaction, feed: FeedName) -> Accounts:
    """Generations and unfinished batches of the feed, as this transaction sees them."""
    # First: a claim that is released between the two would else count as accounted for.
    unfinished = batch_rows(transaction, feed=feed, only_unfinished=True)
    found = transaction.rows("newest_generations", feed=feed)
    return Accounts(
        generations={row.partition: generation_account(row) for row in found},
        unfinished=batch_statuses(transaction, unfinished),
        retired_topic_ids=frozenset(
            row.topic_id for row in transaction.rows("retired_topic_ids", feed=feed)
        ),
    )


def _newest_plan(
    transaction: Transaction, feed: FeedName, window: Window | None
) -> FrozenPlan | None:
    """The newest plan of this window, as its batches stand in this transaction; None before it."""
    if window is None:
        return None
    newest = transaction.row(
        "newest_plan",
        feed=feed,
        window_from=window.from_instant,
        window_until=window.until_instant,
    )
    if newest is None:
        return None
    return frozen_plan(transaction, newest.plan_id, newest.planned_at)
