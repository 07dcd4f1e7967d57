"""The steps of the protocol model: each is one call of a port's method, and bears its name.

A step that is a fault is marked as one, so that runs without further faults can be told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from tallystick.domain.batches.states import BatchState
from tests.protocol.model import (
    FOREIGN,
    IDLE,
    NOBODY,
    OPEN_STATES,
    At,
    Landing,
    Log,
    Look,
    Process,
    Rules,
    Staging,
    State,
    has_data,
)

UNTOUCHED: Final = (Log.WHOLE, Log.CUT_LATER)
"""The log as the plan has seen it."""


class Step(NamedTuple):
    """One effect and what it leads to."""

    who: str
    method: str
    """Name of the port's method, or `crash`."""
    outcome: str
    after: State
    is_fault: bool = False
    broken: str | None = None
    """The promise that this very step breaks."""

    def __str__(self) -> str:
        return f"{self.who}: {self.method} -> {self.outcome}"


class Go(Protocol):
    """The state with one process moved on, and whatever else its step changed."""

    def __call__(self, at: At, *, attempt: int = ..., **changes: object) -> State: ...


def steps_from(state: State, rules: Rules, attempts: int) -> Iterator[Step]:
    """Every step that some process can take now; `attempts` bounds how many are ever begun."""
    for index, worker in enumerate(state.workers):
        if index == 0 or worker != state.workers[0]:
            yield from _worker_steps(state, index, rules, attempts)
    yield from _finisher_steps(state, rules)
    yield from _sweeper_steps(state, rules)
    yield from _planner_steps(state, rules)
    yield from _spark_steps(state)
    yield from _database_steps(state, rules)
    yield from _log_steps(state)
    yield from _look_steps(state, rules)


def _worker_steps(state: State, index: int, rules: Rules, attempts: int) -> Iterator[Step]:
    worker = state.workers[index]
    others = state.workers[:index] + state.workers[index + 1 :]

    def go(at: At, *, attempt: int = worker.attempt, **changes: object) -> State:
        moved = Process(at, attempt) if at is not At.IDLE else IDLE
        return state._replace(workers=tuple(sorted((*others, moved))), **changes)  # type: ignore[arg-type]

    if worker.at is At.IDLE:
        yield from _beginning(state, go, rules, attempts)
        return
    who = f"attempt {worker.attempt}"
    yield Step(who, "crash", f"before {worker.at.name}", go(At.IDLE), is_fault=True)
    if worker.at is At.TAKE_OVER:
        yield _taking_over(state, who, worker, go)
    elif worker.at is At.GIVE_UP:
        yield _giving_up(state, who, worker, go, rules)
    elif worker.at <= At.RUN:
        yield from _landing(state, who, worker, go, rules)
    elif worker.at <= At.RECORD_VERIFIED:
        yield from _verifying(state, who, worker, go, rules)
    elif worker.at in (At.COMMIT, At.DOUBT, At.DISCARD):
        yield from _committing(state, who, worker, go, rules)
    else:
        after_rename = At.MARK if rules.commits_before_rename else At.COMMIT
        yield from _publishing(state, who, worker, go, rules, after_rename)


def _beginning(state: State, go: Go, rules: Rules, attempts: int) -> Iterator[Step]:
    """What an idle worker may take up: a new attempt, or the verification of one that is there."""
    newest = state.newest + 1
    is_open = state.batch in OPEN_STATES or not rules.begins_only_unfinished
    # What the log has no more is settled before anything is landed anew.
    is_asked = not state.is_readable(newest) and state.batch in OPEN_STATES
    if is_open and not state.is_held(rules) and newest <= attempts:
        begun = go(At.WRITE_PLAN, attempt=newest, batch=BatchState.LANDING, newest=newest)
        who = f"attempt {newest}"
        yield Step(who, "begin_attempt", "new token", begun, is_fault=is_asked)
        if is_asked and _to_take_over(state):
            taking = go(At.TAKE_OVER, attempt=newest, batch=BatchState.LANDING, newest=newest)
            yield Step(who, "begin_attempt", "new token, to take over", taking)
        if is_asked and rules.gives_up_under_new_token:
            fenced = go(At.GIVE_UP, attempt=newest, batch=BatchState.LANDING, newest=newest)
            yield Step(who, "begin_attempt", "new token, to give up", fenced, is_fault=True)
    if is_asked and not rules.gives_up_under_new_token and state.newest:
        yield Step("settler", "entries", "files to give up", go(At.GIVE_UP, attempt=newest - 1))
    for attempt in range(1, newest):
        if state.holds_rows(attempt):
            again = _verification_begins(state, f"attempt {attempt}", attempt, go, rules)
            is_calm = is_asked and state.is_newest(attempt) and state.log in UNTOUCHED
            yield again._replace(is_fault=not is_calm)


def _to_take_over(state: State) -> int | None:
    """The dead attempt whose files the next one takes over: the newest, proven ones first."""
    holding = [each for each in range(1, state.newest + 1) if state.holds_rows(each)]
    if state.newest in holding:
        return None
    return max(holding, key=lambda each: (state.in_staging(each), each), default=None)


def _taking_over(state: State, who: str, worker: Process, go: Go) -> Step:
    old = _to_take_over(state)
    if old is None:
        return Step(who, "rename_exclusive", "FileMissing", go(At.IDLE))
    moved = state._replace(staging=state.staged(worker.attempt, state.in_staging(old)))
    taken = {
        "staging": moved.staged(old, Staging.ABSENT),
        "landings": state.landed(worker.attempt, state.landing(old)),
    }
    # A proof is as good as it was; files without one are proven as by every verification.
    is_proven = state.in_staging(old) is Staging.PROVEN
    following = At.RECORD_VERIFIED if is_proven else At.OUTCOME_OF
    return Step(who, "rename_exclusive", "files taken over", go(following, **taken))


def _giving_up(state: State, who: str, worker: Process, go: Go, rules: Rules) -> Step:
    """What could not be proven is moved to quarantine; the proof may fail for any reason."""
    until = worker.attempt + (not rules.gives_up_under_new_token)
    held = [each for each in range(1, until) if state.in_staging(each) is Staging.DATA]
    if not held:
        return Step(who, "rename_exclusive", "FileMissing", go(At.IDLE))
    gone = state.staged(held[-1], Staging.ABSENT)
    return Step(who, "rename_exclusive", "quarantined", go(At.IDLE, staging=gone))


def _landing(state: State, who: str, worker: Process, go: Go, rules: Rules) -> Iterator[Step]:
    found = state.in_staging(worker.attempt)
    if worker.at is At.WRITE_PLAN and rules.asks_log_before_read and state.log is Log.CUT_BELOW:
        yield Step(who, "epoch_ends", "SourceChanged", go(At.IDLE))
    elif worker.at is At.WRITE_PLAN:
        is_new = state.log is not Log.WHOLE
        landing = Landing.ON_NEW_LOG if is_new else Landing.ON_OLD_LOG
        written = {
            "staging": state.staged(worker.attempt, Staging.OPEN),
            "landings": state.landed(worker.attempt, landing),
        }
        yield Step(who, "write", "plan.json", go(At.RUN, **written))
    elif found is Staging.OPEN and not state.is_readable(worker.attempt):
        yield Step(who, "run", "ApplicationFailed", go(At.IDLE))
    elif found is not Staging.OPEN:
        outcome = "ApplicationFailed" if found is Staging.ABSENT else "application ended well"
        following = At.IDLE if found is Staging.ABSENT else At.OUTCOME_OF
        yield Step(who, "run", outcome, go(following))


def _verification_begins(state: State, who: str, attempt: int, go: Go, rules: Rules) -> Step:
    """The first question of a verification: has this very attempt committed before?

    The ledger renews the lease with its answer; here others may come between.
    """
    if attempt in state.committed:
        after = go(_first_of_publishing(rules), attempt=attempt)
        return Step(who, "take_up", "ALREADY_COMMITTED", after)
    return Step(who, "take_up", "None", go(At.RENEW_LEASE, attempt=attempt))


def _verifying(state: State, who: str, worker: Process, go: Go, rules: Rules) -> Iterator[Step]:
    attempt, found = worker.attempt, state.in_staging(worker.attempt)
    is_ours = state.is_newest(attempt) and state.batch in OPEN_STATES
    if worker.at is At.OUTCOME_OF:
        yield _verification_begins(state, who, attempt, go, rules)
    elif worker.at is At.RENEW_LEASE and not state.is_held(rules):
        outcome = "held" if is_ours else "AttemptFenced"
        yield Step(who, "renew_lease", outcome, go(At.READ_BACK if is_ours else At.IDLE))
    elif worker.at is At.READ_BACK:
        # The landing's epoch ends in the midst of the claim now.
        is_other_log = state.log is Log.CUT_BELOW and Landing.ON_NEW_LOG not in state.landing(
            attempt
        )
        is_whole = found in (Staging.DATA, Staging.PROVEN) and not state.is_cut(attempt)
        is_whole = is_whole and not (is_other_log and rules.asks_log_after_read)
        outcome = "all there" if is_whole else "VerificationFailed"
        yield Step(who, "read_back", outcome, go(At.WRITE_MANIFEST if is_whole else At.IDLE))
    elif worker.at is At.WRITE_MANIFEST:
        is_whole = found in (Staging.DATA, Staging.PROVEN)
        written = state.staged(attempt, Staging.PROVEN if is_whole else Staging.HOLLOW)
        yield Step(who, "write", "_tally.json", go(At.RECORD_VERIFIED, staging=written))
    elif worker.at is At.RECORD_VERIFIED and not state.is_held(rules):
        if is_ours:
            following = At.COMMIT if rules.commits_before_rename else At.RENAME
            verified = go(following, batch=BatchState.VERIFIED)
            yield Step(who, "record_verified", "verified", verified)
        else:
            yield Step(who, "record_verified", "AttemptFenced", go(At.IDLE))


def _committing(state: State, who: str, worker: Process, go: Go, rules: Rules) -> Iterator[Step]:
    attempt = worker.attempt
    following = _first_of_publishing(rules) if rules.commits_before_rename else At.MARK
    if worker.at is At.COMMIT and not state.is_held(rules):
        if attempt in state.committed:
            yield Step(who, "commit", "ALREADY_COMMITTED", go(following))
        elif _may_commit(state, attempt, rules):
            committed = (*state.committed, attempt)
            done = go(
                following,
                batch=BatchState.COMMITTED,
                committed=committed,
                is_witness_lost=_is_witness_lost(state, attempt, rules),
            )
            is_abandoned = state.batch is BatchState.ABANDONED
            broken = "an abandoned batch committed" if is_abandoned else None
            yield Step(who, "commit", "COMMITTED", done, broken=broken)
            again = At.OUTCOME_OF if rules.keeps_staging_when_unknown else At.DOUBT
            lost = go(again, in_flight=attempt)
            yield Step(who, "commit", "CommitOutcomeUnknown", lost, is_fault=True)
        else:
            outcome = "LedgerRefused" if state.is_newest(attempt) else "AttemptFenced"
            yield Step(who, "commit", outcome, go(At.IDLE))
    elif worker.at is At.DOUBT:
        is_done = attempt in state.committed
        outcome = "ALREADY_COMMITTED" if is_done else "None"
        yield Step(who, "take_up", outcome, go(following if is_done else At.DISCARD))
    elif worker.at is At.DISCARD:
        gone = state.staged(attempt, Staging.ABSENT)
        yield Step(who, "delete", "staging deleted", go(At.IDLE, staging=gone))


def _may_commit(state: State, attempt: int, rules: Rules) -> bool:
    """Each comparison is made on the batch's own row, unless the protocol is a broken one."""
    return (
        (state.is_newest(attempt) or not rules.compares_token)
        and (state.batch is BatchState.VERIFIED or not rules.compares_state)
        and (not state.is_cut(attempt) or not rules.compares_claims)
    )


def _is_witness_lost(state: State, attempt: int, rules: Rules) -> bool:
    """A commit that brings its own witness forgets the cut that came before its landing."""
    is_new = Landing.ON_NEW_LOG in state.landing(attempt)
    return state.is_witness_lost or (is_new and not rules.commits_without_witness)


def _first_of_publishing(rules: Rules) -> At:
    if not rules.marks_after_rename:
        return At.MARK
    return At.RENAME if rules.renames_before_looking else At.LOOK_AT_TARGET


def _publishing(
    state: State, who: str, publisher: Process, go: Go, rules: Rules, after_rename: At
) -> Iterator[Step]:
    """Rename exclusively; where that failed, let the target's files speak; mark."""
    attempt, at = publisher.attempt, publisher.at
    if at is At.RENAME:
        yield from _renaming(state, who, attempt, go, rules, after_rename)
    elif at is At.STATUS_OF_TARGET:
        yield _missing_or(At.READ, "status", state, who, attempt, go, state.target != NOBODY)
    elif at is At.READ:
        if state.target == attempt:
            yield Step(who, "read", "target is ours", go(after_rename))
        else:
            yield _occupied("read", state, who, go)
    elif at is At.MARK:
        following = At.IDLE if rules.marks_after_rename else At.RENAME
        is_committed = state.batch is BatchState.COMMITTED
        after = BatchState.PUBLISHED if is_committed else state.batch
        outcome = "published" if is_committed else "nothing to do"
        yield Step(who, "mark_published", outcome, go(following, batch=after))
    else:
        yield from _publishing_badly(state, who, publisher, go)


def _renaming(
    state: State, who: str, attempt: int, go: Go, rules: Rules, after_rename: At
) -> Iterator[Step]:
    if state.in_staging(attempt) is Staging.ABSENT:
        # It had found another manifest there and writes the committed one; the data has gone since.
        hollow = state.staged(attempt, Staging.HOLLOW)
        yield Step(who, "write", "_tally.json anew", go(At.RENAME, staging=hollow), is_fault=True)
        yield Step(who, "rename_exclusive", "FileMissing", go(At.STATUS_OF_TARGET))
    elif state.target != NOBODY:
        following = At.READ if rules.believes_target_manifest else At.STATUS_OF_SOURCE
        if not rules.renames_exclusively:
            following = At.OVERWRITE
        yield Step(who, "rename_exclusive", "TargetOccupied", go(following))
    else:
        gone = state.staged(attempt, Staging.ABSENT)
        moved = go(after_rename, target=attempt, staging=gone)
        yield Step(who, "rename_exclusive", "renamed", moved)
        lost = go(At.RENAME, target=attempt, staging=gone)
        yield Step(who, "rename_exclusive", "RenameOutcomeUnknown", lost, is_fault=True)


def _publishing_badly(state: State, who: str, publisher: Process, go: Go) -> Iterator[Step]:
    attempt, at = publisher.attempt, publisher.at
    is_source_there = state.in_staging(attempt) is not Staging.ABSENT
    if at is At.LOOK_AT_TARGET:
        following = At.LOOK_AT_SOURCE if state.target == NOBODY else At.READ
        yield Step(who, "status", "target looked at", go(following))
    elif at is At.LOOK_AT_SOURCE:
        yield _missing_or(At.RENAME, "status", state, who, attempt, go, is_source_there)
    elif at is At.STATUS_OF_SOURCE:
        if is_source_there:
            yield _occupied("status", state, who, go)
        else:
            yield Step(who, "status", "source gone", go(At.READ))
    elif at is At.OVERWRITE:
        yield Step(who, "delete", "target deleted", go(At.RENAME, target=NOBODY))


def _missing_or(
    following: At, method: str, state: State, who: str, attempt: int, go: Go, is_there: bool
) -> Step:
    if is_there:
        return Step(who, method, "present", go(following))
    is_false = has_data(state, attempt)
    broken = "PublishedDataMissing although the data is there" if is_false else None
    return Step(who, method, "PublishedDataMissing", go(At.IDLE), broken=broken)


def _occupied(method: str, state: State, who: str, go: Go) -> Step:
    is_foreign = state.target == FOREIGN
    broken = None if is_foreign else "TargetOccupied without a foreign directory"
    return Step(who, method, "TargetOccupied", go(At.IDLE), broken=broken)


def _finisher_steps(state: State, rules: Rules) -> Iterator[Step]:
    def go(at: At, *, attempt: int = state.finisher.attempt, **changes: object) -> State:
        moved = Process(at, attempt) if at is not At.IDLE else IDLE
        return state._replace(finisher=moved, **changes)  # type: ignore[arg-type]

    if state.finisher.at is At.IDLE:
        if state.batch is BatchState.COMMITTED:
            found = Process(_first_of_publishing(rules), state.committed[0])
            yield Step("finisher", "unpublished", "batch", state._replace(finisher=found))
        return
    crashed = f"before {state.finisher.at.name}"
    yield Step("finisher", "crash", crashed, go(At.IDLE), is_fault=True)
    yield from _publishing(state, "finisher", state.finisher, go, rules, At.MARK)


def _sweeper_steps(state: State, rules: Rules) -> Iterator[Step]:
    sweeper = state.sweeper
    if sweeper.at is At.IDLE:
        for attempt in range(1, state.newest + 1):
            yield from _sweeper_begins(state, attempt, rules)
        return
    idle = state._replace(sweeper=IDLE)
    deleting = state._replace(sweeper=Process(At.DELETE, sweeper.attempt))
    yield Step("sweeper", "crash", f"before {sweeper.at.name}", idle, is_fault=True)
    if sweeper.at is At.OUTCOME_OF:
        has_committed = sweeper.attempt in state.committed
        is_ours_to_keep = has_committed and state.batch is not BatchState.PUBLISHED
        outcome = "ALREADY_COMMITTED" if has_committed else "None"
        yield Step("sweeper", "dead_attempts", outcome, idle if is_ours_to_keep else deleting)
    elif sweeper.at is At.LEARN_DEATH:
        is_dead = _is_dead(state, sweeper.attempt)
        yield Step("sweeper", "dead_attempts", str(is_dead), deleting if is_dead else idle)
    elif sweeper.at is At.DELETE:
        yield from _sweeping(state, sweeper.attempt, rules)


def _is_dead(state: State, attempt: int) -> bool:
    return not state.is_newest(attempt) or state.batch not in OPEN_STATES


def _sweeper_begins(state: State, attempt: int, rules: Rules) -> Iterator[Step]:
    if not rules.asks_after_death:
        if attempt not in state.committed:
            asked = state._replace(sweeper=Process(At.LEARN_DEATH, attempt))
            yield Step("sweeper", "dead_attempts", "None", asked)
    elif _is_dead(state, attempt) or not rules.waits_for_dead_token:
        following = At.OUTCOME_OF if rules.asks_for_commit else At.DELETE
        chosen = state._replace(sweeper=Process(following, attempt))
        yield Step("sweeper", "dead_attempts", f"attempt {attempt}", chosen)


def _sweeping(state: State, attempt: int, rules: Rules) -> Iterator[Step]:
    broken = None
    if not _is_dead(state, attempt):
        broken = "staging of the live newest attempt deleted"
    idle = state._replace(sweeper=IDLE)
    gone = idle._replace(staging=state.staged(attempt, Staging.ABSENT))
    if state.is_only_copy(attempt):
        if rules.keeps_only_copies and not broken:
            is_over = state.batch in (BatchState.ABANDONED, BatchState.PUBLISHED)
            who, what = "sweeper", "quarantined" if is_over else "kept where it is"
            method = "rename_exclusive" if is_over else "status"
            yield Step(who, method, f"attempt {attempt} {what}", gone if is_over else idle)
            return
        broken = broken or "the only copy deleted"
    yield Step("sweeper", "delete", f"staging of attempt {attempt}", gone, broken=broken)
    if state.in_staging(attempt) is Staging.OPEN:
        outcome = "the orphaned application makes it again"
        yield Step("sweeper", "delete", outcome, idle, is_fault=True)


def _planner_steps(state: State, rules: Rules) -> Iterator[Step]:
    if state.batch not in OPEN_STATES or state.is_held(rules):
        return
    abandoned = state._replace(batch=BatchState.ABANDONED)
    if state.shows_cut and not _is_looked_at(state, rules):
        if not rules.records_what_it_shows:
            lost = state._replace(is_witness_lost=True)
            yield Step("look", "snapshot", "told, left to a plan, and forgotten by the log", lost)
        yield Step("planner", "apply", "the cut is found, claims released", abandoned)
    if not state.is_expired:
        expired = state._replace(is_expired=True)
        yield Step("log", "snapshot", "the log start has passed the claim", expired, is_fault=True)
    elif state.cut_at is None:
        is_held = any(state.holds_rows(each) for each in range(1, state.newest + 1))
        if state.listed != state.newest and not is_held:
            listed = state._replace(listed=state.newest)
            yield Step("planner", "entries", "no complete files in staging", listed)
        # A zombie may write after that: the commit compares claims. A newer attempt counts as one.
        if state.listed == state.newest or not rules.keeps_held_claims:
            cut = state._replace(cut_at=state.newest, listed=None)
            is_unseen = is_held and state.listed != state.newest
            broken = "offsets called lost that files hold" if is_unseen else None
            outcome = "part of the claim recorded as lost"
            yield Step("planner", "apply", outcome, cut, broken=broken)
    yield Step("planner", "apply", "generation closed, batch abandoned", abandoned, is_fault=True)


def _spark_steps(state: State) -> Iterator[Step]:
    for attempt, content in enumerate(state.staging, start=1):
        if content is Staging.OPEN:
            landing = state.landing(attempt)
            if state.log is Log.CUT_BELOW:
                landing |= Landing.OTHER_RECORDS
            staging, landings = state.staged(attempt, Staging.DATA), state.landed(attempt, landing)
            after = state._replace(staging=staging, landings=landings)
            # What was read before the log start passed it may be written after.
            is_late = not state.is_readable(attempt)
            yield Step("spark", "run", f"attempt {attempt} written", after, is_fault=is_late)


def _log_steps(state: State) -> Iterator[Step]:
    if not state.has_cuts or state.log is not Log.WHOLE:
        return
    later = (Log.CUT_LATER,) if state.has_looks else ()
    for cut in (Log.CUT_ABOVE, Log.CUT_BELOW, *later):
        outcome = f"the log is {cut.name.lower().replace('_', ' ')} and grows again"
        yield Step("brokers", "unclean election", outcome, state._replace(log=cut), is_fault=True)


def _is_looked_at(state: State, rules: Rules) -> bool:
    """True while a look holds the planning lock."""
    return state.look is Look.IN_HAND and rules.looks_under_lock


def _look_steps(state: State, rules: Rules) -> Iterator[Step]:
    """A look at the log before it is cut; and a plan's, which finds nothing of a later cut."""
    if state.has_looks and state.look is Look.NONE and state.log is Log.WHOLE:
        seen = state._replace(look=Look.IN_HAND)
        yield Step("look", "snapshot", "more than the plan had seen", seen, is_fault=True)
    if state.look is not Look.IN_HAND:
        return
    if rules.records_each_look:
        kept = state._replace(look=Look.ON_RECORD)
        yield Step("look", "record_look", "the log's witness", kept)
    else:
        yield Step("look", "crash", "not on record", state._replace(look=Look.DROPPED))
    if state.log is Log.CUT_LATER and not _is_looked_at(state, rules):
        # It asks the witness of the plan before it, and is the witness from then on.
        dropped = state._replace(look=Look.DROPPED)
        yield Step("planner", "apply", "a new witness, and no cut found", dropped)


def _database_steps(state: State, rules: Rules) -> Iterator[Step]:
    if not state.in_flight:
        return
    free = state._replace(in_flight=NOBODY)
    yield Step("database", "commit", "undone", free)
    committed = (*state.committed, state.in_flight)
    done = free._replace(
        batch=BatchState.COMMITTED,
        committed=committed,
        is_witness_lost=_is_witness_lost(state, state.in_flight, rules),
    )
    yield Step("database", "commit", "took place after all", done)
