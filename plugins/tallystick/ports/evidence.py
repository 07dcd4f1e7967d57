"""What the rules of reconciliation ask of the ledger beside accounts and findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tallystick.domain.generation import GenerationAccount
from tallystick.domain.identities import FeedName
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.snapshot import PastBounds


@dataclass(frozen=True, slots=True)
class SettledRanges:
    """All committed and lost ranges of one generation, as the ledger's rows say."""

    account: GenerationAccount
    ranges: Sequence[OffsetRange]
    """By offset; they may overlap."""


class EvidenceRecord(Protocol):
    """The part of the ledger that rules rest on; raises what `Ledger` raises."""

    def past_bounds(
        self, feed: FeedName, topic_id: str, partitions: Collection[int]
    ) -> Mapping[int, Sequence[PastBounds]]:
        """What looks at this log showed of these partitions, oldest first.

        As many of the newest looks as it takes for a day of landing every quarter of an hour, and
        the first one of each hour of the last two days; no more, however long the history is.
        """
        ...

    def unsound(self, feed: FeedName) -> Sequence[SettledRanges]:
        """The generations whose ranges overlap, or leave something open below the frontier.

        None as long as the schema's own constraints stand.
        """
        ...
