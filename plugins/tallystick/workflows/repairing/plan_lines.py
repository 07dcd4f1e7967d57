"""A repair's plan in plain words: for the log, the page and the command line."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.report.troubles import named_findings

log = logging.getLogger(__name__)

_MOST_RANGES = 20


def tell(feed: str, plan: RepairPlan) -> None:
    """The plan in plain words, for the task's log."""
    for level, words in plan_lines(plan):
        log.log(level, "Feed %s: %s", feed, words)


def plan_lines(plan: RepairPlan) -> Iterator[tuple[int, str]]:
    """Each step with the level at which it is logged; a line about nothing where there is none."""
    if plan == RepairPlan():
        yield logging.INFO, "There is nothing to mend."
    for again in plan.land_again:
        files = ", ".join(each.name for each in again.replaces)
        ranges = "; ".join(str(each.offsets) for each in again.ranges[:_MOST_RANGES])
        numbers = sorted(set(again.finding_ids))
        yield (
            logging.INFO,
            f"{files} of batch {again.old.batch_id}: {ranges or 'nothing'} will be landed again,"
            f" for {named_findings(numbers)}.",
        )
        if again.gone:
            gone = "; ".join(str(each) for each in again.gone[:_MOST_RANGES])
            yield (
                logging.WARNING,
                f"Kafka no longer has {gone}, and the files are gone: these rows are lost.",
            )
    yield from ((logging.INFO, words) for words in _small_steps(plan))
    for opened in plan.new_generations:
        yield (
            logging.WARNING,
            f"{opened.account.partition}: generation {opened.account.ordinal + 1} is opened at"
            f" offset {opened.first_offset}, on the operator's word.",
        )
        if opened.expired:
            yield (
                logging.WARNING,
                f"{opened.expired} has expired: the next look records it as lost.",
            )
    for left in plan.not_mended:
        yield logging.WARNING, f"Finding {left.finding_id} is left: {left.reason}"


def _small_steps(plan: RepairPlan) -> Iterator[str]:
    """What is done to single files, offsets and batches."""
    for stray in plan.quarantined:
        yield f"{stray.path} will be moved to {stray.quarantine}."
    for twice in plan.end_with_strays:
        yield f"Finding {twice.finding_id} ends with finding {twice.stray_id}."
    for gone in plan.write_manifests:
        yield f"{gone.path} will be written anew, for finding {gone.finding_id}."
    for each in plan.read_again:
        yield f"{each.planned.offsets} is tried again, for finding {each.finding_id}."
    for unfinished in plan.adopt:
        yield f"The batch of finding {unfinished.finding_id} is taken over, and finished."
