"""What one listing of staging and quarantine shows of attempts: what may be held, and is no commit.

A claim with files of an attempt behind it stands until these are settled: they are committed, or
given up, which moves them to quarantine. So nobody has to remember what was settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import KeptFiles, places_for
from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.paths import directory_of
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, union_of


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """A directory of attempts in staging that may hold what no commit does."""

    path: str
    batch_id: BatchId | None
    """Whose attempts lie there; None for all of staging."""
    reason: str
    """Why nothing of it is committed."""
    files: KeptFiles
    """What it may hold, and where it is kept once it was given up."""
    can_be_asked: bool = False
    """True for complete files that a run can read, and settle."""

    @property
    def move(self) -> str | None:
        """The command that gives it up; None for all of staging."""
        if self.batch_id is None:
            return None
        place = self.files.place
        return f"hdfs dfs -mkdir -p {directory_of(place)} && hdfs dfs -mv {self.path} {place}"


@dataclass(frozen=True, slots=True)
class Staged:
    """What was there at one moment, beside the attempts that the ledger knew just before."""

    held: Sequence[HeldFiles] = ()
    quarantined: Sequence[KeptFiles] = ()
    """What was given up; nobody waits for it."""
    tokens: Mapping[BatchId, FencingToken] | None = None
    """The unfinished batches that nobody held, by their newest token; None where none can have
    begun, or ended, since.
    """

    @property
    def kept(self) -> tuple[KeptFiles, ...]:
        """All of it, with the place where it is kept once its batch is over."""
        return (*(each.files for each in self.held), *self.quarantined)

    def may_hold(self, batch: BatchStatus) -> bool:
        """True while an attempt of the batch may hold what it claims: it lives, has files in
        staging, or has begun since these were listed.
        """
        batch_id = batch.plan.batch_id
        return self.has_begun(batch) or any(each.batch_id in (None, batch_id) for each in self.held)

    def has_begun(self, batch: BatchStatus) -> bool:
        """True when an attempt of the batch lives, or did at any time since staging was listed."""
        is_as_listed = self.tokens is None or (
            self.tokens.get(batch.plan.batch_id) == batch.newest_token
        )
        return batch.is_held or not is_as_listed

    def held_of(self, account: GenerationAccount, offsets: OffsetRange) -> tuple[OffsetRange, ...]:
        """What of these offsets some files may hold that are not settled."""
        found: list[OffsetRange] = []
        for each in self.holders(account, offsets):
            known = each.files.offsets
            here = [offsets] if known is None else [offsets.intersection(one) for one in known]
            found += filter(None, here)
        return union_of(found)

    def holders(self, account: GenerationAccount, offsets: OffsetRange) -> list[HeldFiles]:
        """The directories that may hold some of them."""
        return [each for each in self.held if each.files.may_hold(account.topic_id, offsets)]

    def places_for(self, account: GenerationAccount, offsets: OffsetRange) -> tuple[str, ...]:
        """Where files are kept that may hold some of them, once their batches are over."""
        return places_for(self.kept, account.topic_id, offsets)
