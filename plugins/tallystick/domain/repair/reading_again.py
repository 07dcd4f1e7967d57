"""If an offset that Spark could not read is tried again. Decides; performs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.rules.stored_finding import StoredFinding

NOT_READ: Final = "it was not read this time either, or its batch waits still."


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """An offset that Spark could not read, and that a person has asked for again."""

    account: GenerationAccount
    planned: PlannedRange
    finding_id: int


def read_again(stored: StoredFinding, facts: RepairFacts) -> ReadAgain | NotMended:
    """A batch of its own for the offset, on an operator's word; or why it is left alone."""
    number, found = stored.finding_id, stored.finding
    account = found.account_in(facts.accounts.generations)
    if account is None or account.ordinal != found.generation:
        return NotMended(number, "the log that held it is closed.")
    partition = account.partition.partition
    bounds = facts.snapshot.partitions.get(partition)
    offsets = offset_range(account.partition, found.from_offset or 0, found.until_offset or 0)
    if not facts.is_operators_word:
        return NotMended(number, f"it is tried again when you name it: {found.next_step}")
    if account.state is not GenerationState.OPEN:
        return NotMended(number, "the log of this partition was cut: look at A3 first.")
    if account.topic_id != facts.snapshot.topic_id or bounds is None:
        return NotMended(number, "the partition can't be read now; the next run says why.")
    if offsets in facts.accounts.claimed:
        return NotMended(number, "a batch is trying it already; the next run goes on with it.")
    if offsets is None or offsets not in account.unreadable:
        return NotMended(number, "it was landed or given up since: nothing is asked for again.")
    if bounds.log_start_offset > offsets.from_offset:
        return NotMended(number, "the log has deleted it; the next run records it as lost.")
    return ReadAgain(account, PlannedRange(account.generation_id, offsets), number)
