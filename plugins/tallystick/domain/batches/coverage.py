"""Which batch holds which offsets: finds what two batches claim, to the offset.

1. An offset has one holder. A repair takes the place of whoever held its offsets before.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, subtract


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """Offsets of one life of a log, and the batch that has them."""

    offsets: OffsetRange
    ordinal: int
    batch_id: BatchId


class Coverage:
    """The offsets of some batches, while one after the other is added."""

    def __init__(self, plans: Iterable[BatchPlan] = (), held: Iterable[Held] = ()) -> None:
        self._held: defaultdict[tuple[TopicPartition, int], list[Held]] = defaultdict(list)
        for each in held:
            self._put(each)
        for plan in plans:
            self.add(plan)

    def held(self, plan: BatchPlan) -> list[Held]:
        """What of the plan's offsets is held already, and by whom, in the order of offsets."""
        found = []
        for planned in plan.ranges:
            for each in self._over(planned.offsets, plan.ordinal):
                shared = each.offsets.intersection(planned.offsets)
                if shared:
                    found.append(Held(shared, each.ordinal, each.batch_id))
        return found

    def add(self, plan: BatchPlan) -> None:
        """The plan's batch holds its offsets from now on."""
        for planned in plan.ranges:
            self._put(Held(planned.offsets, plan.ordinal, plan.batch_id))

    def _put(self, held: Held) -> None:
        pieces = self._held[held.offsets.partition, held.ordinal]
        for old in self._over(held.offsets, held.ordinal):
            pieces.remove(old)
            for left in subtract(old.offsets, [held.offsets]):
                insort(pieces, Held(left, old.ordinal, old.batch_id))
        insort(pieces, held)

    def _over(self, offsets: OffsetRange, ordinal: int) -> list[Held]:
        """The pieces that share an offset with the range."""
        pieces = self._held.get((offsets.partition, ordinal), [])
        first = bisect_right(
            pieces, offsets.from_offset, key=lambda each: each.offsets.until_offset
        )
        found = []
        for each in pieces[first:]:
            if each.offsets.from_offset >= offsets.until_offset:
                break
            found.append(each)
        return found
