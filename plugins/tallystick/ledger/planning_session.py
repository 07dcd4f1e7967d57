"""The one transaction of a plan: what is known, what has changed, what is claimed.

Everybody locks in the same order, so nobody waits in a circle: the feed, then batches, then
generations, each by id. Batches adopted at the end are taken only where nobody holds their row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.feed_edits import ONLY_TOPIC
from tallystick.domain.planning.log_changes import Accounts, LogChanges
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding
from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, RetirementRefused
from tallystick.ledger.change_rows import LookBegun, apply_changes, begun_look, record_snapshot, see
from tallystick.ledger.connection import Transaction
from tallystick.ledger.finding_rows import record_findings
from tallystick.ledger.plan_rows import frozen_plan, made_plan
from tallystick.ledger.rows import batch_statuses, generation_account, in_utc
from tallystick.ledger.texts import storable
from tallystick.ports.planning import Retirement


def read_accounts(transaction: Transaction, feed: FeedName) -> Accounts:
    """Generations and unfinished batches of the feed, as this transaction sees them."""
    # First: a claim that is released between the two would else count as accounted for.
    unfinished = transaction.rows("unfinished_batches", feed=feed)
    found = transaction.rows("newest_generations", feed=feed)
    return Accounts(
        generations={row.partition: generation_account(row) for row in found},
        unfinished=batch_statuses(transaction, unfinished),
        retired_topic_ids=frozenset(
            row.topic_id for row in transaction.rows("retired_topic_ids", feed=feed)
        ),
    )


def retire(transaction: Transaction, feed: FeedName, reason: str, by: str) -> Retirement:
    """End the feed under its planning lock; raises RetirementRefused."""
    transaction.rows("lock_feed", feed=feed)
    if ended := transaction.one("on_record", feed=feed, topic="").retired:
        raise RetirementRefused(feed, f"it was retired by {ended}")
    verdicts = [each.value for each in FAILING_VERDICTS]
    left = transaction.one("left_of_feed", feed=feed, verdicts=verdicts)
    if left.batches or left.findings:
        told = f"{left.batches} of its batches are not over, {left.findings} findings are open"
        raise RetirementRefused(feed, told)
    row = transaction.one("retire_feed", feed=feed, reason=storable(reason), by=storable(by))
    return Retirement(row.commits, row.digest)


def read_newest_plan(
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
    return frozen_plan(transaction, newest.plan_id, in_utc(newest.planned_at))


class PostgresPlanningSession:
    """Fulfils `PlanningSession`; lives as long as its transaction."""

    def __init__(self, transaction: Transaction, feed: FeedName, begun: LookBegun) -> None:
        self._transaction = transaction
        self._feed = feed
        self._begun = begun
        self._snapshot_id: int | None = None

    @classmethod
    def entered(
        cls, transaction: Transaction, feed: FeedName, topic: str
    ) -> PostgresPlanningSession:
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

    def newest_plan(self, window: Window | None) -> FrozenPlan | None:
        """The newest plan of this window, as its batches stand; None before it."""
        return read_newest_plan(self._transaction, self._feed, window)

    def first_planned_at(self, owner: Owner) -> datetime | None:
        """When this owner first froze a plan of the feed; None if it never did."""
        found = self._transaction.one("first_plan", feed=self._feed, owner=owner).planned_at
        return in_utc(found) if found else None

    def accounts(self) -> Accounts:
        """Generations and unfinished batches of the feed, as of this transaction."""
        return read_accounts(self._transaction, self._feed)

    def record_look(
        self, snapshot: BrokerSnapshot, witnessed: Collection[int], doubt: str | None = None
    ) -> int:
        """Keep a look, and hand the witnesses of these partitions over."""
        number = record_snapshot(self._transaction, self._feed, snapshot, self._begun, doubt)
        see(self._transaction, self._feed, snapshot, witnessed)
        return number

    def apply(
        self, changes: LogChanges, snapshot: BrokerSnapshot | None
    ) -> Mapping[int, GenerationId] | None:
        """Change what the log has changed, and record the snapshot; None where neither was done."""
        opened = apply_changes(self._transaction, self._feed, changes, snapshot)
        if snapshot and opened is not None:
            self._snapshot_id = record_snapshot(
                self._transaction, self._feed, snapshot, self._begun
            )
        return opened

    def record_findings(self, findings: Sequence[Finding]) -> None:
        """Keep findings with this very transaction."""
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

        A batch that has found a living owner in the meantime is not adopted.
        """
        plan = self._transaction.one(
            "make_plan",
            feed=self._feed,
            window_from=window.from_instant if window else None,
            window_until=window.until_instant if window else None,
            owner=owner,
            snapshot_id=self._snapshot_id,
            planned_at=self._begun.begun_at,
        )
        return made_plan(
            self._transaction,
            self._feed,
            plan.plan_id,
            self._begun.begun_at,
            window,
            batches,
            adopted,
            owner=owner,
            lease=lease,
        )
