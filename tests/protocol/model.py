"""What a model of the commit protocol is made of: its rules, its states, what must hold in each.

One batch, two workers that carry it out under attempts of their own, a finisher, a sweeper, a
planner that may cut or abandon the batch, a log whose start may pass what is claimed, and a
database that may still be working on a COMMIT whose client has gone. The steps between states stand
in `steps`. It is a model, not the code: it shows that the protocol keeps its promises, and
which of its rules each promise rests on.

1. Leases don't appear: one may run out at any time, so `begin_attempt` is possible at any time.
2. A crash forgets what a process knew. The process may start again whenever it likes: with a new
   attempt, or with the verification of one that is there, even while its first owner lives.
3. A process may stand still between any two steps, for any time: a zombie is no special case.
4. The sweeper asks two questions. Where the ledger answers both at once, less can happen, not more.
5. `mark_swept` doesn't appear: an attempt may be swept again and again, which is no safer.
6. A small file is written in one step. What a manifest says does not appear: publishing may find
   that it is another one, and write it anew.
7. Where the world has cuts, the log is cut and grows again once, between any two steps: below the
   claim's end, so that other records lie at claimed offsets, or above it, so that only records are
   gone that the plan had seen. Publishing and sweeping ask nothing of the log.
8. Where the world has looks, one more sees the log before that cut: that of a reconcile, a check, a
   repair, or of who settles. The cut may be above all that the plan had seen. Whoever looks after
   it finds it; then the log may forget how it was.
   A look that dies has told nobody anything: it is as if it never was.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

from tallystick.domain.batches.states import BatchState

OPEN_STATES: Final = (BatchState.PLANNED, BatchState.LANDING, BatchState.VERIFIED)
NOBODY: Final = 0
FOREIGN: Final = -1


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol's rules; each can be switched off, to see what it is good for."""

    begins_only_unfinished: bool = True
    """`begin_attempt` refuses a batch that is committed."""
    compares_token: bool = True
    """`commit` refuses a token that is not the newest."""
    compares_state: bool = True
    """`commit` refuses a batch that is not verified, an abandoned one above all."""
    compares_own_row: bool = True
    """Whoever changes the batch waits for a COMMIT in flight; off: they compare with a snapshot."""
    compares_claims: bool = True
    """`commit` refuses a proof of offsets that were cut out of the claim since."""
    commits_before_rename: bool = True
    keeps_staging_when_unknown: bool = True
    """A commit of unknown outcome deletes nothing."""
    renames_exclusively: bool = True
    """A target that is in the way is left alone; off: it is deleted."""
    renames_before_looking: bool = True
    """What a rename answers is the first look; off: both places are looked at, one by one."""
    believes_target_manifest: bool = True
    """A target in the way is ours if it holds what was committed; off: if staging is empty."""
    marks_after_rename: bool = True
    waits_for_dead_token: bool = True
    """The sweeper takes dead attempts only; off: it believes that a lease ran out."""
    asks_for_commit: bool = True
    """The sweeper asks if a dead attempt has committed."""
    asks_after_death: bool = True
    """The sweeper asks after it has learned that the attempt is dead; off: before."""
    asks_log_before_read: bool = True
    """A landing asks if the log is still the one that the plan saw."""
    asks_log_after_read: bool = True
    """The proof asks if the log is still the one that the landing saw."""
    commits_without_witness: bool = True
    """The log's witness is handed over by looks that ask it; off: each commit brings its own."""
    looks_under_lock: bool = True
    """Who looks holds the planning lock until the look is on record; off: others look meanwhile."""
    records_each_look: bool = True
    """What was looked at is on record, whatever it was for; off: only what a plan decides by."""
    records_what_it_shows: bool = True
    """Who finds that a log was cut records that at once; off: it is told, and left to a plan."""
    keeps_held_claims: bool = True
    """The planner calls nothing lost while complete files of an attempt may hold it."""
    gives_up_under_new_token: bool = True
    """Who settles gives files up only when nobody can commit them any more; off: at once."""
    keeps_only_copies: bool = True
    """The sweeper deletes no rows of which there may be no other copy."""


class Staging(IntEnum):
    """What lies in one attempt's staging directory."""

    ABSENT = 0
    OPEN = 1
    """plan.json is there; a Spark application may be writing, whether its owner lives or not."""
    DATA = 2
    PROVEN = 3
    """Read back from storage, manifest written beside the data."""
    HOLLOW = 4
    """A manifest without data: written after the data was swept or renamed."""


class Log(IntEnum):
    """What became of the log since the plan."""

    WHOLE = 0
    CUT_ABOVE = 1
    """Behind the claim, where the plan had seen records."""
    CUT_BELOW = 2
    """Within the claim: other records lie there now."""
    CUT_LATER = 3
    """Behind all that the plan had seen, where a later look saw records."""


class Look(IntEnum):
    """What became of a look that saw more of the log than the plan, before it was cut."""

    NONE = 0
    IN_HAND = 1
    """It has asked the witness before it, and is not on record yet."""
    ON_RECORD = 2
    """It is the log's witness."""
    DROPPED = 3


class Landing(IntFlag):
    """What an attempt knows of the log, and what it has read."""

    ON_OLD_LOG = 0
    ON_NEW_LOG = 1
    """It began after the cut."""
    OTHER_RECORDS = 2
    """It read after the cut: its rows are not those of the planned log."""


class At(IntEnum):
    """The step that a process takes next."""

    IDLE = 0
    # Land.
    WRITE_PLAN = 1
    RUN = 2
    TAKE_OVER = 21
    GIVE_UP = 22
    # Verify and commit.
    OUTCOME_OF = 3
    RENEW_LEASE = 4
    READ_BACK = 5
    WRITE_MANIFEST = 6
    RECORD_VERIFIED = 7
    COMMIT = 8
    # Publish.
    RENAME = 9
    STATUS_OF_TARGET = 10
    READ = 11
    MARK = 12
    # Sweep; the sweeper begins with OUTCOME_OF.
    DELETE = 13
    # Steps of broken protocols only.
    DOUBT = 14
    DISCARD = 15
    LOOK_AT_TARGET = 16
    LOOK_AT_SOURCE = 17
    STATUS_OF_SOURCE = 18
    OVERWRITE = 19
    LEARN_DEATH = 20


class Process(NamedTuple):
    """One process: its next step, and the attempt it works for (as worker) or on (as sweeper)."""

    at: At
    attempt: int


IDLE: Final = Process(At.IDLE, NOBODY)


class State(NamedTuple):
    """Ledger, storage and processes at one moment. Attempts are numbered by their tokens."""

    batch: BatchState
    newest: int
    is_expired: bool
    """The log has not all of the claim any more: it can't be read again before it was cut."""
    cut_at: int | None
    """The newest attempt when the planner cut the claim."""
    committed: tuple[int, ...]
    """Attempts that committed, in order: at most one in a sound protocol."""
    in_flight: int
    """Attempt whose COMMIT has lost its client and is undecided; it holds the batch's row lock."""
    staging: tuple[Staging, ...]
    target: int
    """Attempt whose data readers see, NOBODY, or FOREIGN."""
    is_target_foreign: bool
    """True in a world where somebody else has made the target directory."""
    workers: tuple[Process, ...]
    """Sorted: workers are interchangeable."""
    finisher: Process
    sweeper: Process
    listed: int | None = None
    """The newest attempt when the planner found no complete files in staging."""
    has_cuts: bool = False
    """True in a world where the log may be cut."""
    log: Log = Log.WHOLE
    landings: tuple[Landing, ...] = ()
    """By attempt, as `staging`; empty where there are no cuts."""
    has_looks: bool = False
    """True in a world with cuts where somebody else looks at the log, too."""
    look: Look = Look.NONE
    is_witness_lost: bool = False
    """True when no look can notice the cut any more."""

    def is_held(self, rules: Rules) -> bool:
        """True while a COMMIT in flight makes everybody wait who would change the batch."""
        return bool(self.in_flight) and rules.compares_own_row

    def is_newest(self, attempt: int) -> bool:
        """True while no newer attempt of the batch has begun."""
        return attempt == self.newest

    def is_cut(self, attempt: int) -> bool:
        """True when the attempt began before the claim was cut, so it holds offsets now lost."""
        return self.cut_at is not None and attempt <= self.cut_at

    def is_readable(self, attempt: int) -> bool:
        """True while the log has what the attempt is to read."""
        return not self.is_expired or (self.cut_at is not None and attempt > self.cut_at)

    @property
    def shows_cut(self) -> bool:
        """True when a look finds that the log was cut: it asks a witness that reaches behind it."""
        is_seen = self.log is not Log.CUT_LATER or self.look is Look.ON_RECORD
        return self.log is not Log.WHOLE and is_seen and not self.is_witness_lost

    def holds_rows(self, attempt: int) -> bool:
        """True when complete files lie in the attempt's staging directory."""
        return self.in_staging(attempt) in (Staging.DATA, Staging.PROVEN)

    def is_only_copy(self, attempt: int) -> bool:
        """True when no commit and no newer attempt may hold what the attempt's files hold."""
        if not self.holds_rows(attempt):
            return False
        others = range(attempt + 1, self.newest + 1)
        return self.is_cut(attempt) or not (
            self.committed or any(self.holds_rows(each) for each in others)
        )

    def staged(self, attempt: int, content: Staging) -> tuple[Staging, ...]:
        """The staging directories with this attempt's replaced."""
        return (*self.staging[: attempt - 1], content, *self.staging[attempt:])

    def landed(self, attempt: int, what: Landing) -> tuple[Landing, ...]:
        """The landings with this attempt's replaced."""
        if not self.has_cuts:
            return self.landings
        return (*self.landings[: attempt - 1], what, *self.landings[attempt:])

    def landing(self, attempt: int) -> Landing:
        """What this attempt knows of the log."""
        return self.landings[attempt - 1] if self.has_cuts else Landing.ON_OLD_LOG

    def in_staging(self, attempt: int) -> Staging:
        """What lies in this attempt's staging directory."""
        return self.staging[attempt - 1]


def first_state(
    *, attempts: int, is_target_foreign: bool, has_cuts: bool = False, has_looks: bool = False
) -> State:
    """A planned batch that nobody has touched."""
    return State(
        batch=BatchState.PLANNED,
        newest=0,
        is_expired=False,
        cut_at=None,
        committed=(),
        in_flight=NOBODY,
        staging=(Staging.ABSENT,) * attempts,
        target=FOREIGN if is_target_foreign else NOBODY,
        is_target_foreign=is_target_foreign,
        workers=(IDLE, IDLE),
        finisher=IDLE,
        sweeper=IDLE,
        has_cuts=has_cuts,
        has_looks=has_looks,
        landings=(Landing.ON_OLD_LOG,) * attempts if has_cuts else (),
    )


def has_data(state: State, attempt: int) -> bool:
    """True when the attempt's proven data is at the target or in its staging directory."""
    return state.target == attempt or state.in_staging(attempt) is Staging.PROVEN


def broken_promise(state: State) -> str | None:
    """The first promise that this state breaks; None when it keeps them all."""
    if len(state.committed) > 1:
        return "committed twice"
    if state.is_witness_lost or (state.log is Log.CUT_LATER and state.look is Look.DROPPED):
        return "a cut that nobody can notice"
    if any(Landing.OTHER_RECORDS in state.landing(each) for each in state.committed):
        return "rows of another log are committed"
    if state.target > NOBODY and state.target not in state.committed:
        return "readers see uncommitted data"
    if state.is_target_foreign and state.target != FOREIGN:
        return "a foreign directory was touched"
    if not state.committed:
        return None
    attempt = state.committed[0]
    if not has_data(state, attempt):
        return "committed data is gone"
    if state.is_cut(attempt):
        return "an offset is both committed and lost"
    if state.batch is BatchState.PUBLISHED and state.target != attempt:
        return "published, but readers don't see it"
    return None


def is_at_rest(state: State) -> bool:
    """True when no process is at work: each has ended, or has crashed."""
    return {*state.workers, state.finisher, state.sweeper} == {IDLE}


def is_settled(state: State) -> bool:
    """True when the batch's story has ended as it should, with exactly one copy of its data."""
    if state.batch is BatchState.ABANDONED:
        return state.target <= NOBODY
    if not state.committed:
        return False
    in_staging = state.in_staging(state.committed[0])
    if state.is_target_foreign:
        return state.batch is BatchState.COMMITTED and in_staging is Staging.PROVEN
    is_published = state.batch is BatchState.PUBLISHED and state.target == state.committed[0]
    return is_published and in_staging in (Staging.ABSENT, Staging.HOLLOW)
