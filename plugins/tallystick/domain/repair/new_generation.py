"""Whether a new generation of a log that was cut is opened, and from where.

1. Only on an operator's word: rows may be landed twice in two generations.
2. Never from beyond the frontier: what has expired since would be named nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, offset_range
from tallystick.domain.repair.facts import NotMended, NumberedFinding, RepairFacts
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


def new_generation(numbered: NumberedFinding, facts: RepairFacts) -> NewGeneration | NotMended:
    """The generation that ends the finding; or why it is not opened."""
    number, found = numbered.finding_id, numbered.finding
    partition = -1 if found.partition is None else found.partition
    account = facts.accounts.generations.get(partition)
    bounds = facts.snapshot.partitions.get(partition)
    if found.verdict is not Verdict.PROVEN_LOSS:
        return NotMended(number, found.next_step)
    if account is None or account.ordinal != found.generation:
        return NotMended(number, "this generation is closed already.")
    if account.state is not GenerationState.STOPPED:
        reason = "this partition has not stopped; the next run looks at it again."
        return NotMended(number, reason)
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
