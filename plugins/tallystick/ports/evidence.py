"""What the rules of reconciliation ask of the ledger beside accounts and findings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.identities import FeedName
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import PastBounds
from tallystick.domain.offsets.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class SettledRanges:
    """All committed and lost ranges of one generation, as the ledger's rows say."""

    account: GenerationAccount
    ranges: Sequence[OffsetRange]
    """By offset; they may overlap."""


@dataclass(frozen=True, slots=True)
class TwiceCommitted:
    """Offsets that a generation has committed, and an earlier one of the same topic id, too."""

    account: GenerationAccount
    offsets: OffsetRange
    earlier: int
    """The other generation's ordinal."""


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

    def tried(self, feed: FeedName) -> Sequence[TriedBatch]:
        """The feed's unfinished batches that were tried, oldest first."""
        ...

    def idle(self, feed: FeedName) -> timedelta | None:
        """Since the last sign of a run: a plan, an attempt's end, or a lease that has run out.

        Zero or less while a batch is held; None for a feed that was never planned.
        """
        ...

    def unsound(self, feed: FeedName) -> Sequence[SettledRanges]:
        """The generations whose ranges overlap, or leave something open below the frontier.

        None as long as the schema's own constraints stand.
        """
        ...

    def ended_logs(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, str, str]]:
        """Logs that are stopped, and those that ended with their topic, each with the finding code
        and the reason; by partition, oldest first.
        """
        ...

    def unseen_beginnings(self, feed: FeedName) -> Sequence[GenerationAccount]:
        """Logs that began above offset 0 when the feed first saw them, by partition."""
        ...

    def left_unread(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange]]:
        """What was seen of logs that a rebuild has closed, and is neither committed nor lost.

        By generation and offset; what unfinished batches claim is left out.
        """
        ...

    def committed_in_two_lives(self, feed: FeedName) -> Sequence[TwiceCommitted]:
        """What two generations of one log hold, by generation and offset; those of a cut left out.

        None as long as the schema's own refusals stand.
        """
        ...
