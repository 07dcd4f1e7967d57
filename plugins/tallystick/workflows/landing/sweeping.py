"""Sweep: staging directories of attempts that can't commit any more: deleted, kept or quarantined.

1. Only what the ledger says can never be committed is touched.
2. Nothing is deleted that may be the only copy: `fate_of` decides, from the ledger's offsets, the
   attempt's files, one look at the log, and the committed files that are seen now.
3. A directory that can't be read is left for a later sweep, and stops none. A file system that is
   silent as a whole ends the sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.domain.attempts.last_copies import (
    AtRisk,
    CommittedCopy,
    DeadFiles,
    Fate,
    fate_of,
    relied_on,
)
from tallystick.domain.batches.paths import PROBE_PREFIX, STAGING_NAME, StagingPath
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import (
    FileMissing,
    SourceError,
    StorageError,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.committing.retiring import quarantine_directory
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import (
    attempts_in,
    batches_among,
    epochs_of,
    holds_rows,
    is_whole,
    quarantined_at,
)
from tallystick.workflows.stored.stored_files import stored_file

log = logging.getLogger(__name__)


# Looks if committed files are there, before the rows that an attempt has of them are deleted.
#
# A file may have gone from storage, have changed, or have lost its blocks since the last look
# that compared all directories: then the ledger calls it committed, and the attempt's directory
# holds the only copy.


@dataclass(slots=True)
class CommittedCopies:
    """Of one sweep: each batch and file is asked about once, each directory listed once."""

    services: Services
    _listed: dict[str, Mapping[str, int]] = field(default_factory=dict)
    _is_there: dict[str, bool] = field(default_factory=dict)
    _missing: dict[BatchId, list[str]] = field(default_factory=dict)

    def missing(self, batch_id: BatchId, at_risk: Sequence[AtRisk]) -> list[str]:
        """Paths of the files that an attempt of this batch may be the only copy of: they are not
        there as they were committed, or their blocks can't be read. Raises StorageUnavailable when
        nothing of the file system answers.
        """
        if batch_id not in self._missing:
            self._missing[batch_id] = self._looked_for(batch_id, at_risk)
        return self._missing[batch_id]

    def _looked_for(self, batch_id: BatchId, at_risk: Sequence[AtRisk]) -> list[str]:
        copies = relied_on(self.services.ledger.committed_copies(batch_id), at_risk)
        missing = sorted({each.path for each in copies if not self._is_as_committed(each)})
        if missing:
            log.warning(
                "What attempts at batch %s have in staging is kept: it may be the only copy of %s,"
                " which can't be read there as it was committed. Run a reconcile.",
                batch_id,
                "; ".join(missing[:20]),
            )
        return missing

    def _is_as_committed(self, copy: CommittedCopy) -> bool:
        """By length and checksum. A listing knows nothing of blocks; the checksum is read from
        them.
        """
        if copy.path not in self._is_there:
            length, expected = copy.length_bytes, StoredFile(copy.length_bytes, copy.checksum)
            self._is_there[copy.path] = (
                self._lengths(copy.directory).get(copy.name) == length
                and stored_file(self.services, copy.path, length, copy.checksum) == expected
            )
        return self._is_there[copy.path]

    def _lengths(self, directory: str) -> Mapping[str, int]:
        """By name; a directory that is not there, or may not be listed, shows nothing."""
        if directory not in self._listed:
            try:
                entries = self.services.store.entries(directory)
            except (FileMissing, StorageRefused):
                entries = ()
            self._listed[directory] = {
                each.name: each.length_bytes for each in entries if not each.is_directory
            }
        return self._listed[directory]


_PROBE_ENDED_MS: Final = 24 * 3600 * 1000
"""No probe takes as long; whoever asks at this very moment is left alone."""


@dataclass(slots=True)
class _Sweep:
    """What this sweep knows: asked once, and only if it matters."""

    services: Services
    copies: CommittedCopies
    committed: Collection[AttemptId]
    """Dead attempts whose work had ended before it was committed."""
    _is_heard: bool = True
    _seen: list[BrokerSnapshot | None] = field(default_factory=list)

    @property
    def snapshot(self) -> BrokerSnapshot | None:
        """Of the log; None while the broker can't be asked: then it is not taken for a copy."""
        if not self._seen:
            try:
                self._seen.append(self.services.broker.snapshot(self.services.topic))
            except SourceError as error:
                log.warning("The log is not taken for a copy of what is staged: %s", error)
                self._seen.append(None)
        return self._seen[0]

    def interrupt(self, attempt_id: AttemptId) -> None:
        """End what a dead attempt still does, if anybody answers."""
        if self._is_heard and attempt_id not in self.committed:
            self._is_heard = self.services.spark.interrupt(attempt_id)


def sweep(services: Services) -> int:
    """How many staging directories are gone that can never be committed any more.

    The ledger says in one answer that the token is dead and that the attempt did not commit; a dead
    token can't come to life again.
    """
    with at(services, "sweep"):
        dead = services.ledger.dead_attempts(services.feed_name)
        ids = sorted({each.attempt.batch_id for each in dead})
        at_risk = services.ledger.offsets_at_risk(ids) if ids else {}
    committed = {each.attempt.attempt_id for each in dead if each.has_committed}
    known = _Sweep(services, CommittedCopies(services), committed)
    swept = 0
    for each in dead:
        attempt = each.attempt
        staging = StagingPath(each.root, attempt.batch_id, attempt.attempt_id)
        with _or_left(services, str(staging)), at(services, "sweep", attempt.batch_id):
            risks = at_risk.get(attempt.batch_id, ())
            if _put_away(services, staging, risks, known, is_over=each.is_over):
                services.store.delete_empty(staging.batch_directory)
                services.ledger.mark_swept(attempt.attempt_id)
                swept += 1
    with at(services, "sweep"):
        roots = feed_roots(services)
        for root in roots:
            shown_in = f"{root}/{services.feed_name}"
            with _or_left(services, shown_in):
                _sweep_probes(services, shown_in)
        former = services.ledger.roots(services.feed_name, with_former=True)
        everywhere = sorted({*roots, *former})
        return swept + sum(_sweep_again(services, root, known) for root in everywhere)


@contextmanager
def _or_left(services: Services, directory: str) -> Iterator[None]:
    """Leaves it where it is if storage does not say what it holds.

    Raises the error when nothing of the file system answers: it would not answer about the others
    either, and each question may take as long as a NameNode is tried.
    """
    try:
        yield
    except StorageError as error:
        if isinstance(error, StorageUnavailable) and not _answers(services, directory):
            raise
        log.warning("%s is left for a later sweep: %s", directory, error)


def _answers(services: Services, path: str) -> bool:
    """True when the file system says what is there, or refuses to."""
    try:
        services.store.status(path)
    except StorageUnavailable:
        return False
    except StorageRefused:
        return True
    return True


def _put_away(
    services: Services,
    staging: StagingPath,
    at_risk: Sequence[AtRisk],
    known: _Sweep,
    *,
    is_over: bool,
) -> bool:
    """True when nothing is left in the directory."""
    files, snapshot = DeadFiles(holds_rows(services, staging), is_whole=False, epochs={}), None
    if files.holds_rows and at_risk:
        is_proven = services.store.status(staging.manifest) is not None
        whole = is_proven or is_whole(services, staging)
        files = replace(files, epochs=epochs_of(services, staging), is_whole=whole)
        snapshot = known.snapshot
    fate = fate_of(
        files,
        at_risk,
        snapshot,
        is_over=is_over,
        is_copied=lambda: not known.copies.missing(staging.batch_id, at_risk),
    )
    match fate:
        case Fate.DELETED:
            known.interrupt(staging.attempt_id)  # or it may write anew what is deleted
            services.store.delete(str(staging))
            log.info("Swept %s.", staging)
        case Fate.KEPT:
            log.info("%s is kept: no commit holds yet what it may hold.", staging)
        case Fate.QUARANTINED:
            place = quarantine_directory(services, str(staging), quarantined_at(services, staging))
            # Afterwards: what Spark ends, it clears away, with all that its tasks have finished.
            known.interrupt(staging.attempt_id)
            log.warning(
                "%s is kept in %s: it may hold the only copy of %s.",
                staging,
                place,
                "; ".join(str(each.offsets) for each in at_risk[:20]),
            )
    return fate is not Fate.KEPT


def _sweep_probes(services: Services, directory: str) -> Sequence[StoredEntry]:
    """Delete what the question before a landing left there when its process was killed.

    Gives all that was listed.
    """
    now = services.store.clock_ms()
    try:
        found = services.store.entries(directory)
    except FileMissing:
        return ()
    for each in found:
        is_old = now is not None and now - each.changed_ms > _PROBE_ENDED_MS
        if each.name.startswith(PROBE_PREFIX) and is_old:
            with _or_left(services, f"{directory}/{each.name}"):
                services.store.delete(f"{directory}/{each.name}")
                log.info("Swept %s/%s: a probe that was killed.", directory, each.name)
    return found


def _sweep_again(services: Services, root: str, known: _Sweep) -> int:
    """Put away what late writers have made again in staging since it was swept; how many batches'.

    A directory is listed first and the ledger asked afterwards: a batch that is over stays so. Of a
    batch that is not, or that this ledger does not know, nothing is touched.
    """
    staging = f"{root}/{STAGING_NAME}"
    there: list[BatchId] = []
    with _or_left(services, staging):
        there = batches_among(_sweep_probes(services, staging))
    over = services.ledger.batches_over(services.feed_name, there) if there else ()
    at_risk = services.ledger.offsets_at_risk(over) if over else {}
    swept = 0
    for each in over:
        with _or_left(services, f"{staging}/{each}"):
            swept += _batch_put_away(services, root, each, at_risk.get(each, ()), known)
    return swept


def _batch_put_away(
    services: Services, root: str, batch_id: BatchId, at_risk: Sequence[AtRisk], known: _Sweep
) -> bool:
    directory = f"{root}/{STAGING_NAME}/{batch_id}"
    attempts = attempts_in(services, root, batch_id)
    has_rows = any(holds_rows(services, each) for each in attempts)
    if not at_risk and not (has_rows and known.copies.missing(batch_id, at_risk)):
        services.store.delete(directory)
        log.info("Swept %s again: a late writer had been there.", directory)
        return True
    put_away = [_put_away(services, each, at_risk, known, is_over=True) for each in attempts]
    return all(put_away) and services.store.delete_empty(directory)
