"""What a broker snapshot means for the generations that the ledger knows.

Decides which generations open, close or stop, which offsets are lost, and which claims shrink.
Performs nothing. The rules are the table "Logs that change under us" in docs/design.md.

1. One sick partition never holds up, resets or repeats another one.
2. A lost range never overlaps a committed range, nor a claim that is left standing.
3. The start policy is asked for the feed's very first plan only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tallystick.domain.batch import BatchStatus
from tallystick.domain.findings import FindingCode
from tallystick.domain.generation import GenerationAccount
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.ranges import OffsetRange, TopicPartition
from tallystick.domain.states import RangeState


class AnchorCheck(StrEnum):
    """What reading the last landed record again says."""

    INTACT = "intact"
    DIFFERS = "differs"
    GONE = "gone"
    """Expired or compacted, and the leader epochs can't tell either."""


@dataclass(frozen=True, slots=True)
class OpenedGeneration:
    """A log that the ledger is to account for from now on."""

    partition: TopicPartition
    cluster_id: str
    topic_id: str
    ordinal: int
    first_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class EndedGeneration:
    """A generation of which nothing more is planned: closed for ever, or stopped until told."""

    generation_id: GenerationId
    code: FindingCode
    reason: str


@dataclass(frozen=True, slots=True)
class LostRange:
    """Offsets that can be had nowhere any more, with their evidence."""

    generation_id: GenerationId
    offsets: OffsetRange
    code: FindingCode
    evidence: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CutClaim:
    """Offsets taken out of an unfinished batch's claim, because they can't be landed any more."""

    batch_id: BatchId
    generation_id: GenerationId
    offsets: OffsetRange
    becomes: RangeState
    """LOST or RELEASED."""
    code: FindingCode


@dataclass(frozen=True, slots=True)
class LogChanges:
    """Everything that one snapshot changes in the ledger, before anything is planned.

    The ledger applies cuts first, then lost ranges, then ended, then opened generations.
    """

    opened: Sequence[OpenedGeneration] = ()
    closed: Sequence[EndedGeneration] = ()
    stopped: Sequence[EndedGeneration] = ()
    lost: Sequence[LostRange] = ()
    cuts: Sequence[CutClaim] = ()


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the ledger knows of one feed while its planning lock is held."""

    generations: Mapping[int, GenerationAccount]
    """The newest generation of every partition ever seen, by partition."""
    unfinished: Sequence[BatchStatus]
    """Batches that are planned, landing or verified: their claims stand in `beyond`."""
