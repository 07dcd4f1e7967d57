"""What a look at the broker changes in the ledger, as values: what opens, ends, is lost or cut.

`log_judgement` decides the changes, the ledger performs them, and `accounts_after` says what it
holds then, but for the witnesses of logs, which the look hands over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from tallystick.domain.batches.batch import BatchStatus, PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import LogCheck
from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition

NOT_IN_THE_LOG: Final = frozenset({FindingCode.EXPIRED, FindingCode.TOPIC_RECREATED})
"""Of offsets that nobody can read again."""


@dataclass(frozen=True, slots=True)
class OpenedGeneration:
    """A log that the ledger is to account for from now on."""

    partition: TopicPartition
    cluster_id: str
    topic_id: str
    ordinal: int
    first_offset: int
    reason: str
    begins_unseen: bool = False
    """True for a log that was new to the feed, and began above offset 0 already."""
    seen_until: int | None = None
    """The high watermark (excluded) of the look that found it; None where none did."""
    seen_epoch: int | None = None
    """The leader epoch of that look."""

    def account(self, generation_id: GenerationId) -> GenerationAccount:
        """What the ledger holds of it at first."""
        return GenerationAccount(
            generation_id=generation_id,
            partition=self.partition,
            cluster_id=self.cluster_id,
            topic_id=self.topic_id,
            ordinal=self.ordinal,
            state=GenerationState.OPEN,
            first_offset=self.first_offset,
            frontier=self.first_offset,
            beyond=(),
            last_seen_until=max(self.first_offset, self.seen_until or 0),
            anchor=None,
            seen_epoch=self.seen_epoch,
        )


@dataclass(frozen=True, slots=True)
class EndedGeneration:
    """A generation of which nothing more is planned: closed for ever, or stopped until told."""

    generation_id: GenerationId
    code: FindingCode
    reason: str
    kept: tuple[str, ...] = ()
    """Where files of attempts are kept that may hold what was not landed, or was cut."""
    is_overwritten: bool = False
    """True for a log that was cut, and holds another record where the last one was landed."""


@dataclass(frozen=True, slots=True)
class LostRange:
    """Offsets that can be had nowhere any more, with their evidence."""

    generation_id: GenerationId
    offsets: OffsetRange
    code: FindingCode
    evidence: Mapping[str, object] = field(default_factory=dict)
    held_in: Mapping[str, str] = field(default_factory=dict)
    """Directories of attempts that may hold them, each with why nothing of it is committed."""


@dataclass(frozen=True, slots=True)
class CutClaim:
    """Offsets taken out of an unfinished batch's claim, because they can't be landed any more."""

    batch_id: BatchId
    generation_id: GenerationId
    offsets: OffsetRange
    becomes: RangeState
    """LOST, RELEASED or UNREADABLE."""
    code: FindingCode
    kept: tuple[str, ...] = ()
    """Where files of attempts are kept that may hold these offsets, and can't be proven."""


@dataclass(frozen=True, slots=True)
class LogChanges:
    """Everything that one snapshot changes in the ledger, before anything is planned.

    The ledger applies cuts first, then lost ranges, then what is due again, then stopped, closed
    and opened generations. With any changes, none included, it abandons the give-ups that nobody
    holds.
    """

    opened: Sequence[OpenedGeneration] = ()
    closed: Sequence[EndedGeneration] = ()
    waiting: Sequence[EndedGeneration] = ()
    """Their logs are over, and what attempts hold of them is not known yet: closed later."""
    stopped: Sequence[EndedGeneration] = ()
    cut_again: Sequence[EndedGeneration] = ()
    """They have stopped before: what looks have seen since then was cut."""
    lost: Sequence[LostRange] = ()
    held: Sequence[LostRange] = ()
    """What would be lost, and may be in files that are not settled: nothing of it changes."""
    cuts: Sequence[CutClaim] = ()
    due_again: Sequence[PlannedRange] = ()
    """Unreadable offsets that a person has asked for again."""

    def and_then(self, more: LogChanges) -> LogChanges:
        """These, and more of them."""
        names = [each.name for each in fields(self)]
        return LogChanges(**{each: (*getattr(self, each), *getattr(more, each)) for each in names})

    @property
    def of_known_logs(self) -> bool:
        """True where offsets or states of generations change that the ledger has already."""
        return bool(self.closed or self.stopped or self.lost or self.cuts or self.due_again)

    @property
    def in_danger(self) -> frozenset[BatchId]:
        """The batches that lose claims because nobody can read these offsets again."""
        return frozenset(each.batch_id for each in self.cuts if each.code in NOT_IN_THE_LOG)


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the ledger knows of one feed while its planning lock is held."""

    generations: Mapping[int, GenerationAccount]
    """The newest generation of every partition ever seen, by partition."""
    unfinished: Sequence[BatchStatus]
    """Batches that are planned, landing or verified: their claims stand in `beyond`."""
    retired_topic_ids: frozenset[str] = frozenset()
    """Topic ids of lives that are over: a broker that still answers with one is behind."""

    @property
    def claimed(self) -> frozenset[OffsetRange]:
        """What unfinished batches hold, and no commit yet."""
        return frozenset(
            each.offsets
            for batch in self.unfinished
            if not batch.plan.is_repair
            for each in batch.plan.ranges
        )

    @property
    def open_repairs(self) -> frozenset[BatchId]:
        """The repairs that are neither committed nor given up."""
        return frozenset(each.plan.batch_id for each in self.unfinished if each.plan.is_repair)


@dataclass(frozen=True, slots=True)
class Observation:
    """All that one plan saw of the broker, beside what the ledger knows."""

    snapshot: BrokerSnapshot
    logs: Mapping[int, LogCheck]
    """By partition: if the log is the one that was seen; where it has stopped, since then. Without
    those that have no leader."""
    start_offsets: Mapping[int, int]
    """By partition: where the start policy begins. Read on the feed's very first plan only."""
    first_batches: Mapping[int, BatchHead] = field(default_factory=dict)
    """By partition, where the log start has passed the frontier: the batch it begins with now."""
