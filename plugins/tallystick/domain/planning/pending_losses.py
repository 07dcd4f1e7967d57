"""What a look at the log would end if no attempt held anything: what is to be settled first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import KeptFiles, ProvablePart, places_for
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import Isolation, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.failing_batches import failing_batches, taken_apart
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs


@dataclass(frozen=True, slots=True)
class PendingLosses:
    """What would end; nothing of it is on record."""

    accounts: Accounts
    seen: Observation
    changes: LogChanges
    """What `judge_logs` says of the two, if no attempt held anything."""
    in_the_way: frozenset[BatchId]
    """The batches that would lose claims, or release some for want of a leader."""
    failing: frozenset[BatchId]
    """Those that fail again and again: what their attempts hold is the best that is to be had."""

    @property
    def batches(self) -> list[BatchStatus]:
        """All of them."""
        ids = self.in_the_way | self.failing
        return [each for each in self.accounts.unfinished if each.plan.batch_id in ids]

    @property
    def lost(self) -> list[OffsetRange]:
        """The offsets that would be lost."""
        cut = [each.offsets for each in self.changes.cuts if each.becomes is RangeState.LOST]
        return [*(each.offsets for each in self.changes.lost), *cut]

    @property
    def failing_claims(self) -> list[OffsetRange]:
        """What batches claim that fail again and again."""
        failing = (each for each in self.batches if each.plan.batch_id in self.failing)
        return [planned.offsets for each in failing for planned in each.plan.ranges]

    def are_held_up_by(self, batch_id: BatchId, files: KeptFiles) -> bool:
        """True when these files of the batch keep something from being lost, or released."""
        logs = self.accounts.generations
        return batch_id in self.in_the_way or any(
            files.may_hold(logs[each.partition.partition].topic_id, each) for each in self.lost
        )

    def given_up(
        self, plan: BatchPlan, parts: Sequence[ProvablePart], kept: Sequence[KeptFiles]
    ) -> LogChanges:
        """The ends of claims that are lost when files that don't prove them are committed.

        `kept` are the files of other attempts, which may have read what these have not.
        """
        codes = {each.generation_id: each.code for each in self.changes.lost}
        # Claims are also released for what stopped another partition; that is no loss.
        codes |= {
            each.generation_id: each.code
            for each in self.changes.cuts
            if each.becomes is RangeState.LOST
        }
        cuts = tuple(
            CutClaim(
                plan.batch_id,
                each.planned.generation_id,
                lost,
                RangeState.LOST,
                codes.get(each.planned.generation_id, FindingCode.EXPIRED),
                kept=places_for(kept, plan.topic_id, lost),
            )
            for each in parts
            for lost in each.lost
        )
        return LogChanges(cuts=cuts)


def pending_losses(accounts: Accounts, seen: Observation, isolation: Isolation) -> PendingLosses:
    """What this look would end, if no attempt held anything."""
    changes = judge_logs(accounts, seen)
    apart = taken_apart(accounts, seen.snapshot, isolation, changes.cuts)
    # What is only halved, the log has.
    parted = {each.batch_id for each in apart.cuts if each.code is FindingCode.COULD_NOT_TELL}
    in_the_way = changes.in_danger | parted
    return PendingLosses(accounts, seen, changes, in_the_way, failing_batches(accounts))
