"""The broker's batch headers explain why offsets of one range have no record.

Answers of the broker come in, classes of holes go out; which offset to ask for next is decided
here, asking is done elsewhere. A hole is explained by what lies in the log, never by what should:

1. An offset of a control batch is CONTROL.
2. An offset whose record belongs to an aborted transaction is ABORTED, under read_committed only:
   under read_uncommitted that record is data, and its absence is loss.
3. An offset that a surviving batch was written with, and has no record for, is COMPACTED: brokers
   take no such batch from a producer (LogValidator.validateBatch), only the cleaner makes it.
4. An offset that no batch covers is `bare`: compaction, if the topic's policy says so.
5. Everything else stays unexplained, above all an offset whose record is there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.runs import GrowingRuns, OffsetRuns
from tallystick.sources.record_batches import RecordBatch, batches_in, is_abort_marker, offsets_in


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """One entry of the list that a read_committed answer carries."""

    producer_id: int
    first_offset: int


class FetchAnswer(NamedTuple):
    """One partition's part of a fetch answer, from the leader."""

    records: bytes | memoryview
    """Batches, from the one that holds the asked offset, or the next one if none does."""
    aborted: Sequence[AbortedTransaction]
    """Transactions that reach into the answer; empty under read_uncommitted."""
    readable_until: int
    """One past what may be read under the isolation level of the request."""


@dataclass(slots=True)
class HoleWalk:
    """The holes of one range on their way to a cause; memory grows with runs of holes alone."""

    holes: OffsetRuns
    isolation: Isolation
    _bare: GrowingRuns = field(default_factory=GrowingRuns)
    _explained: dict[HoleClass, GrowingRuns] = field(
        default_factory=lambda: {kind: GrowingRuns() for kind in HoleClass}
    )
    _run: int = 0
    """Index of the first run that is not done."""
    _position: int = 0
    """Every hole below this offset is done."""

    @property
    def next_offset(self) -> int | None:
        """The first hole that nobody has looked at; None when the walk is over."""
        while self._run < len(self.holes):
            if self.holes.until_offsets[self._run] > self._position:
                return max(self._position, self.holes.from_offsets[self._run])
            self._run += 1
        return None

    def explained(self) -> dict[HoleClass, OffsetRuns]:
        """Returns what headers prove, by class; `bare` offsets are not in it."""
        found = {kind: grown.taken() for kind, grown in self._explained.items()}
        return {kind: runs for kind, runs in found.items() if runs}

    def bare(self) -> OffsetRuns:
        """Offsets that no batch covers."""
        return self._bare.taken()

    def pass_over(self, until_offset: int) -> None:
        """Leave the holes below this offset unexplained: they can't be looked at any more."""
        self._position = max(self._position, until_offset)

    def take(self, answer: FetchAnswer) -> int:
        """Takes the answer for `next_offset`; returns how many runs of holes it settled."""
        asked = self.next_offset
        if asked is None:
            raise ValueError("the walk is over")
        first_run, self._position = self._run, asked
        aborts = _Aborts(answer.aborted) if self.isolation is Isolation.READ_COMMITTED else None
        for batch in batches_in(answer.records):
            is_aborted = aborts.is_aborted(batch) if aborts else False
            self._bare.add(self._holes_below(batch.base_offset))
            holes = self._holes_below(batch.until_offset)
            if holes:
                self._explain(batch, holes, is_aborted=is_aborted)
        if not answer.records:
            # No batch from here up to what may be read.
            self._bare.add(self._holes_below(answer.readable_until))
        if self._position == asked:
            # What may be read ends before the hole: the log was cut, or the hole is in the future.
            self.pass_over(self.holes.until_offsets[-1])
        return self._run - first_run

    def _holes_below(self, until_offset: int) -> OffsetRuns:
        """The holes from the position up to the offset; the position moves there."""
        if until_offset <= self._position:
            return OffsetRuns()
        found = self.holes.clipped(self._position, until_offset)
        self._run = bisect_right(self.holes.until_offsets, until_offset, self._run)
        self._position = until_offset
        return found

    def _explain(self, batch: RecordBatch, holes: OffsetRuns, *, is_aborted: bool) -> None:
        if batch.is_control:
            self._explained[HoleClass.CONTROL].add(holes)
            return
        if not batch.is_complete:
            present = OffsetRuns.of((offset, offset + 1) for offset in offsets_in(batch))
            self._explained[HoleClass.COMPACTED].add(holes.difference(present))
            holes = holes.intersection(present)
        if is_aborted:
            self._explained[HoleClass.ABORTED].add(holes)


class _Aborts:
    """Tells which batches of one answer belong to aborted transactions, by the consumer's own rule.

    The same steps as CompletedFetch.nextFetchedRecord of Kafka's Java consumer. State never
    outlives an answer: each answer lists every aborted transaction that reaches into it.
    """

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._pending = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._producers: set[int] = set()

    def is_aborted(self, batch: RecordBatch) -> bool:
        """True when the batch's records were aborted; batches must come in order."""
        if batch.producer_id < 0:
            return False
        while self._pending and self._pending[-1].first_offset < batch.until_offset:
            self._producers.add(self._pending.pop().producer_id)
        if batch.is_control:
            if batch.producer_id in self._producers and is_abort_marker(batch):
                self._producers.discard(batch.producer_id)
            return False
        return batch.is_transactional and batch.producer_id in self._producers
