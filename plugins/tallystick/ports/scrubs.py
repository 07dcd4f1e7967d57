"""What the ledger keeps of full reads: which are due, what the rows were, what was clean."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tallystick.domain.batches.standing_batch import DueBatch, SliceKey, StandingBatch
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rules.findings import Level


@dataclass(frozen=True, slots=True)
class ScrubStanding:
    """How far full reads have come over a feed's published batches."""

    batches: int
    """With at least one file that was not retracted."""
    never_read: int
    """Of these: no fingerprint is on record for them yet."""
    oldest_read_at: datetime | None
    """When the batch was read whose last full read is longest ago; None when none ever was."""


@dataclass(frozen=True, slots=True)
class DueSample:
    """A batch whose turn it is to be compared with the broker by the second reader."""

    batch_id: BatchId
    turn: int
    """How many samples of it were tried before."""
    is_first: bool
    """Whether none of them was taken."""


@dataclass(frozen=True, slots=True)
class TakenSample:
    """A sample of a batch as it was taken: batch, turn, slices and span say which offsets it is."""

    turn: int
    slices: int
    span: int
    """Offsets of a slice, at most."""
    offsets: int
    """Compared, on both sides; 0 where it could not be taken."""
    not_compared: str | None
    """What could not be compared, and why; None when all of it was."""

    @property
    def is_complete(self) -> bool:
        """False when nothing was compared."""
        return self.offsets > 0


class ScrubsRecord(Protocol):
    """The part of the ledger that remembers full reads; raises what `Ledger` raises."""

    def scrub_due(self, feed: FeedName, every: timedelta) -> Sequence[DueBatch]:
        """Published batches that are due for a full read: never-tried ones first, then by the age
        of the last try.

        Due is what was last read so long ago by the ledger's clock, and what was not clean then.
        Batches without a standing file are never due.
        """
        ...

    def standing_batches(self, batch_ids: Collection[BatchId]) -> Sequence[StandingBatch]:
        """Committed batches with their files that still stand and the fingerprints on record, in
        the order given.
        """
        ...

    def record_scrub(
        self, batch_id: BatchId, taken: Mapping[SliceKey, Fingerprint], *, is_clean: bool
    ) -> None:
        """Keep that the batch was read in full, with its fingerprints: of each slice, the first
        one counts, and a later one changes nothing.
        """
        ...

    def record_unread(self, batch_ids: Collection[BatchId], level: Level) -> None:
        """Keep that a look of this level, L2 or L3, did not read all of these batches: they stay
        due as they were, and their next turn comes after the others'.
        """
        ...

    def scrub_standing(self, feed: FeedName) -> ScrubStanding:
        """How far full reads have come."""
        ...

    def samples_due(
        self,
        feed: FeedName,
        topic_id: str,
        log_starts: Mapping[int, int],
        newest: int | None = None,
    ) -> Sequence[DueSample]:
        """Published batches of the log that is read now, of which the broker has an offset at or
        after the log's start: never-tried ones first, the newest before all, then by the age of the
        last try. `newest` is how many are looked at, the newest ones; None: all.
        """
        ...

    def cleaned_part(
        self, feed: FeedName, topic_id: str, offsets: OffsetRange
    ) -> OffsetRange | None:
        """What a policy with `compact` may have cleaned, as looks of this life of the topic saw it.

        What was appended after a look that saw another policy, it has not touched.
        """
        ...

    def record_sample(self, batch_id: BatchId, taken: TakenSample, *, is_clean: bool) -> None:
        """Keep that a second reader has compared a sample of the batch, or that it could not."""
        ...
