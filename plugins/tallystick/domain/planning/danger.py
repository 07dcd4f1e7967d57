"""What a look at the log would end, if no attempt held anything: so attempts are asked first.

A decision, and no effect: `workflows.asking` asks them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.domain.attempts.asked import Asked, Unasked
from tallystick.domain.attempts.last_copies import KeptFiles, ProvablePart, places_for
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import Isolation, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.failing_batches import taken_apart, to_be_asked
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs


@dataclass(frozen=True, slots=True)
class InDanger:
    """A look at the log after which claims would end; nothing of it is on record yet."""

    accounts: Accounts
    seen: Observation
    changes: LogChanges
    """What `judge_logs` says of the two, if no attempt held anything."""
    taken_apart: frozenset[BatchId]
    """The batches that would release claims, or set offsets aside when they fail once more: what
    their attempts hold can't be committed any more then."""

    @property
    def batches(self) -> list[BatchStatus]:
        """Those that would lose claims, or release them."""
        ids = self.changes.in_danger | self.taken_apart
        return [each for each in self.accounts.unfinished if each.plan.batch_id in ids]

    def is_to_be_asked(self, asked: Asked | None = None) -> bool:
        """True where something would be lost, or is cut: what attempts hold of it is named then.

        Once they were `asked`, only where more would be lost by now, and they may hold it.
        """
        if asked is None:
            return bool(self.batches or self.changes.lost or self.changes.stopped)
        accounts = self.accounts.generations
        return any(asked.has_missed(accounts[each.partition.partition], each) for each in self.lost)

    @property
    def lost(self) -> list[OffsetRange]:
        """The offsets that would be lost."""
        cut = [each.offsets for each in self.changes.cuts if each.becomes is RangeState.LOST]
        return [*(each.offsets for each in self.changes.lost), *cut]

    def at_stake(self, asked: Asked | None) -> list[Unasked]:
        """The directories that such a batch waits for, or that may hold what would be lost."""
        generations, ids = self.accounts.generations, {each.plan.batch_id for each in self.batches}
        lost = [(generations[each.partition.partition].topic_id, each) for each in self.lost]
        return [
            each
            for each in (asked.unasked if asked else ())
            if each.batch_ids & ids or any(each.files.may_hold(*one) for one in lost)
        ]

    def given_up(
        self, plan: BatchPlan, parts: tuple[ProvablePart, ...], kept: tuple[KeptFiles, ...]
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


def danger_in(accounts: Accounts, seen: Observation, isolation: Isolation) -> InDanger:
    """What this look would end, if no attempt held anything."""
    changes = judge_logs(accounts, seen)
    apart = taken_apart(accounts, seen.snapshot, isolation, changes.cuts, None)
    return InDanger(accounts, seen, changes, apart.batches | to_be_asked(accounts))
