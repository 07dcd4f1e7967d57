"""What is done about batches and directories that are not finished.

1. A manifest that is gone is written anew: what it says, the ledger has.
2. A batch that nobody holds is adopted. Those of earlier repairs are adopted by every repair.
3. What the log has not any more as it was claimed is left to the next run: its plan says why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.identities import BatchId
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.n3_unfinished_batch import FAILING, NO_MANIFEST
from tallystick.domain.rules.stored_finding import StoredFinding

NOT_WRITTEN: Final = "no manifest was written: its directory is gone, or an error says why."


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """A published directory's manifest that is gone: the ledger has its text."""

    path: str
    finding_id: int


@dataclass(frozen=True, slots=True)
class Adopt:
    """A batch that somebody left behind, and its finding N3."""

    batch_id: BatchId
    finding_id: int


def finish(stored: StoredFinding, facts: RepairFacts) -> WriteManifest | Adopt | NotMended:
    """The step that ends a finding N3."""
    number, found = stored.finding_id, stored.finding
    if found.name == NO_MANIFEST:
        return WriteManifest(found.subject, number)
    batch_id = batch_in(found.evidence)
    if batch_id is None or found.name == FAILING:
        return NotMended(number, found.next_step)
    for status in facts.accounts.unfinished:
        if status.plan.batch_id == batch_id and batch_id not in facts.adoptable:
            return NotMended(number, where_it_stands(status))
    return Adopt(batch_id, number)


def where_it_stands(status: BatchStatus) -> str:
    """Where a batch that is not over stands, and who has it."""
    if status.is_held:
        holder = f", held by {status.holder} for {status.lease_seconds_left:.0f} s more"
    else:
        holder = ", and nobody holds it: the next run takes it up"
    return f"Batch {status.plan.batch_id} is {status.state.value} still{holder}."


def adopted(
    named: Collection[Adopt], facts: RepairFacts, *, most_batches: int
) -> tuple[BatchId, ...]:
    """The batches that the repair takes over: with a finding N3, all that may be."""
    repairs = facts.accounts.open_repairs
    free = [each for each in facts.adoptable if named or each in repairs]
    return tuple(free[: max(0, most_batches)])
