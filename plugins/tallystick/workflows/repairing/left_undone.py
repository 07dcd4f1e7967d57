"""What a repair set out to do and has not done: asked of the ledger, not of the repair."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import BatchId
from tallystick.domain.repair.ended import losses_of
from tallystick.domain.repair.facts import NotMended
from tallystick.domain.repair.finishing import where_it_stands
from tallystick.domain.repair.plan import RepairPlan
from tallystick.workflows.landing.run import BatchOutcome
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def left_undone(
    services: Services,
    plan: RepairPlan,
    batches: Sequence[BatchPlan],
    outcomes: Sequence[BatchOutcome],
) -> Iterator[NotMended]:
    """The findings about rows that could not be landed again, about files that are not replaced,
    and about batches that are unfinished still.
    """
    standing = {
        each.finding_id: each.finding for each in services.ledger.findings(services.feed_name)
    }
    for batch in batches:
        for number, found in losses_of(batch.batch_id, standing):
            log.warning("Finding %d is left: %s", number, found)
            yield NotMended(number, str(found))
    replaced = services.ledger.replacements(services.feed_name)
    taken = [each.left_to for each in outcomes if each.left_to]
    why = " ".join(taken) or "an error says why, or another run has ended its batch."
    for again in plan.land_again:
        if not all(each in replaced for each in again.replaces):
            for number in sorted(set(again.finding_ids)):
                yield NotMended(number, f"its offsets were not landed again: {why}")
    for each in plan.adopt:
        for words in still_unfinished(services, [each.batch_id]):
            yield NotMended(each.finding_id, words)


def still_unfinished(services: Services, batch_ids: Iterable[BatchId]) -> Iterator[str]:
    """Of each batch that is not over, where it stands, and who has it."""
    for batch_id in batch_ids:
        status = services.ledger.batch(batch_id)
        if not status.state.is_over:
            yield where_it_stands(status)
