"""Asks the directories of attempts one by one: one that can't be asked is noted, and hides no
other. Changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.asked import Unasked
from tallystick.domain.identities import BatchId
from tallystick.domain.last_copies import KeptFiles
from tallystick.domain.paths import STAGING_NAME, StagingPath
from tallystick.errors import BatchUnknown, SourceError, StorageError
from tallystick.workflows.services import Services
from tallystick.workflows.staged_attempts import attempts_in, put_aside_at, put_batch_aside_at

log = logging.getLogger(__name__)

_MEND: Final = "Bring its blocks back (hdfs fsck {}), or let our user read it."


@dataclass(frozen=True, slots=True)
class _Note:
    unasked: Unasked
    batch_id: BatchId | None
    """None where all attempts lie."""
    error: StorageError | SourceError


@dataclass(slots=True)
class Unanswered:
    """Notes the directories of attempts that could not be asked."""

    services: Services
    _notes: dict[str, _Note] = field(default_factory=dict)
    _passed: set[BatchId] = field(default_factory=set)

    @contextmanager
    def noting(self, staging: StagingPath) -> Iterator[None]:
        """Asks an attempt; what storage and broker don't answer is noted, and not raised."""
        try:
            yield
        except StorageError as error:
            place = put_aside_at(self.services, staging)
            remedy = _MEND.format(staging)
            self._note(str(staging), staging.batch_id, error, place, remedy)
        except SourceError as error:
            path = str(staging)
            self._note(path, staging.batch_id, error, path, error.next_step)

    def attempts_of(self, root: str, batch_id: BatchId) -> list[StagingPath]:
        """The batch's attempts in staging; none where they can't be listed: that is noted."""
        try:
            return attempts_in(self.services, root, batch_id)
        except StorageError as error:
            path = f"{root}/{STAGING_NAME}/{batch_id}"
            place = put_batch_aside_at(self.services, root, batch_id)
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
            unasked = Unasked(path, error.sentence(), error.next_step, files)
            self._notes.setdefault(path, _Note(unasked, None, error))

    def is_about(self, batch_id: BatchId) -> bool:
        """True when one of the batch's attempts could not be asked."""
        return any(each.batch_id == batch_id for each in self._notes.values())

    def pass_over(self, batch_id: BatchId) -> None:
        """What the batch claims is committed, or will be: its other attempts need not be asked."""
        self._passed.add(batch_id)

    @property
    def files(self) -> list[KeptFiles]:
        """What the directories may hold."""
        return [each.unasked.files for each in self._notes.values()]

    def told_if(self, is_at_stake: Callable[[Unasked, BatchId | None], bool]) -> list[Unasked]:
        """The directories for which this is true of what they may hold, and of their batch."""
        return [
            each.unasked
            for each in self._notes.values()
            if each.batch_id not in self._passed and is_at_stake(each.unasked, each.batch_id)
        ]

    def require_asked(self, is_at_stake: Callable[[KeptFiles], bool]) -> None:
        """Raise the first error with which a directory was not asked for which this is true."""
        for each in self._notes.values():
            if is_at_stake(each.unasked.files):
                raise each.error

    def _note(
        self,
        path: str,
        batch_id: BatchId,
        error: StorageError | SourceError,
        place: str,
        remedy: str,
    ) -> None:
        files = self._files_of(batch_id, place)
        if files:
            log.warning("Nobody can ask now what attempts hold in %s: %s", path, error)
            unasked = Unasked(path, error.sentence(), remedy, files)
            self._notes.setdefault(path, _Note(unasked, batch_id, error))

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
