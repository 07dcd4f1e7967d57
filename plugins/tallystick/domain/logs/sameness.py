"""Is a log still the one that was seen? Asked by every plan, landing, commit, repair and reconcile.

A log is cut at a change of leaders only, and its epochs end earlier then (KIP-101). So the ledger
keeps a *witness* of each log: how far it was seen to reach, and in which leader epoch. As long as
that epoch, or an older one, ends no earlier, nothing of it was cut. The second witness is the last
landed record itself. One that says no is believed; one that says yes is enough.

1. A witness is handed over, never replaced: a newer one counts only where the older one was asked
   in the same look, and held.
2. What no witness can judge is UNKNOWN. It is never the same by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import EpochEnd, PartitionBounds, RecordEvidence


class Sameness(StrEnum):
    """What the witnesses of a log say."""

    SAME = "same"
    """All that was seen of it is there as it was, or has expired since."""
    CUT = "cut"
    UNKNOWN = "unknown"
    """The broker has forgotten the epoch, and the last landed record is gone."""


@dataclass(frozen=True, slots=True)
class LogCheck:
    """One log, held against what was seen of it."""

    sameness: Sameness
    cut_at: int | None = None
    """First offset that is not as it was (included); None where only a record says that one is."""
    is_overwritten: bool = False
    """True when landed offsets are among those that are not as they were."""

    @property
    def is_told_by_record_alone(self) -> bool:
        """True when the anchor's record is another one, and no epoch says that the log was cut."""
        return self.sameness is Sameness.CUT and self.cut_at is None

    def holds_below(self, until_offset: int) -> bool:
        """True when all that was seen below this offset (excluded) is there as it was."""
        if self.sameness is Sameness.CUT:
            return self.cut_at is not None and self.cut_at >= until_offset
        return self.sameness is Sameness.SAME

    def words(self, since: str) -> str:
        """What became of a log that is not the same, for a sentence; `since` says when."""
        if self.sameness is Sameness.UNKNOWN:
            return (
                f"nobody can tell if the log was cut {since}: the broker has forgotten the leader"
                " epoch in which it was seen"
            )
        return f"the log was cut {since}" + ("" if self.cut_at is None else f", at {self.cut_at}")


SAME: Final = LogCheck(Sameness.SAME)
UNKNOWN: Final = LogCheck(Sameness.UNKNOWN)


def needs_epoch_end(account: GenerationAccount, bounds: PartitionBounds) -> bool:
    """True unless the snapshot tells by itself: the same leadership term, and no shorter log."""
    if account.seen_epoch is None:
        return False
    is_same_term = bounds.leader_epoch == account.seen_epoch
    return not is_same_term or bounds.high_watermark < account.last_seen_until


def check_log(
    account: GenerationAccount,
    bounds: PartitionBounds,
    epoch_end: EpochEnd | None,
    record: RecordEvidence | None,
) -> LogCheck:
    """What the witnesses say of an open generation's log.

    `epoch_end` is where the leader's log leaves the witness's epoch, `record` the one at the
    anchor's offset now; None where the broker has none, or was not asked.
    """
    seen_until = account.last_seen_until
    said = _said_by_epochs(account, bounds, epoch_end)
    cut_at = epoch_end.until_offset if epoch_end and said is Sameness.CUT else None
    has_cut_landed = cut_at is not None and cut_at < (account.read_until or 0)
    if record and account.anchor and record.content_hash != account.anchor.content_hash:
        return LogCheck(Sameness.CUT, cut_at, is_overwritten=True)
    if said is Sameness.CUT:
        return LogCheck(Sameness.CUT, cut_at, is_overwritten=has_cut_landed)
    if said is Sameness.SAME or (record and bounds.high_watermark >= seen_until):
        return SAME
    if bounds.log_start_offset == bounds.high_watermark == seen_until:
        # An idle log: it ends where it was seen to end, and all of it has expired.
        return SAME
    return UNKNOWN


def _said_by_epochs(
    account: GenerationAccount, bounds: PartitionBounds, epoch_end: EpochEnd | None
) -> Sameness:
    if account.last_seen_until == account.first_offset and account.read_until is None:
        return Sameness.SAME  # nothing of it was ever seen
    if account.seen_epoch is None:
        return Sameness.UNKNOWN
    if not needs_epoch_end(account, bounds):
        return Sameness.SAME
    if epoch_end is None:
        return Sameness.UNKNOWN
    if epoch_end.until_offset < account.last_seen_until:
        return Sameness.CUT
    if epoch_end.until_offset <= epoch_end.log_start_offset:
        # Forgotten with its records: the answer is the start of the oldest epoch that is left.
        return Sameness.UNKNOWN
    return Sameness.SAME
