"""Facts in, a plan out. The one decision behind a run's plan and a dry run's.

1. What attempts may hold is not lost (`log_judgement`).
2. The broker's time index is asked by questions that the decision yields.
3. What the plan says of the accounts after its changes is what the ledger then holds, but for the
   witnesses of logs, which the look hands over.
4. A plan of the same window that can still be landed is carried out: nothing is decided anew.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tallystick.domain.attempts.staged import Staged
from tallystick.domain.batches.states import Isolation
from tallystick.domain.batches.taking import may_be_adopted
from tallystick.domain.deciding.plan import FrozenPlan, Plan
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.logs.snapshot import CLOCKS_MAY_DIFFER
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.due import (
    PlanLimits,
    RunPlan,
    beyond_budgets,
    due_offsets,
    plan_run,
    wanted_offsets,
)
from tallystick.domain.planning.failing_batches import taken_apart
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.planning.window_cuts import Borders, FirstOffsets, Question, window_pieces
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import change_findings
from tallystick.domain.rules.u1_could_not_tell import unheard_partitions
from tallystick.domain.rules.z5_no_progress import frozen_time_index
from tallystick.domain.window import Window

_MANY_RUNS: Final = 2


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """By what a feed plans."""

    feed: FeedName
    topic: str
    root: str
    isolation: Isolation
    limits: PlanLimits
    schedule: Borders | None
    """Where windows begin and end; None where records go under the run's window, whatever their
    time."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """All that a plan is decided from."""

    terms: PlanTerms
    window: Window | None
    owner: Owner | None
    """Whose plan it is; None for a dry run that stands for no run."""
    now: datetime
    frozen: FrozenPlan | None
    """The window's newest plan, also where nothing of it is left to land."""
    accounts: Accounts
    seen: Observation
    staged: Staged
    """What attempts may hold."""

    @property
    def by_windows(self) -> tuple[Window, Borders] | None:
        """The run's window and all others, where each record goes under its own."""
        if self.window is None or self.terms.schedule is None:
            return None
        return self.window, self.terms.schedule


@dataclass(frozen=True, slots=True)
class FirstBatches:
    """Asks where the first batch begins that a log holds at this offset or behind it."""

    offsets: Mapping[int, int]
    """By partition."""


Decision = Generator[Question | FirstBatches, FirstOffsets, Plan]
"""Yields questions to the time index, and to logs of which more is due than fits into a budget; is
sent the answers, and returns the plan."""


def carried_out_as_frozen(frozen: FrozenPlan | None) -> Plan | None:
    """The window's newest plan where it is carried out without a look at the log, else None.

    Where one of its batches has failed, `decide` says by a look what is left of it.
    """
    if frozen is None or not frozen.is_open or frozen.has_failed:
        return None
    return Plan(resumed=frozen)


def decide(facts: PlanFacts) -> Decision:
    """The plan of these facts."""
    terms, seen = facts.terms, facts.seen
    changes, groups = _changes(facts)
    after = accounts_after(facts.accounts, changes)
    ends = yield from _window_ends(facts)
    findings = _findings(facts, changes, after)
    left = facts.frozen.where(after) if facts.frozen else None
    if left and left.is_open:
        return Plan(seen, left, changes, findings)
    wanted = wanted_offsets(after.generations, seen.snapshot, isolation=terms.isolation, cuts=ends)
    beyond = beyond_budgets(wanted, terms.limits)
    told = (yield FirstBatches(beyond)) if beyond else {}
    first_batches = {each: first for each, first in told.items() if first is not None}
    due = due_offsets(wanted, terms.limits, first_batches)
    pieces = None
    if facts.by_windows:
        pieces = yield from window_pieces(due.by_partition(), *facts.by_windows)
    adopted = tuple(each for each in after.unfinished if may_be_adopted(each, facts.owner))
    run = plan_run(
        after.generations,
        due,
        limits=terms.limits,
        groups=groups,
        pieces=pieces,
        adopted=len(adopted),
    )
    held = tuple(each for each in after.unfinished if each not in adopted)
    return Plan(
        look=seen,
        changes=changes,
        findings=findings,
        batches=run.batches,
        adopted=adopted,
        held=held,
        wanted=run.wanted,
        warnings=(*_late_beginning(facts, changes), *_warnings(facts, run), *_runs_left(run)),
    )


def _changes(facts: PlanFacts) -> tuple[LogChanges, Mapping[int, int]]:
    """What becomes of the logs and of batches that fail again and again; which partitions part."""
    accounts, seen, staged = facts.accounts, facts.seen, facts.staged
    changes = judge_logs(accounts, seen, staged)
    # Claims that the log has lost are not released, also where an attempt may hold them.
    gone = judge_logs(accounts, seen).cuts if staged.held else changes.cuts
    terms = facts.terms
    apart = taken_apart(accounts, seen.snapshot, terms.isolation, gone, staged, terms.root)
    return replace(changes, cuts=(*changes.cuts, *apart.cuts)), apart.groups


def _findings(facts: PlanFacts, changes: LogChanges, after: Accounts) -> tuple[Finding, ...]:
    terms, known, seen = facts.terms, facts.accounts.generations, facts.seen
    return (
        *change_findings(terms.feed, known, changes, seen),
        *unheard_partitions(terms.feed, known, seen.snapshot),
        *frozen_time_index(terms.feed, after.generations, seen.snapshot, terms.isolation),
    )


def _window_ends(facts: PlanFacts) -> Generator[Question, FirstOffsets, FirstOffsets | None]:
    """The first offsets at or after the window's end, by partition; None if no window limits."""
    if facts.by_windows is None:
        return None
    end, snapshot = facts.by_windows[0].until_instant, facts.seen.snapshot
    if snapshot.border and snapshot.border.instant == end and snapshot.border.offsets:
        return snapshot.border.offsets
    return (yield Question(end, tuple(snapshot.partitions)))


def _warnings(facts: PlanFacts, run: RunPlan) -> tuple[str, ...]:
    """A warning of a window that is not over, or over for longer than it lasted where new records
    go under it.
    """
    window = facts.window
    if window and window.until_instant - facts.now > CLOCKS_MAY_DIFFER:
        return (f"The window {window} is not over: a later run lands what comes until its end.",)
    if window is None or facts.by_windows or not run.batches:
        return ()
    if facts.now - window.until_instant <= window.until_instant - window.from_instant:
        return ()
    return (
        f"plan.until is 'now': this run puts current records under the old window {window}."
        " Use 'window_end' to keep directories by record time.",
    )


def _late_beginning(facts: PlanFacts, changes: LogChanges) -> tuple[str, ...]:
    """A warning when the feed's very first look comes after records were deleted."""
    opened = () if facts.accounts.generations else changes.opened
    bounds = facts.seen.snapshot.partitions
    # A start policy may begin later than the log itself.
    late = [
        each
        for each in opened
        if 0 < each.first_offset == bounds[each.partition.partition].log_start_offset
    ]
    if not late:
        return ()
    return (
        f"{len(late)} of {len(opened)} partitions began above offset 0 when this feed first looked"
        f" ({late[0].partition} at {late[0].first_offset}): what was deleted before is not landed,"
        " and is no loss of this feed.",
    )


def _runs_left(run: RunPlan) -> tuple[str, ...]:
    """A warning where the budgets leave so much that many runs are needed for it."""
    left = run.wanted - run.planned
    more = -(-left // run.planned) if run.planned else 0
    if more < _MANY_RUNS:
        return ()
    return (
        f"{run.planned} of {run.wanted} offsets that are due fit into this run's budgets: about"
        f" {more} more runs are needed for what is there now. Set plan.max_records_per_run higher,"
        " or run more often.",
    )
