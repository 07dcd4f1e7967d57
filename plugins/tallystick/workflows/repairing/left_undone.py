"""What a repair set out to do and has not done: asked of the ledger, not of the repair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.identities import BatchId
from tallystick.domain.repair.plan import NotMended, RepairPlan
from tallystick.workflows.landing.run import BatchOutcome
from tallystick.workflows.services import Services


def left_undone(
    services: Services, plan: RepairPlan, outcomes: Sequence[BatchOutcome]
) -> Iterator[NotMended]:
    """The findings whose files are not replaced, and those whose batches are unfinished still."""
    replaced = services.ledger.replacements(services.feed_name)
    taken = [each.left_to for each in outcomes if each.left_to]
    why = " ".join(taken) or "an error says why, or another run has ended its batch."
    for again in plan.land_again:
        if not all(each in replaced for each in again.replaces):
            for number in sorted(set(again.finding_ids)):
                yield NotMended(number, f"its offsets were not landed again: {why}")
    for number in plan.finish:
        stored = services.ledger.finding(number)
        batch_id = stored.finding.evidence.get("batch") if stored else None
        if batch_id:
            for words in still_unfinished(services, [BatchId(str(batch_id))]):
                yield NotMended(number, words)


def still_unfinished(services: Services, batch_ids: Iterable[BatchId]) -> Iterator[str]:
    """Of each batch that is not over, where it stands, and who has it."""
    for batch_id in batch_ids:
        status = services.ledger.batch(batch_id)
        if status.state.is_unfinished:
            yield f"Batch {batch_id} is {status.state.value} still{_holder(status)}."


def _holder(status: BatchStatus) -> str:
    if status.holder is None or status.lease_seconds_left <= 0:
        return ", and nobody holds it: the next run takes it up"
    return f", held by {status.holder} for {status.lease_seconds_left:.0f} s more"
