"""Full reads and samples: which are due, what the rows were, what was clean. Judges nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from tallystick.domain.batches.standing_batch import DueBatch, SliceKey, StandingBatch
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows import row_hash
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rules.findings import Level
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.rows import manifests_of


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


class Scrubs(Tables):
    """What is remembered of full reads, and of samples."""

    def scrub_due(self, feed: FeedName, every: timedelta) -> Sequence[DueBatch]:
        """Published batches that are due for a full read: never-tried ones first, then by the age
        of the last try.

        Due is what was last read so long ago by the ledger's clock, and what was not clean then.
        Batches without a standing file are never due.
        """
        rows = self._connection.rows("scrub_due", feed=feed, every_seconds=every.total_seconds())
        return [DueBatch(*row) for row in rows]

    def standing_batches(self, batch_ids: Collection[BatchId]) -> Sequence[StandingBatch]:
        """Committed batches with their files that still stand and the fingerprints on record, in
        the order given.
        """
        with self._connection.reading() as transaction:
            return _standing_batches(transaction, list(batch_ids))

    def record_scrub(
        self, batch_id: BatchId, taken: Mapping[SliceKey, Fingerprint], *, is_clean: bool
    ) -> None:
        """Keep that the batch was read in full, with its fingerprints: of each slice, the first
        one counts, and a later one changes nothing.
        """
        with self._connection.writing() as transaction:
            if taken:
                _record_fingerprints(transaction, batch_id, taken)
            transaction.change("record_checks", **_look([batch_id], Level.L3, is_clean=is_clean))

    def record_offsets_look(self, batch_id: BatchId, *, is_clean: bool) -> None:
        """Keep that the batch's offset columns were read again."""
        look = _look([batch_id], Level.L2, is_clean=is_clean)
        self._connection.change("record_checks", **look)

    def record_unread(self, batch_ids: Collection[BatchId], level: Level) -> None:
        """Keep that a look of this level, L2 or L3, did not read all of these batches: they stay
        due as they were, and their next turn comes after the others'.
        """
        look = _look(batch_ids, level, is_clean=False, is_complete=False)
        self._connection.change("record_checks", **look)

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
        rows = self._connection.rows(
            "samples_due",
            feed=feed,
            topic_id=topic_id,
            newest=newest,
            partitions=list(log_starts),
            log_starts=list(log_starts.values()),
        )
        return [DueSample(BatchId(row.batch_id), row.tries, not row.is_compared) for row in rows]

    def cleaned_part(
        self, feed: FeedName, topic_id: str, offsets: OffsetRange
    ) -> OffsetRange | None:
        """What a policy with `compact` may have cleaned, as looks of this life of the topic saw it.

        What was appended after a look that saw another policy, it has not touched.
        """
        row = self._connection.row("look_after_cleaning", feed=feed, topic_id=topic_id)
        if row is None or row.shown is None:
            return offsets if row else None
        after = Shown.of(row.shown)
        ends = after.by_partition(after.high_watermarks)
        return offsets.clipped(0, ends.get(offsets.partition.partition, 0))

    def record_sample(self, batch_id: BatchId, taken: TakenSample, *, is_clean: bool) -> None:
        """Keep that a second reader has compared a sample of the batch, or that it could not."""
        is_whole, sample = taken.is_complete, json.dumps(asdict(taken))
        look = _look([batch_id], Level.L4, is_clean=is_clean and is_whole, is_complete=is_whole)
        self._connection.change("record_checks", **look | {"sample": sample})

    def scrub_standing(self, feed: FeedName) -> ScrubStanding:
        """How far full reads have come."""
        row = self._connection.one("scrub_standing", feed=feed)
        return ScrubStanding(*row)


def _look(
    batch_ids: Collection[BatchId], level: Level, *, is_clean: bool, is_complete: bool = True
) -> dict[str, object]:
    return {
        "batch_ids": list(batch_ids),
        "level": level.value,
        "is_clean": is_clean,
        "is_complete": is_complete,
        "sample": None,
    }


def _standing_batches(
    transaction: Transaction, batch_ids: Sequence[BatchId]
) -> list[StandingBatch]:
    manifests = manifests_of(transaction, batch_ids)
    names: dict[BatchId, set[str]] = {each: set() for each in manifests}
    for row in transaction.rows("standing_files", batch_ids=list(manifests)):
        names[BatchId(row.batch_id)].add(row.name)
    taken: dict[BatchId, dict[SliceKey, Fingerprint]] = {each: {} for each in manifests}
    known = transaction.rows(
        "fingerprints_of", batch_ids=list(manifests), hash_version=row_hash.VERSION
    )
    for row in known:
        taken[BatchId(row.batch_id)][SliceKey(row.name, row.partition)] = _fingerprint(row)
    return [
        StandingBatch(manifests[each], frozenset(names[each]), taken[each])
        for each in batch_ids
        if each in manifests
    ]


def _record_fingerprints(
    transaction: Transaction, batch_id: BatchId, taken: Mapping[SliceKey, Fingerprint]
) -> None:
    keys, found = list(taken), list(taken.values())
    transaction.change(
        "record_fingerprints",
        batch_id=batch_id,
        hash_version=row_hash.VERSION,
        names=[each.name for each in keys],
        partitions=[each.partition for each in keys],
        record_counts=[each.record_count for each in found],
        offset_sums=[each.offset_sum for each in found],
        high_hash_sums=[each.hash_sums[0] for each in found],
        low_hash_sums=[each.hash_sums[1] for each in found],
    )


def _fingerprint(row: Any) -> Fingerprint:
    return Fingerprint(
        record_count=row.record_count,
        offset_sum=int(row.offset_sum),
        hash_sums=(row.high_hash_sum, row.low_hash_sum),
        first_offset=row.first_offset,
        last_offset=row.last_offset,
    )
