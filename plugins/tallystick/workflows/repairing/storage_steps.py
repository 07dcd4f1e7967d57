"""What a repair does in storage beside its batches: strays are moved, lost manifests written anew.

Each step is decided before, and passes where it is done already: whoever repeats it after a crash
ends where the first would have. Nothing is done for a finding that has ended meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.paths import directory_of
from tallystick.domain.identities import Owner
from tallystick.domain.repair.plan import StorageSteps
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.domain.rules.a10_ledger_behind import A10
from tallystick.domain.rules.evidence import held_in, path_in
from tallystick.domain.rules.findings import Finding
from tallystick.errors import IngestionError
from tallystick.workflows.committing.publishing import publish, write_manifest_anew
from tallystick.workflows.committing.retiring import quarantine_stray
from tallystick.workflows.landing.run import noted
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.settling.settle import Settled, give_up, settle_attempts
from tallystick.workflows.stored.published_batches import why_behind
from tallystick.workflows.stored.stray_rows import stray_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepsDone:
    """What was done in storage."""

    quarantined: Sequence[Quarantine]
    """Each with the place where it is kept."""
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    failures: Sequence[IngestionError]


def steps_done(
    services: Services,
    steps: StorageSteps,
    standing: Mapping[int, Finding],
    owner: Owner,
    *,
    are_named: bool,
) -> StepsDone:
    """Perform the steps whose findings still stand. One that fails holds up no other kind."""
    failures: list[IngestionError] = []
    there = [each for each in steps.quarantined if each.finding_id in standing]
    held = [each for each in there if held_in(standing[each.finding_id].evidence)]
    strays = [each for each in there if each not in held]
    given_up = list(_given_up(services, held, failures, owner)) if held else []
    moved = list(_strays_moved(services, strays, standing, failures, are_named=are_named))
    places = {each.path: each.quarantine for each in moved}
    closed = {
        number: f"{path} was moved to {places[path]}."
        for number, found in standing.items()
        if (stray := path_in(found.evidence))
        for path in (stray, directory_of(stray))
        if path in places
    }
    closed |= {
        each.finding_id: f"{each.path} is kept in {each.quarantine}; the next run tells the loss."
        for each in given_up
    }
    for lost in steps.write_manifests:
        with noted(failures), at(services, "repair"):
            if lost.finding_id in standing and write_manifest_anew(services, lost.path):
                closed[lost.finding_id] = f"{lost.path} is there again, as the ledger has it."
    return StepsDone([*moved, *given_up], closed, failures)


def _given_up(
    services: Services,
    held: Sequence[Quarantine],
    failures: list[IngestionError],
    owner: Owner,
) -> Iterator[Quarantine]:
    """Settle, as a run does, and give up what no run can settle, on an operator's word.

    What that held up, or living attempts do, is settled by the next run.
    """
    settled = Settled()
    with noted(failures):
        settled = settle_attempts(services, owner)
        for batch in settled.committed:
            publish(services, batch.batch_id, owner)
    for each in held:
        if each.path in settled.given_up:
            yield each
        elif each.path in settled.stuck:
            with noted(failures), at(services, "repair"):
                if give_up(services, each.path, each.quarantine, owner):
                    yield each


def _strays_moved(
    services: Services,
    strays: Sequence[Quarantine],
    standing: Mapping[int, Finding],
    failures: list[IngestionError],
    *,
    are_named: bool,
) -> Iterator[Quarantine]:
    """Stops at the first retryable error: it would hit the next stray too.

    What was safe to move when it was decided is looked at again: batches were landed since.
    """
    # A bare directory is what the ledger is behind for, and it was named.
    bare = [each for each in strays if standing[each.finding_id].rule == A10]
    may_move = len(bare) == len(strays) or _may_move(services, failures)
    for each in strays if may_move else bare:
        with noted(failures), at(services, "repair"):
            if not are_named and stray_at(services, each.path).may_be_only_copy:
                log.warning("%s may be the only copy of its rows: it stays.", each.path)
                continue
            place = quarantine_stray(services, each)
            if place:
                yield Quarantine(each.path, place, each.finding_id)
        if any(error.retry for error in failures):
            return


def _may_move(services: Services, failures: list[IngestionError]) -> bool:
    """False while the ledger is behind, or nobody can tell: a stray may be a forgotten batch's."""
    may_move = False
    with noted(failures), at(services, "repair"):
        behind = why_behind(services)
        may_move = behind is None
        if behind:
            log.warning("No stray is moved: %s", behind)
    return may_move
