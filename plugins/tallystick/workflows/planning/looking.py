"""Looks at the log, and records each look: a plan's, a check's, a repair's and a reconcile's.

1. Between the question and the record the looker holds the feed's planning lock, so nobody hands a
   witness over meanwhile: a look on record is the witness of each log that it found whole.
2. What a look shows of a log that has changed is left to the plan that records the change; until
   then the look proves nothing to be complete.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tallystick.domain.attempts.staged import Staged
from tallystick.domain.identities import FeedName
from tallystick.domain.logs.sameness import Sameness
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rules.findings import Finding, why_nothing_is_proven
from tallystick.domain.rules.log_findings import change_findings, foreseen_findings
from tallystick.ledger.planning import PlanningSession
from tallystick.workflows.planning.observing import observe
from tallystick.workflows.services import Services


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the log, beside what the ledger knew of it."""

    accounts: Accounts
    seen: Observation
    snapshot_id: int | None
    """Its number on record; None for a feed that was never planned, which has no witness."""


def look_at_log(services: Services) -> Look:
    """Look at the log, and record that; raises what `observe` raises, and nothing is recorded.

    The planning lock is held for these few requests to the broker, as a plan holds it for them.
    """
    feed = services.feed_name
    accounts = services.ledger.accounts(feed)
    if not accounts.generations:
        return Look(accounts, observe(services, accounts), None)
    with services.ledger.planning(feed, services.topic) as session:
        accounts = session.accounts()
        seen = observe(services, accounts)
        return Look(accounts, seen, record_look(session, feed, accounts, seen))


def foreseen_by_look(
    services: Services, accounts: Accounts, seen: Observation, there: Staged
) -> tuple[Finding, ...]:
    """What the next plan would find; `there` is what attempts may hold, listed before the look."""
    changes = judge_logs(accounts, seen, there)
    return foreseen_findings(services.feed_name, accounts.generations, changes, seen)


def record_look(
    session: PlanningSession,
    feed: FeedName,
    accounts: Accounts,
    seen: Observation,
    opened: Collection[int] = (),
) -> int:
    """Record a look without the changes that it shows; its number.

    `opened` are partitions of which this session has opened a log: the look is its first witness.
    """
    same = [each for each, check in seen.logs.items() if check.sameness is Sameness.SAME]
    found = change_findings(feed, accounts.generations, judge_logs(accounts, seen), seen)
    return session.record_look(seen.snapshot, {*same, *opened}, why_nothing_is_proven((), found))
