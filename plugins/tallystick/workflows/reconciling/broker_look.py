"""One look at the broker, beside the accounts that it was compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Trait
from tallystick.domain.rules.witnesses import broker_findings
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.proofs import BatchPlace
from tallystick.workflows.planning.looking import foreseen_by_look, look_at_log
from tallystick.workflows.planning.outlooks import outlook, terms
from tallystick.workflows.reconciling.aborted_check import aborted_findings
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staging import staged

# A run at work changes a partition's account every few seconds at most; a look takes less.
_MORE_LOOKS_BESIDE_A_RUN: Final = 3


@dataclass(frozen=True, slots=True)
class BrokerLook:
    """One look at the broker, beside the accounts that it was compared with."""

    snapshot_id: int | None
    """The look's number on record; None for a feed that was never planned."""
    accounts: Accounts
    seen: Observation
    around: Outlook
    foreseen: Sequence[Finding]
    """What the next plan will find, and record with the change itself."""
    standing: Sequence[Finding]

    def is_overtaken(self, now: Accounts) -> bool:
        """True when a finding is about a log that a run has worked on meanwhile, and when a run has
        begun an attempt: its files may have been moved while they were asked.
        """
        if _tokens(self.accounts) != _tokens(now):
            return True
        places = {each.partition for each in (*self.foreseen, *self.standing)}
        return any(self._is_worked_on(each, now) for each in places if each is not None)

    def _is_worked_on(self, partition: int, now: Accounts) -> bool:
        before, after = self.accounts.generations.get(partition), now.generations.get(partition)
        if before and after:
            # The look itself has handed the witness over.
            seen = before.last_seen_until, before.seen_epoch
            after = replace(after, last_seen_until=seen[0], seen_epoch=seen[1])
        return before != after or _tokens(self.accounts, partition) != _tokens(now, partition)

    def doubted(self, now: Accounts) -> BrokerLook:
        """The same; what it calls lost of logs that a run has worked on meanwhile is UNKNOWN.

        But for what no landing changes: a log that was cut stays cut.
        """
        return replace(
            self,
            foreseen=[
                _perhaps_landed(each)
                if each.rule.has(Trait.RESTS_ON_FRONTIER)
                and each.verdict is Verdict.PROVEN_LOSS
                and each.partition is not None
                and self._is_worked_on(each.partition, now)
                else each
                for each in self.foreseen
            ],
        )


def look_at_broker(services: Services, places: Sequence[BatchPlace]) -> BrokerLook:
    """A look whose findings hold for the accounts as they still are.

    The ledger is read before the broker. If a run lands between the two, and retention takes the
    landed records, what is safe looks lost: so where something is found, the ledger is read again.
    Where runs go on beside each look, nothing that they may have landed is called lost.
    """
    look = _one_look(services, places)
    for more in reversed(range(_MORE_LOOKS_BESIDE_A_RUN + 1)):
        if not (look.foreseen or look.standing):
            break
        now = services.ledger.accounts(services.feed_name)
        if not look.is_overtaken(now):
            break
        look = _one_look(services, places) if more else look.doubted(now)
    return look


def _tokens(accounts: Accounts, partition: int | None = None) -> dict[BatchId, FencingToken]:
    """Of all unfinished batches, or of those that claim offsets of the partition."""
    return {
        each.plan.batch_id: each.newest_token
        for each in accounts.unfinished
        if partition is None
        or any(planned.offsets.partition.partition == partition for planned in each.plan.ranges)
    }


def _perhaps_landed(found: Finding) -> Finding:
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} But a run was at work on this log in each look, and may have landed"
        " these offsets.",
        next_step=f"Look again when the run has ended: tallystick reconcile {found.feed}",
    )


def _one_look(services: Services, places: Sequence[BatchPlace]) -> BrokerLook:
    there = staged(services)
    look = look_at_log(services)
    feed, accounts, seen = services.feed_name, look.accounts, look.seen
    known = accounts.generations
    around = outlook(services, known, seen.snapshot)
    return BrokerLook(
        look.snapshot_id,
        accounts,
        seen,
        around,
        foreseen=foreseen_by_look(services, accounts, seen, there),
        standing=(
            *broker_findings(feed, known, seen, around, terms(services)),
            *aborted_findings(services, places, accounts, seen),
        ),
    )
