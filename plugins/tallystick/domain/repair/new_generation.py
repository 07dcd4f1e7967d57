"""Whether a new generation of a log that was cut is opened, and from where.

1. Only on an operator's word: rows may be landed twice in two generations.
2. Never from beyond the frontier: what has expired since would be named nowhere, and what was not
   landed behind a gap is due, wherever the cut is.
3. The leader's epochs tell where the cut is, as `logs.sameness` explains. That the last landed
   record is in the log counts only where the log holds it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import EpochEnd
from tallystick.domain.offsets.ranges import OffsetRange, offset_range
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class NewGeneration:
    """A log that was cut, and from where it is landed anew."""

    account: GenerationAccount
    first_offset: int
    log_start_offset: int
    finding_id: int

    @property
    def expired(self) -> OffsetRange | None:
        """What was deleted while the partition was stopped; the next plan records it as lost."""
        return offset_range(self.account.partition, self.first_offset, self.log_start_offset)


def new_generation(stored: StoredFinding, facts: RepairFacts) -> NewGeneration | NotMended:
    """The generation that ends the finding; or why it is not opened."""
    number, found = stored.finding_id, stored.finding
    account = found.account_in(facts.accounts.generations)
    if found.verdict is not Verdict.PROVEN_LOSS:
        return NotMended(number, found.next_step)
    if account is None or account.ordinal != found.generation:
        return NotMended(number, "this generation is closed already.")
    if account.state is not GenerationState.STOPPED:
        reason = "this partition has not stopped; the next run looks at it again."
        return NotMended(number, reason)
    partition = account.partition.partition
    bounds = facts.snapshot.partitions.get(partition)
    if bounds is None:
        return NotMended(number, "the broker says nothing of it now; try again when it does.")
    if account.topic_id != facts.snapshot.topic_id:
        reason = "the topic was re-created since; the next run opens a generation."
        return NotMended(number, reason)
    if not facts.is_operators_word:
        return NotMended(
            number,
            "a new generation is opened on your word only, for rows may be landed twice in two"
            f" generations: tallystick repair {found.feed} {number}",
        )
    known = min(bounds.log_start_offset, account.frontier)
    cut = facts.cut_at.get(partition, known)
    # The finding names where the log was cut then: the broker may have forgotten it since.
    told = account.frontier if found.from_offset is None else found.from_offset
    first = min(cut, told, bounds.high_watermark)
    return NewGeneration(account, first, bounds.log_start_offset, number)


def epoch_to_ask(account: GenerationAccount) -> int | None:
    """The epoch of the last landed record; None where it is not known.

    The one in which the log was seen is of the time after the cut.
    """
    return account.anchor.leader_epoch if account.anchor else None


def claims_anchor(account: GenerationAccount, end: EpochEnd) -> bool:
    """True where the epochs say that the last landed record is in the log: then it can be read."""
    anchor = account.anchor
    return anchor is not None and end.until_offset > max(anchor.offset, end.log_start_offset)


def due_again_from(account: GenerationAccount, end: EpochEnd | None) -> int | None:
    """First offset of a stopped partition's log that is due again; None where nobody can say.

    `end` is where the log leaves `epoch_to_ask`; None where nobody could tell, or where the last
    landed record is another one than the epochs claim.
    """
    if _has_landed_nothing(account):
        return account.frontier
    if end is None or end.until_offset <= end.log_start_offset:
        return None
    return min(end.until_offset, account.frontier)


def _has_landed_nothing(account: GenerationAccount) -> bool:
    return account.read_until is None and account.anchor is None
