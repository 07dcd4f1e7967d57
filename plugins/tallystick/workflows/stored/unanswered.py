"""Asks the directories of attempts one by one: one that can't be asked is noted, and hides no
other. Changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.domain.attempts.asked import Unasked
from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.paths import STAGING_NAME, StagingPath
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_unasked_attempts import as_told, is_of_attempts
from tallystick.errors import (
    AttemptNotAsked,
    AttemptUnfinished,
    BatchUnknown,
    SourceError,
    StorageError,
)
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staged_attempts import (
    attempts_in,
    batch_quarantined_at,
    epochs_of,
    is_unfinished,
    quarantined_at,
)

log = logging.getLogger(__name__)

_MEND: Final = "Bring its blocks back (hdfs fsck {}), or let our user read it."


@dataclass(slots=True)
class Unanswered:
    """Notes the directories of attempts that could not be asked, or not be committed."""

    services: Services
    told: Sequence[Finding] = ()
    """What stands on record of such directories, for a look."""
    is_look: bool = False
    """True for a look: it commits nothing, so it can't tell that a commit was refused."""
    ends_orphans: bool = False
    """True for a run, which ends an application that should have ended by itself."""
    _notes: dict[str, Unasked] = field(default_factory=dict)
    _waiting: dict[str, frozenset[BatchId]] = field(default_factory=dict)
    """By directory, the batches whose commit waits for it."""
    _passed: set[BatchId] = field(default_factory=set)
    _ended: dict[AttemptId, bool] = field(default_factory=dict)
    """The attempts whose applications were to be ended, and whether anybody has answered."""

    @classmethod
    def for_look(cls, services: Services) -> Unanswered:
        """With what is told: a look ends nothing of it that it did not ask."""
        found = services.ledger.findings(services.feed_name)
        told = [each.finding for each in found if is_of_attempts(each.finding)]
        return cls(services, told, is_look=True)

    @contextmanager
    def noting(self, staging: StagingPath) -> Iterator[None]:
        """Asks an attempt; what storage and broker don't answer is noted, and not raised."""
        try:
            yield
        except StorageError as error:
            place = quarantined_at(self.services, staging)
            is_readable = isinstance(error, AttemptUnfinished)
            remedy = error.next_step if is_readable else _MEND.format(staging)
            self._note(str(staging), staging.batch_id, error, place, remedy)
        except SourceError as error:
            path = str(staging)
            self._note(path, staging.batch_id, error, path, error.next_step)

    def require_ended(self, staging: StagingPath) -> None:
        """Raise AttemptUnfinished while the attempt's application may still be writing: what it
        holds is known at its end. One whose lease runs keeps its claims, and one that this ledger
        never saw may be another ledger's: neither is ended.

        An orphan is left as long as it may live, for it may have read what nobody can read again.
        A run ends it then. A look ends none, so it goes on saying what is told. Where the log has
        all of it, nobody waits: a batch whose applications only die would never be taken apart.
        """
        services, attempt_id = self.services, staging.attempt_id
        if not is_unfinished(services, staging):
            return
        unheard = services.ledger.unheard_seconds(attempt_id)
        if unheard is None or unheard < 0:
            return
        if self._is_in_log(staging):
            self._is_ended(staging)
            return
        longest = services.spark.longest_orphan
        if unheard < longest.total_seconds() or not self._is_ended(staging):
            raise AttemptUnfinished(
                str(staging),
                f"nobody has ended its Spark application, which may outlive its task by {longest}",
            )

    def _is_in_log(self, staging: StagingPath) -> bool:
        """True when the log has all that the batch has at risk, as the attempt was to read it."""
        services, batch_id = self.services, staging.batch_id
        at_risk = services.ledger.offsets_at_risk([batch_id]).get(batch_id, ())
        epochs = epochs_of(services, staging)
        # Asked for each: other batches may have been committed since, which takes minutes.
        seen = services.broker.snapshot(services.topic)
        return all(each.is_in_log(seen, epochs) for each in at_risk)

    def _is_ended(self, staging: StagingPath) -> bool:
        if not self.ends_orphans:
            return all(each.subject != str(staging) for each in self.told)
        attempt_id = staging.attempt_id
        if attempt_id not in self._ended:
            # A server that is silent is asked once.
            is_heard = all(self._ended.values())
            self._ended[attempt_id] = is_heard and self.services.spark.interrupt(attempt_id)
        return self._ended[attempt_id]

    @contextmanager
    def committing(self, staging: StagingPath) -> Iterator[None]:
        """Commits what was asked; what storage and broker refuse of that is noted, and not raised.

        A look only proves it: what it could not prove counts as not asked, and the next look ends
        that.

        Told of all of the batch's attempts, for another one may have the files by then. They can be
        read: no move is named. Where it waits for another directory, that one is told.
        """
        try:
            yield
        except AttemptNotAsked as error:
            log.warning("Batch %s is not committed: %s", staging.batch_id, error)
            waiting = self._waiting.get(error.path, frozenset())
            self._waiting[error.path] = waiting | {staging.batch_id}
        except (StorageError, SourceError) as error:
            path = f"{staging.root}/{STAGING_NAME}/{staging.batch_id}"
            remedy = error.next_step
            if not self.is_look:
                remedy = f"{remedy} The files are good: the next run tries to commit them."
            is_asked = not self.is_look
            self._note(path, staging.batch_id, error, path, remedy, is_asked=is_asked)

    def attempts_of(self, root: str, batch_id: BatchId) -> list[StagingPath]:
        """The batch's attempts in staging; none where they can't be listed: that is noted."""
        try:
            return attempts_in(self.services, root, batch_id)
        except StorageError as error:
            path = f"{root}/{STAGING_NAME}/{batch_id}"
            place = batch_quarantined_at(self.services, root, batch_id)
            self._note(path, batch_id, error, place, _MEND.format(path))
            return []

    @contextmanager
    def noting_all(self, root: str) -> Iterator[None]:
        """Lists the batches in staging; where that can't be done, nobody knows what they hold."""
        try:
            yield
        except StorageError as error:
            path = f"{root}/{STAGING_NAME}"
            files = KeptFiles(path, None, None)
            self._notes.setdefault(path, Unasked(path, error.sentence(), error.next_step, files))

    def is_about(self, batch_id: BatchId) -> bool:
        """True when an attempt of the batch could not be asked, or its commit waits for another."""
        waiting = self._waiting.values()
        return any(
            batch_id in each
            for each in (*(one.batch_ids for one in self._notes.values()), *waiting)
        )

    def pass_over(self, batch_id: BatchId) -> None:
        """What the batch claims is committed, or will be: its other attempts need not be asked."""
        self._passed.add(batch_id)

    def keep_told(self, batch_id: BatchId) -> bool:
        """True, and noted, for what a plan could not commit: no look can tell if the next can."""
        for each in self.told:
            files = self._files_of(batch_id, each.subject) if batch_in(each) == batch_id else None
            if files and (unasked := as_told(each, files, batch_id)):
                self._notes.setdefault(each.subject, unasked)
                return True
        return False

    @property
    def files(self) -> list[KeptFiles]:
        """What the directories may hold."""
        return [each.files for each in self._notes.values()]

    @property
    def unasked(self) -> list[Unasked]:
        """The directories, but for those that only batches would need that are passed over."""
        found = [
            replace(each, batch_ids=each.batch_ids | self._waiting.get(each.path, frozenset()))
            for each in self._notes.values()
        ]
        return [each for each in found if not each.batch_ids or each.batch_ids - self._passed]

    @property
    def still_told(self) -> list[Unasked]:
        """Those of them that stand on record."""
        return [each for each in self.unasked if any(each.covers(one.subject) for one in self.told)]

    def _note(
        self,
        path: str,
        batch_id: BatchId,
        error: StorageError | SourceError,
        place: str,
        remedy: str,
        *,
        is_asked: bool = False,
    ) -> None:
        files = self._files_of(batch_id, place)
        if files:
            unasked = Unasked(
                path, error.sentence(), remedy, files, frozenset({batch_id}), is_asked
            )
            what = "commit" if is_asked else "ask"
            log.warning("Nobody can %s now what attempts hold in %s: %s", what, path, error)
            self._notes.setdefault(path, unasked)

    def _files_of(self, batch_id: BatchId, place: str) -> KeptFiles | None:
        """What its attempts may hold: all that the batch has ever claimed, and no commit holds.

        None where there is nothing of that, and for another feed's batch.
        """
        try:
            plan = self.services.ledger.batch(batch_id).plan
        except BatchUnknown:
            return KeptFiles(place, None, None)
        if plan.feed != self.services.feed_name:
            return None
        at_risk = self.services.ledger.offsets_at_risk([batch_id]).get(batch_id, ())
        offsets = tuple(each.offsets for each in at_risk)
        return KeptFiles(place, plan.topic_id, offsets) if offsets else None


class MustAnswer(Unanswered):
    """For who can't go on without an answer: what is not answered is raised, and not noted."""

    @contextmanager
    def noting(self, staging: StagingPath) -> Iterator[None]:
        """Asks an attempt."""
        yield

    @contextmanager
    def noting_all(self, root: str) -> Iterator[None]:
        """Lists the batches in staging."""
        yield

    def attempts_of(self, root: str, batch_id: BatchId) -> list[StagingPath]:
        """The batch's attempts in staging."""
        return attempts_in(self.services, root, batch_id)


def batch_in(told: Finding) -> BatchId:
    """The batch whose attempts lie in the directory; no batch's id where all of them do."""
    return BatchId(told.subject.rpartition(f"/{STAGING_NAME}/")[2].partition("/")[0])
