"""What attempts have answered when they were asked what they hold, and which could not be asked.

What a directory may hold that could not be asked is not lost: nobody can tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.attempts.last_copies import KeptFiles, places_for
from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.paths import directory_of
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, subtract, union_of


@dataclass(frozen=True, slots=True)
class Unasked:
    """A directory of attempts that may hold what no commit does, and that could not be asked."""

    path: str
    reason: str
    remedy: str
    """What else to do, where a move to quarantine would not help, or is not called for."""
    files: KeptFiles
    """What it may hold; and where it is kept if it is quarantined, or its own path if it can't be.
    """
    batch_ids: frozenset[BatchId] = frozenset()
    """The batch whose attempts lie there, and those whose commit waits for it; none where all
    attempts lie."""
    is_asked: bool = False
    """True where it was asked, and what it holds could not be committed."""

    @property
    def place(self) -> str | None:
        """Where it is kept once it was quarantined; None where that is no way out."""
        return self.files.place if self.files.place != self.path else None

    @property
    def move(self) -> str | None:
        """The command that moves it there."""
        if self.place is None:
            return None
        parent = directory_of(self.place)
        return f"hdfs dfs -mkdir -p {parent} && hdfs dfs -mv {self.path} {self.place}"

    def covers(self, path: str) -> bool:
        """True for what lies in this directory, or is it."""
        return f"{path}/".startswith(f"{self.path}/")


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking the attempts that may hold what would be lost."""

    tokens: Mapping[BatchId, FencingToken] = field(default_factory=dict)
    """Batches of which nothing can be committed, by their newest token then: with a newer one the
    answer counts for nothing. What could not be asked is not among them: its claims stand."""
    kept: Sequence[KeptFiles] = ()
    """What attempts of any batch hold, or may hold, and no commit does."""
    may_land: tuple[OffsetRange, ...] = ()
    """Of files whose batch claims them no more, and that another run is at; where nothing is to be
    changed, also of those that would be committed. They are not lost yet."""
    offsets: tuple[OffsetRange, ...] = ()
    """What would have been lost: for this the attempts were asked."""
    unasked: Sequence[Unasked] = ()
    """The directories that could not be asked, for whatever look: what they may hold is not lost.
    """

    def has_missed(self, account: GenerationAccount, offsets: OffsetRange) -> bool:
        """True when files that tell what they hold were not asked for some of these offsets."""
        topic_id = account.topic_id
        told = [one for one in self.kept if one.offsets is not None]
        holders = [one for one in told if one.may_hold(topic_id, offsets)]
        missed = subtract(offsets, self.offsets) if holders else ()
        return any(one.may_hold(topic_id, rest) for rest in missed for one in holders)

    def is_answer_of(self, batch: BatchStatus) -> bool:
        """True when none of the batch's attempts can be committed, and none has begun since."""
        return self.tokens.get(batch.plan.batch_id) == batch.newest_token

    def kept_for(self, account: GenerationAccount, offsets: OffsetRange) -> tuple[str, ...]:
        """Where files are kept that may hold these offsets."""
        return places_for(self.kept, account.topic_id, offsets)

    def not_to_be_lost(
        self, account: GenerationAccount, offsets: OffsetRange
    ) -> tuple[OffsetRange, ...]:
        """What of these offsets may be in a directory that could not be asked."""
        found: list[OffsetRange] = []
        for each in self._unasked_for(account, offsets):
            known = each.files.offsets
            here = [offsets] if known is None else [offsets.intersection(one) for one in known]
            found += filter(None, here)
        return union_of(found)

    def reasons_for(self, account: GenerationAccount, offsets: OffsetRange) -> dict[str, str]:
        """The directories that may hold some of these offsets, each with why it was not asked."""
        return {each.path: each.reason for each in self._unasked_for(account, offsets)}

    def _unasked_for(self, account: GenerationAccount, offsets: OffsetRange) -> list[Unasked]:
        return [each for each in self.unasked if each.files.may_hold(account.topic_id, offsets)]
