"""The one transaction of a plan: what is known, what has changed, what is claimed.

Everybody locks in the same order, so nobody waits in a circle: the feed, then batches, then
generations, each by id. Batches adopted at the end are taken only where nobody holds their row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from tallystick.domain.batch import BatchPlan, BatchStatus
from tallystick.domain.findings import Finding
from tallystick.domain.generation import GenerationState
from tallystick.domain.identities import BatchId, FeedName, Owner, PlanId
from tallystick.domain.log_changes import Accounts, CutClaim, EndedGeneration, LogChanges
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.domain.states import RangeState
from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, LedgerRefused
from tallystick.ledger.connection import Transaction
from tallystick.ledger.cuts import SplitClaims, split_claims
from tallystick.ledger.finding_rows import record_findings
from tallystick.ledger.rows import batch_statuses, claims_of, generation_account, in_utc
from tallystick.ports.ledger import FrozenPlan


def read_accounts(transaction: Transaction, feed: FeedName) -> Accounts:
    """Generations and unfinished batches of the feed, as this transaction sees them."""
    found = transaction.rows("newest_generations", feed=feed)
    unfinished = transaction.rows("unfinished_batches", feed=feed)
    return Accounts(
        generations={row.partition: generation_account(row) for row in found},
        unfinished=batch_statuses(transaction, unfinished),
    )


class PostgresPlanningSession:
    """Fulfils `PlanningSession`; lives as long as its transaction."""

    def __init__(self, transaction: Transaction, feed: FeedName, planned_at: datetime) -> None:
        self._transaction = transaction
        self._feed = feed
        self._planned_at = planned_at
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
            accepted = f"{known}, which this feed has landed so far; give another topic a new feed"
            raise ConfigurationError("source.topic", topic, accepted, where=f"feed {feed}")
        return cls(transaction, feed, in_utc(transaction.one("clock").instant))

    def open_plan(self, window: Window | None) -> FrozenPlan | None:
        """The newest plan of this window while one of its batches is unfinished, else None."""
        if window is None:
            return None
        newest = self._transaction.row(
            "newest_plan",
            feed=self._feed,
            window_from=window.from_instant,
            window_until=window.until_instant,
        )
        if newest is None:
            return None
        found = self._frozen(PlanId(newest.plan_id), in_utc(newest.planned_at))
        batches = (*found.batches, *found.adopted)
        return found if any(each.state.is_unfinished for each in batches) else None

    def accounts(self) -> Accounts:
        """Generations and unfinished batches of the feed, as of this transaction."""
        return read_accounts(self._transaction, self._feed)

    def apply(
        self, changes: LogChanges, snapshot: BrokerSnapshot, findings: Sequence[Finding]
    ) -> Accounts:
        """Record the snapshot and the findings, then change what the log has changed."""
        self._record_snapshot(snapshot)
        record_findings(self._transaction, self._feed, findings)
        batch_ids, closing_ids = self._locked_batches(changes)
        self._transaction.rows("lock_living_generations", feed=self._feed)
        self._cut(changes.cuts, batch_ids)
        self._lose(changes)
        self._end(changes.closed, GenerationState.CLOSED)
        self._end(changes.stopped, GenerationState.STOPPED)
        if closing_ids:
            self._transaction.change("release_claims", batch_ids=closing_ids)
        if batch_ids:
            self._transaction.change("abandon_empty_batches", batch_ids=batch_ids)
        self._open(changes)
        self._see(snapshot)
        return self.accounts()

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
            planned_at=self._planned_at,
        )
        plan_id = PlanId(plan.plan_id)
        self._make_batches(plan_id, window, batches, owner, lease)
        self._claim(batches)
        taken = self._adopted(adopted, owner, lease)
        own = [each.batch_id for each in batches]
        for batch_ids, is_adopted in ((own, False), (taken, True)):
            if batch_ids:
                self._transaction.change(
                    "join_batches", plan_id=plan_id, batch_ids=batch_ids, is_adopted=is_adopted
                )
        return self._frozen(plan_id, self._planned_at)

    def _frozen(self, plan_id: PlanId, planned_at: datetime) -> FrozenPlan:
        rows = self._transaction.rows("plan_batches", plan_id=plan_id)
        statuses = batch_statuses(self._transaction, rows)
        own: list[BatchStatus] = []
        adopted: list[BatchStatus] = []
        for row, status in zip(rows, statuses, strict=True):
            (adopted if row.is_adopted else own).append(status)
        return FrozenPlan(plan_id, planned_at, own, adopted)

    def _record_snapshot(self, snapshot: BrokerSnapshot) -> None:
        partitions = sorted(snapshot.partitions)
        bounds = [snapshot.partitions[each] for each in partitions]
        recorded = self._transaction.one(
            "record_snapshot",
            feed=self._feed,
            taken_at=snapshot.taken_at,
            cluster_id=snapshot.cluster_id,
            topic=snapshot.topic,
            topic_id=snapshot.topic_id,
            is_compacted=snapshot.is_compacted,
            retention_ms=snapshot.retention_ms,
            partitions=partitions,
            log_start_offsets=[each.log_start_offset for each in bounds],
            high_watermarks=[each.high_watermark for each in bounds],
            last_stable_offsets=[each.last_stable_offset for each in bounds],
            leader_epochs=[each.leader_epoch for each in bounds],
        )
        self._snapshot_id = recorded.snapshot_id

    def _locked_batches(self, changes: LogChanges) -> tuple[list[str], list[str]]:
        """The unfinished batches that lose something, and among them those of a closed generation.

        A batch that was committed since the accounts were read is not among them: its offsets are
        landed, and nothing of it is cut.
        """
        cut_ids = sorted({each.batch_id for each in changes.cuts})
        closed_ids = [each.generation_id for each in changes.closed]
        if not cut_ids and not closed_ids:
            return [], []
        rows = self._transaction.rows(
            "lock_batches_to_change", feed=self._feed, batch_ids=cut_ids, closed_ids=closed_ids
        )
        return (
            [row.batch_id for row in rows],
            [row.batch_id for row in rows if row.claims_closed],
        )

    def _cut(self, cuts: Sequence[CutClaim], batch_ids: Sequence[str]) -> None:
        if not cuts or not batch_ids:
            return
        claims = claims_of(self._transaction, batch_ids)
        self._name_partitions(
            {claim.generation_id: str(claim.offsets.partition) for claim in claims}
        )
        split = split_claims(claims, cuts)
        self._shrink(split)
        self._advance(
            {each.claim.generation_id for each in (*split.changed, *split.entered)}
        )

    def _shrink(self, split: SplitClaims) -> None:
        changed, entered = split.changed, split.entered
        self._transaction.change(
            "shrink_claims",
            range_ids=[each.claim.range_id for each in changed],
            from_offsets=[each.offsets.from_offset for each in changed],
            until_offsets=[each.offsets.until_offset for each in changed],
            states=[each.state.value for each in changed],
            loss_codes=[each.loss_code for each in changed],
        )
        self._transaction.change(
            "insert_ranges",
            generation_ids=[each.claim.generation_id for each in entered],
            from_offsets=[each.offsets.from_offset for each in entered],
            until_offsets=[each.offsets.until_offset for each in entered],
            states=[each.state.value for each in entered],
            batch_ids=[each.claim.batch_id for each in entered],
            loss_codes=[each.loss_code for each in entered],
            loss_evidences=[None for _ in entered],
        )

    def _lose(self, changes: LogChanges) -> None:
        lost = changes.lost
        if not lost:
            return
        self._name_partitions({each.generation_id: str(each.offsets.partition) for each in lost})
        self._transaction.change(
            "insert_ranges",
            generation_ids=[each.generation_id for each in lost],
            from_offsets=[each.offsets.from_offset for each in lost],
            until_offsets=[each.offsets.until_offset for each in lost],
            states=[RangeState.LOST.value for _ in lost],
            batch_ids=[None for _ in lost],
            loss_codes=[each.code.value for each in lost],
            loss_evidences=[json.dumps(dict(each.evidence), default=str) for each in lost],
        )
        self._advance({each.generation_id for each in lost})

    def _advance(self, generation_ids: set[int]) -> None:
        self._transaction.change("advance_frontiers", generation_ids=sorted(generation_ids))

    def _end(self, ended: Sequence[EndedGeneration], state: GenerationState) -> None:
        if not ended:
            return
        changed = self._transaction.change(
            "end_generations",
            feed=self._feed,
            state=state.value,
            generation_ids=[each.generation_id for each in ended],
            codes=[each.code.value for each in ended],
            reasons=[each.reason for each in ended],
        )
        if changed != len(ended):
            named = ", ".join(str(each.generation_id) for each in ended)
            raise LedgerRefused("end_generations", f"not all of {named} belong to {self._feed}")

    def _open(self, changes: LogChanges) -> None:
        opened = changes.opened
        if not opened:
            return
        self._transaction.change(
            "open_generations",
            feed=self._feed,
            topics=[each.partition.topic for each in opened],
            partitions=[each.partition.partition for each in opened],
            cluster_ids=[each.cluster_id for each in opened],
            topic_ids=[each.topic_id for each in opened],
            ordinals=[each.ordinal for each in opened],
            first_offsets=[each.first_offset for each in opened],
            reasons=[each.reason for each in opened],
        )

    def _see(self, snapshot: BrokerSnapshot) -> None:
        self._transaction.change(
            "see_high_watermarks",
            feed=self._feed,
            cluster_id=snapshot.cluster_id,
            topic_id=snapshot.topic_id,
            partitions=list(snapshot.partitions),
            high_watermarks=[each.high_watermark for each in snapshot.partitions.values()],
        )

    def _make_batches(
        self,
        plan_id: PlanId,
        window: Window | None,
        batches: Sequence[BatchPlan],
        owner: Owner,
        lease: timedelta,
    ) -> None:
        foreign = [
            each.batch_id for each in batches if (each.feed, each.window) != (self._feed, window)
        ]
        if foreign:
            raise LedgerRefused("make_batches", f"{foreign} belong to another feed or window")
        if not batches:
            return
        self._transaction.change(
            "make_batches",
            feed=self._feed,
            plan_id=plan_id,
            owner=owner,
            lease=lease,
            batch_ids=[each.batch_id for each in batches],
            topics=[each.topic for each in batches],
            cluster_ids=[each.cluster_id for each in batches],
            topic_ids=[each.topic_id for each in batches],
            ordinals=[each.ordinal for each in batches],
            labels=[each.label for each in batches],
        )

    def _claim(self, batches: Sequence[BatchPlan]) -> None:
        claims = [(batch.batch_id, each) for batch in batches for each in batch.ranges]
        if not claims:
            return
        self._name_partitions(
            {each.generation_id: str(each.offsets.partition) for _, each in claims}
        )
        entered = self._transaction.change(
            "claim_ranges",
            feed=self._feed,
            batch_ids=[batch_id for batch_id, _ in claims],
            generation_ids=[each.generation_id for _, each in claims],
            partitions=[each.offsets.partition.partition for _, each in claims],
            from_offsets=[each.offsets.from_offset for _, each in claims],
            until_offsets=[each.offsets.until_offset for _, each in claims],
        )
        if entered != len(claims):
            missing = len(claims) - entered
            raise LedgerRefused("claim_ranges", f"{missing} ranges name a foreign generation")

    def _adopted(
        self, batch_ids: Sequence[BatchId], owner: Owner, lease: timedelta
    ) -> list[BatchId]:
        if not batch_ids:
            return []
        rows = self._transaction.rows(
            "adopt_batches", feed=self._feed, owner=owner, lease=lease, batch_ids=list(batch_ids)
        )
        taken = {row.batch_id for row in rows}
        return [each for each in batch_ids if each in taken]

    def _name_partitions(self, names: dict[int, str]) -> None:
        """An error of the next statements then names partitions instead of generation ids."""
        self._transaction.partitions = names
