"""Asks the directories of attempts one by one: one that can't be asked is noted, and hides no
other. Changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.attempts.staged import HeldFiles
from tallystick.domain.batches.paths import STAGING_NAME, StagingPath
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.errors import (
    AttemptUnfinished,
    IngestionError,
    SourceError,
    StorageError,
)
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import (
    attempts_in,
    batch_quarantined_at,
    epochs_of,
    is_unfinished,
    is_whole,
    known_batch,
    quarantined_at,
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AskedAttempts:
    """Notes the directories of attempts that could not be asked, or not be committed."""

    services: Services
    ends_orphans: bool = False
    """True for a run that settles: it ends an application that should have ended by itself."""
    notes: dict[str, HeldFiles] = field(default_factory=dict)
    """By path."""
    _roots: tuple[str, ...] = ()
    answered: set[str] = field(default_factory=set)
    """The directories that lay there as they will stay, and have said what they hold."""
    _ended: dict[AttemptId, bool] = field(default_factory=dict)
    """The attempts whose applications were to be ended, and whether anybody has answered."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Below which the feed's attempts may lie."""
        self._roots = self._roots or feed_roots(self.services)
        return self._roots

    @contextmanager
    def noting(self, staging: StagingPath) -> Iterator[None]:
        """Asks an attempt; what storage and broker don't answer is noted, and not raised."""
        try:
            yield
        except (StorageError, SourceError) as error:
            self._note(
                str(staging), staging.batch_id, error, quarantined_at(self.services, staging)
            )

    def attempts_of(self, root: str, batch_id: BatchId) -> list[StagingPath]:
        """The batch's attempts in staging; none where they can't be listed: that is noted."""
        try:
            return attempts_in(self.services, root, batch_id)
        except StorageError as error:
            path = f"{root}/{STAGING_NAME}/{batch_id}"
            self._note(path, batch_id, error, batch_quarantined_at(self.services, root, batch_id))
            return []

    @contextmanager
    def noting_all(self, root: str) -> Iterator[None]:
        """Lists the batches in staging; where that can't be done, nobody knows what they hold."""
        try:
            yield
        except StorageError as error:
            path = f"{root}/{STAGING_NAME}"
            log.warning("Nobody can tell what attempts hold in %s: %s", path, error)
            files = KeptFiles(path, None, None)
            self.notes.setdefault(path, HeldFiles(path, None, error.sentence(), files))

    def is_about(self, batch_id: BatchId) -> bool:
        """True when an attempt of the batch could not be asked."""
        return any(each.batch_id == batch_id for each in self.notes.values())

    def has_ended(self, staging: StagingPath) -> bool:
        """True where nobody writes any more what lies there; False also where nothing does yet.

        Raises AttemptUnfinished while the attempt's application may still be writing: what it
        holds is known at its end. One whose lease runs keeps its claims, and one that this ledger
        never saw may be another ledger's: neither is ended, and of the latter nobody knows its end.

        An orphan is left as long as it may live, for it may have read what nobody can read again.
        Who settles ends it then. Where the log has all of it, nobody waits: a batch whose
        applications only die would never be searched.
        """
        services = self.services
        if not is_unfinished(services, staging):
            return is_whole(services, staging)
        unheard = services.ledger.unheard_seconds(staging.attempt_id)
        if unheard is not None and unheard < 0:
            return False
        longest = services.spark.longest_orphan.total_seconds()
        is_in_log = self._is_in_log(staging)
        may_be_ended = unheard is not None and (is_in_log or unheard >= longest)
        has_ended = may_be_ended and self._is_ended(staging)
        if not (has_ended or is_in_log):
            raise unfinished(services, staging)
        return has_ended

    def _is_in_log(self, staging: StagingPath) -> bool:
        """True when the log has all that the batch has at risk, as the attempt was to read it."""
        services, batch_id = self.services, staging.batch_id
        at_risk = services.ledger.offsets_at_risk([batch_id]).get(batch_id, ())
        epochs = epochs_of(services, staging)
        # Asked for each: other batches may have been committed since, which takes minutes.
        seen = services.broker.snapshot(services.topic)
        return all(each.is_in_log(seen, epochs) for each in at_risk)

    def _is_ended(self, staging: StagingPath) -> bool:
        attempt_id = staging.attempt_id
        if self.ends_orphans and attempt_id not in self._ended:
            # A server that is silent is asked once.
            is_heard = all(self._ended.values())
            self._ended[attempt_id] = is_heard and self.services.spark.interrupt(attempt_id)
        return self._ended.get(attempt_id, False)

    def _note(self, path: str, batch_id: BatchId, error: IngestionError, place: str) -> None:
        files = self._files_of(batch_id, place)
        if files:
            held = self.notes.setdefault(path, HeldFiles(path, batch_id, error.sentence(), files))
            log.warning(
                "Nobody can tell now what attempts hold in %s: %s If nobody ever can: %s",
                path,
                error,
                held.move,
            )

    def _files_of(self, batch_id: BatchId, place: str) -> KeptFiles | None:
        """What its attempts may hold: all that the batch has ever claimed, and no commit holds.

        None where there is nothing of that, and for another feed's batch.
        """
        batch = known_batch(self.services, batch_id)
        if batch is None:
            return KeptFiles(place, None, None)
        plan = batch.plan
        if plan.feed != self.services.feed_name:
            return None
        at_risk = self.services.ledger.offsets_at_risk([batch_id]).get(batch_id, ())
        offsets = tuple(each.offsets for each in at_risk)
        return KeptFiles(place, plan.topic_id, offsets) if offsets else None


def unfinished(services: Services, staging: StagingPath) -> AttemptUnfinished:
    """Says that the attempt's application may still be writing."""
    longest = services.spark.longest_orphan
    return AttemptUnfinished(
        str(staging),
        f"nobody has ended its Spark application, which may outlive its task by {longest}",
    )


class MustAnswer(AskedAttempts):
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
