"""What is left of a repair after its batches: its steps in storage, and the findings that end.

The ledger is read again, so whoever repeats it after a crash ends where the first would have.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from tallystick.domain.identities import Owner
from tallystick.domain.repair.ended import LedgerNow, ended_by_repair
from tallystick.domain.repair.plan import StorageSteps
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.domain.rules.c3_rows_differ import C3
from tallystick.errors import IngestionError
from tallystick.workflows.committing.publishing import finish
from tallystick.workflows.comparing.second_reading import compare_newest
from tallystick.workflows.landing.checking import failure
from tallystick.workflows.landing.run import noted
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.place import at
from tallystick.workflows.repairing.gathering import chosen_findings
from tallystick.workflows.repairing.storage_steps import steps_done
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Closed:
    """What was done after a repair's batches."""

    quarantined: Sequence[Quarantine]
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    failures: Sequence[IngestionError]
    """Why strays lie where they were, and manifests are still gone."""


def settle(
    services: Services, finding_ids: Collection[int], steps: StorageSteps, owner: Owner
) -> Closed:
    """All that follows a repair's batches: publish, compare, sweep, and close what has ended.

    A step that can't be done holds up none of the others: its trouble is in the answer.
    """
    failures: list[IngestionError] = []
    with noted(failures):
        finish(services, owner)
    with noted(failures):
        _require_other_rows(services, finding_ids)
    with noted(failures):
        sweep(services)
    done = close_mended(services, finding_ids, steps, owner)
    return replace(done, failures=(*failures, *done.failures))


def _require_other_rows(services: Services, finding_ids: Collection[int]) -> None:
    """Compare what rows that differ were landed again as; raises CheckFailed where it differs too.

    The finding about the new batch is on record then.
    """
    chosen = chosen_findings(services, services.ledger, finding_ids)
    if any(each.finding.rule == C3 for each in chosen):
        found = compare_newest(services).findings
        failed = failure(services.feed_name, found, services.ledger.findings(services.feed_name))
        if failed:
            raise failed


def close_mended(
    services: Services, finding_ids: Collection[int], steps: StorageSteps, owner: Owner
) -> Closed:
    """Perform the plan's steps in storage, and close the findings whose trouble has ended.

    A step that can't be done holds up nothing else: its trouble is in the answer. No stray is moved
    while the ledger is behind.
    """
    with at(services, "repair"):
        chosen = {
            each.finding_id: each.finding
            for each in chosen_findings(services, services.ledger, finding_ids)
        }
        done = steps_done(services, steps, chosen, owner, are_named=bool(finding_ids))
        closed = {**done.closed, **ended_by_repair(chosen, ledger_now(services))}
        services.ledger.close_findings(services.feed_name, closed, run=owner)
    for number, reason in sorted(closed.items()):
        log.info("Finding %d is closed: %s", number, reason)
    return Closed(done.quarantined, closed, done.failures)


def ledger_now(services: Services) -> LedgerNow:
    """What it has committed, replaced, lost, and on record."""
    ledger, feed = services.ledger, services.feed_name
    return LedgerNow(
        accounts=ledger.accounts(feed),
        replaced=ledger.replacements(feed),
        lost=ledger.lost(feed),
        standing={each.finding_id: each.finding for each in ledger.findings(feed)},
    )
