"""What may become of an attempt's files: committed after all, deleted, kept, or quarantined.

1. Nothing is deleted that may be the only copy. What an attempt read may go when its offsets are
   committed, and the files that hold them are there; or when the log has them still and was not cut
   since, unless its files are complete: nobody has read if another attempt's are as good.
2. A row in a file is proven by its offset. A missing one is a hole only where the log proves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tallystick.domain.batches.accounting import RangeHoles
from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, offset_range, subtract
from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Offsets that a batch has claimed, and that no commit holds.

    A commit whose file is known to be missing or changed holds nothing.
    """

    offsets: OffsetRange
    state: RangeState
    """CLAIMED, RELEASED, UNREADABLE, COMMITTED or LOST; LOST, too, where another claim of them was.
    """
    log: GenerationState
    cluster_id: str
    topic_id: str

    replaces: bool = False
    """True for what a repair has claimed: it is committed, so no plan asks for it."""

    def is_given_up(self, snapshot: BrokerSnapshot | None) -> bool:
        """True when no batch will land them any more.

        What the log has lost is given up once a plan says so, for that plan asks for these files.
        """
        if self.state is RangeState.LOST or self.log is not GenerationState.OPEN:
            return True
        return self.replaces and snapshot is not None and not self._may_be_in(snapshot)

    def _may_be_in(self, snapshot: BrokerSnapshot) -> bool:
        bounds = snapshot.partitions.get(self.offsets.partition.partition)
        is_there = bounds is None or bounds.log_start_offset <= self.offsets.from_offset
        return is_there and snapshot.is_of(self)

    def is_in_log(self, snapshot: BrokerSnapshot | None, epochs: Mapping[int, int | None]) -> bool:
        """True when the log has them as they were read: `epochs` are those of the read.

        A log is cut at a change of leaders only: under the same epoch it is the same.
        """
        if snapshot is None or self.is_given_up(snapshot):
            return False
        partition = self.offsets.partition.partition
        bounds = snapshot.partitions.get(partition)
        return (
            bounds is not None
            and self._may_be_in(snapshot)
            and self.offsets.until_offset <= bounds.high_watermark
            and bounds.leader_epoch is not None
            and bounds.leader_epoch == epochs.get(partition)
        )


@dataclass(frozen=True, slots=True)
class CommittedCopy:
    """A committed file that holds offsets which a batch has claimed, too."""

    directory: str
    """Where the file lies, by the ledger."""
    name: str
    length_bytes: int
    checksum: str
    offsets: OffsetRange
    """What both have of one partition."""

    @property
    def path(self) -> str:
        """Of the file."""
        return f"{self.directory}/{self.name}"


def relied_on(
    copies: Iterable[CommittedCopy], at_risk: Sequence[AtRisk]
) -> tuple[CommittedCopy, ...]:
    """The files without which rows of the batch would have no copy that anybody knows of.

    What is at risk is judged for itself, so a file that holds nothing else need not be there.
    """
    known = [each.offsets for each in at_risk]
    return tuple(each for each in copies if subtract(each.offsets, known))


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """What an attempt has in staging, or in quarantine, that no commit holds."""

    place: str
    """Where it is kept, or will be as soon as its batch is over."""
    topic_id: str | None
    """None when the ledger has never heard of the batch."""
    offsets: tuple[OffsetRange, ...] | None
    """What its application was told to read; None when nobody knows."""

    def may_hold(self, topic_id: str, offsets: OffsetRange) -> bool:
        """True when some of these offsets of this log may be among them."""
        return self.topic_id in (None, topic_id) and (
            self.offsets is None or any(each.intersection(offsets) for each in self.offsets)
        )


def places_for(kept: Iterable[KeptFiles], topic_id: str, offsets: OffsetRange) -> tuple[str, ...]:
    """Where files are kept that may hold some of these offsets of this log."""
    return tuple(each.place for each in kept if each.may_hold(topic_id, offsets))


class Fate(StrEnum):
    """What becomes of the staging directory of an attempt that can't commit any more."""

    DELETED = "deleted"
    KEPT = "kept"
    """Left where it is, and looked at again by the next sweep."""
    QUARANTINED = "quarantined"
    """Moved to quarantine: nobody will ever land these offsets again."""


@dataclass(frozen=True, slots=True)
class DeadFiles:
    """What is known of a dead attempt's staging directory."""

    holds_rows: bool
    """True when there is anything beside plan and manifest."""
    is_whole: bool
    """True when its application ended well, or a manifest lies there: it is written only after the
    files were proven."""
    epochs: Mapping[int, int | None]
    """By partition, the leader epochs just before it read; empty when nobody knows."""


def fate_of(
    files: DeadFiles,
    at_risk: Sequence[AtRisk],
    snapshot: BrokerSnapshot | None,
    *,
    is_over: bool,
    is_copied: Callable[[], bool],
) -> Fate:
    """What becomes of a dead attempt's files; `is_over` says that its batch lands nothing more.

    Without a snapshot the log is not taken for a copy. `is_copied` says that the committed files
    are there which hold the rest; it reads them, so it is asked only where its answer counts.
    """
    if not files.holds_rows:
        return Fate.DELETED
    if is_over and any(each.is_given_up(snapshot) for each in at_risk):
        return Fate.QUARANTINED
    # What is whole may be proven once the log has lost it; what the log has now may expire soon.
    is_in_log = all(each.is_in_log(snapshot, files.epochs) for each in at_risk)
    is_needed = bool(at_risk) and (files.is_whole or not is_in_log)
    return Fate.DELETED if not is_needed and is_copied() else Fate.KEPT


@dataclass(frozen=True, slots=True)
class ProvablePart:
    """What of a claimed range an attempt's files can prove."""

    planned: PlannedRange
    kept: OffsetRange | None
    """Landed and committed; None when the files prove nothing of the range."""

    @property
    def lost(self) -> tuple[OffsetRange, ...]:
        """The rest of the claim."""
        return tuple(subtract(self.planned.offsets, [self.kept] if self.kept else []))


def provable_parts(
    range_holes: Iterable[RangeHoles],
    unexplained: Iterable[OffsetRuns],
    log_starts: Mapping[int, int],
) -> tuple[ProvablePart, ...] | None:
    """By range, what is left when the ends without a proof are taken away; None when the files
    can't be committed.

    An end that nobody can prove is given up only below the log start (by partition, excluded): from
    there on an offset can be read again. One range of a partition is committed, so an unproven
    offset between rows stands in the way of all.
    """
    parts = []
    for each, rest in zip(range_holes, unexplained, strict=True):
        offsets = each.planned.offsets
        proven = OffsetRuns.of([(offsets.from_offset, offsets.until_offset)]).difference(rest)
        runs = list(proven)
        if len(runs) > 1:
            return None
        kept = offset_range(offsets.partition, *runs[0]) if runs else None
        part = ProvablePart(each.planned, kept)
        start = log_starts.get(offsets.partition.partition, 0)
        if any(lost.until_offset > start for lost in part.lost):
            return None
        parts.append(part)
    return tuple(parts)
