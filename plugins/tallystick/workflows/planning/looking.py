"""Looks at the log, and records what the look shows: for plan, check, repair and reconcile.

1. What attempts hold is listed before the feed's planning lock is taken. Between the question to
   the broker and the record the looker holds that lock, so nobody hands a witness over meanwhile.
2. A look that shows a change is on record with the change and what is said of it. One that can't
   change anything now, for a batch was committed beside it, is the witness of each log that it
   found whole, and is made again.
3. A ledger that lacks published batches takes for lost what they hold: it changes nothing. Storage
   is asked for them before a plan, and by any other look that shows a change.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from tallystick.domain.attempts.staged import Staged
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.sameness import Sameness
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rules.a5_topic_recreated import gone_with_topic
from tallystick.domain.rules.a10_ledger_behind import is_ledger_behind, perhaps_landed
from tallystick.domain.rules.findings import Finding, provisional, why_nothing_is_proven
from tallystick.domain.rules.log_findings import change_findings
from tallystick.errors import LedgerBehind, StorageError, TopicGone
from tallystick.ledger.planning import PlanningSession
from tallystick.workflows.planning.observing import observe, snapshot_of
from tallystick.workflows.planning.outlooks import outlook
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import why_behind
from tallystick.workflows.stored.staging import staged

log = logging.getLogger(__name__)


# Pauses Python's cycle collector while values of many partitions are made.
#
# They all live until the plan ends. The collector looks through all of them again each time their
# number has grown by a quarter, and finds nothing: a third of the work with 10,000 partitions.


@contextmanager
def collector_paused() -> Iterator[None]:
    """No collection within the block; afterwards as before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_Done = TypeVar("_Done")
NO_CHANGES: Final = LogChanges()


@dataclass
class LogFacts:
    """What a decision about the logs of a feed rests on: the same for a run and for a dry run."""

    services: Services
    accounts: Accounts
    staged: Staged
    """What attempts may hold, listed before."""
    behind: LedgerBehind | StorageError | None
    """Why nobody can say that the ledger knows all published batches; None where it does."""
    has_asked_storage: bool
    """True where storage was asked that; else the ledger is taken for whole."""

    @cached_property
    def seen(self) -> Observation:
        """The one look: the broker is asked once this is asked for."""
        return observe(self.services, self.accounts)

    @cached_property
    def changes(self) -> LogChanges:
        """What the look changes."""
        return judge_logs(self.accounts, self.seen, self.staged)

    @property
    def shows_change(self) -> bool:
        """True where the look changes anything but witnesses."""
        return self.changes.of_known_logs or bool(self.changes.opened)

    @property
    def is_held_back(self) -> bool:
        """True where nothing changes yet, for the ledger may lack batches that forbid it."""
        return self.behind is not None and self.shows_change

    @property
    def accounts_after(self) -> Accounts:
        """The accounts as the look leaves them, but for the witnesses of logs."""
        if self.is_held_back:
            return self.accounts
        return accounts_after(self.accounts, self.changes)

    def told(self) -> Sequence[Finding]:
        """What is said of the changes."""
        feed, known = self.services.feed_name, self.accounts.generations
        found = change_findings(feed, known, self.changes, self.seen)
        return [*map(provisional, perhaps_landed(found))] if self.is_held_back else found


def facts_now(services: Services) -> LogFacts:
    """The facts of a dry run: nothing is locked, nothing is recorded."""
    behind, there = _listed(services, is_dry_run=True)
    return LogFacts(services, services.ledger.accounts(services.feed_name), there, behind, True)


@dataclass
class Looking(LogFacts):
    """The facts while the lock is held."""

    session: PlanningSession

    def record(
        self, changes: LogChanges, findings: Sequence[Finding]
    ) -> Mapping[int, GenerationId] | None:
        """Record the look with these changes; the ids of opened generations by partition.

        None, and nothing is changed, where a claim that it cuts was committed in the meantime.
        """
        opened = self.session.apply(changes, self.seen.snapshot)
        if opened is not None:
            self.session.record_findings(findings)
        return opened

    def record_look(self, more: LogChanges = NO_CHANGES) -> Sequence[Finding] | None:
        """Record the look with what it changes, and more on an operator's word; what is said of it.

        None as `record` returns it, and where storage has to be asked before.
        """
        if self.shows_change and not self.has_asked_storage:
            return None
        found = self.told()
        if self.is_held_back:
            self.record_alone()
            self.session.record_findings(found)
        elif self.record(self.changes.and_then(more), found) is None:
            return None
        return found

    def record_alone(self) -> None:
        """Record the look without the changes that it shows: then it proves nothing."""
        same = [each for each, check in self.seen.logs.items() if check.sameness is Sameness.SAME]
        self.session.record_look(self.seen.snapshot, same, why_nothing_is_proven((), self.told()))


def under_lock(
    services: Services, perform: Callable[[Looking], _Done | None], *, asks_storage: bool = True
) -> _Done:
    """What `perform` makes of the facts, while the feed's planning lock is held.

    Where that is None, the look is recorded alone, and all is done anew. Raises what `observe`
    raises; then nothing is recorded, but for what is said of a topic that is gone.
    """
    with _recorded_if_gone(services):
        while (done := _once_under_lock(services, perform, asks_storage)) is None:
            # Commits don't wait for the lock. Each time one batch less is left that may be cut.
            log.info("The log has changed, or a batch was committed meanwhile: looking anew.")
            asks_storage = True
    return done


def _once_under_lock(
    services: Services, perform: Callable[[Looking], _Done | None], asks_storage: bool
) -> _Done | None:
    behind, there = (
        _listed(services, is_dry_run=False) if asks_storage else (None, staged(services))
    )
    with (
        collector_paused(),
        services.ledger.planning(services.feed_name, services.topic) as session,
    ):
        looking = Looking(services, session.accounts(), there, behind, asks_storage, session)
        done = perform(looking)
        if done is None:
            looking.record_alone()
    return done


@contextmanager
def _recorded_if_gone(services: Services) -> Iterator[None]:
    """Whoever looks and meets no topic leaves on record what nobody can land any more."""
    try:
        yield
    except TopicGone:
        services.ledger.record_findings(services.feed_name, _gone(services))
        raise


def _gone(services: Services) -> list[Finding]:
    """The offsets that looks have seen and nobody has landed.

    A topic that is gone is judged as one whose next life has no partition.
    """
    ledger, feed = services.ledger, services.feed_name
    accounts, standing = ledger.accounts(feed), ledger.findings(feed)
    known = next(iter(accounts.generations.values()))
    snapshot = BrokerSnapshot(known.cluster_id, services.topic, "", ledger.clock(), {})
    seen = Observation(snapshot, {}, {})
    changes = judge_logs(accounts, seen, staged(services))
    found = change_findings(feed, accounts.generations, changes, seen)
    gone = gone_with_topic(found, standing, ledger.clock())
    is_behind = is_ledger_behind(each.finding for each in standing)
    return perhaps_landed(gone) if is_behind else gone


def _listed(
    services: Services, *, is_dry_run: bool
) -> tuple[LedgerBehind | StorageError | None, Staged]:
    behind: LedgerBehind | StorageError | None = None
    try:
        behind = why_behind(services, is_dry_run=is_dry_run)
    except StorageError as error:
        behind = error
    return behind, staged(services)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the log that is on record."""

    snapshot_id: int | None
    """Its number; None for a feed that was never planned: no look but a plan's begins it."""
    accounts: Accounts
    """As the look has left them, but for the witnesses of logs."""
    seen: Observation
    findings: Sequence[Finding]
    """What is said of the changes that it shows; on record."""
    around: Outlook

    @property
    def snapshot(self) -> BrokerSnapshot:
        """What the broker showed."""
        return self.seen.snapshot


def look_at_log(services: Services) -> Look:
    """Look at the log, and record what that shows; raises what `observe` raises, and SourceError
    where the broker does not tell what is around it.
    """
    ledger, feed = services.ledger, services.feed_name
    known = ledger.accounts(feed)
    if not known.generations:
        seen = Observation(snapshot_of(services, {}), {}, {})
        # Else its first plan has come meanwhile.
        if not ledger.accounts(feed).generations:
            return Look(None, known, seen, (), outlook(services, {}, seen.snapshot))
    looking, found = under_lock(services, _recorded, asks_storage=False)
    known, seen = looking.accounts_after, looking.seen
    around = outlook(services, known.generations, seen.snapshot)
    return Look(looking.session.snapshot_id, known, seen, found, around)


def _recorded(looking: Looking) -> tuple[Looking, Sequence[Finding]] | None:
    found = looking.record_look()
    return None if found is None else (looking, found)
