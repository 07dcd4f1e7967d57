"""A repair's plan in plain words, for the task's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tallystick.domain.repair.plan import RepairPlan

log = logging.getLogger(__name__)


def tell(feed: str, plan: RepairPlan) -> None:
    """The plan in plain words, for the task's log."""
    for again in plan.land_again:
        log.info(
            "Feed %s: %s of batch %s: %s will be landed again for findings %s.",
            feed,
            ", ".join(each.name for each in again.replaces),
            again.old.batch_id,
            "; ".join(str(each.offsets) for each in again.ranges[:20]) or "nothing",
            sorted(set(again.finding_ids)),
        )
        if again.gone:
            log.warning(
                "Kafka no longer has %s, and the files are gone: these rows are lost.",
                "; ".join(str(each) for each in again.gone[:20]),
            )
    for words in _small_steps(plan):
        log.info("%s", words)
    for opened in plan.new_generations:
        log.warning(
            "%s: generation %d is opened at offset %d, on the operator's word.",
            opened.account.partition,
            opened.account.ordinal + 1,
            opened.first_offset,
        )
        if opened.expired:
            log.warning("%s has expired: the next plan records it as lost.", opened.expired)
    for left in plan.not_mended:
        log.warning("Finding %d is left: %s", left.finding_id, left.reason)


def _small_steps(plan: RepairPlan) -> Iterator[str]:
    """What is done to single files and offsets."""
    for stray in plan.quarantined:
        yield f"{stray.path} will be moved to {stray.quarantine}."
    for moved in plan.move_back:
        yield f"{moved.path} will be moved back to {moved.target}."
    for twice in plan.end_with_strays:
        yield f"Finding {twice.finding_id} ends with finding {twice.stray_id}."
    for gone in plan.write_manifests:
        yield f"{gone.path} will be written anew, for finding {gone.finding_id}."
    for each in plan.read_again:
        yield f"{each.planned.offsets} is tried again, for finding {each.finding_id}."
