"""What is left of a repair after its batches: strays are moved, lost manifests are written anew,
findings end.

It reads everything again, so whoever repeats it after a crash ends where the first would have.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.states import FindingState
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.repair.deciding import directory_of, stray_of
from tallystick.domain.repair.plan import NumberedFinding, PutAside
from tallystick.domain.rules.a8_committed_file_missing import OF_LOST
from tallystick.domain.rules.a11_unreadable_record import standing_unreadable
from tallystick.domain.rules.cut_log import ended_by_reopening
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.storage_rules import is_bare
from tallystick.errors import IngestionError
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import Ledger
from tallystick.workflows.committing.publishing import write_manifest_anew
from tallystick.workflows.committing.retiring import put_aside
from tallystick.workflows.landing.run import noted
from tallystick.workflows.place import at
from tallystick.workflows.repairing.moving_back import moved_back
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import why_behind
from tallystick.workflows.stored.stray_rows import stray_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settled:
    """What was done after a repair's batches."""

    put_aside: Sequence[PutAside]
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    troubles: Sequence[IngestionError]
    """Why strays lie where they were, and manifests are still gone."""


def settle(services: Services, finding_ids: Collection[int]) -> Settled:
    """Move strays aside, write lost manifests anew, and close the findings whose trouble has ended.

    A stray that can't be moved holds up nothing else: its trouble is in the answer. None is moved
    while the ledger is behind.
    """
    with at(services, "repair"):
        standing = chosen_findings(services, services.ledger, finding_ids)
        troubles: list[IngestionError] = []
        moved = list(_moved(services, standing, troubles, are_named=bool(finding_ids)))
        places = {each.path: each.quarantine for each in moved}
        closed = {
            each.finding_id: f"{path} was moved to {places[path]}."
            for each in standing
            for path in _with_directory(str(each.finding.evidence.get("path")))
            if path in places
        }
        if finding_ids:
            closed |= moved_back(services, standing, troubles)
        closed |= _manifests_written(services, standing, troubles)
        closed |= _landed_again(services, standing)
        closed |= _reopened(services, standing)
        closed |= _read_at_last(services, standing)
        services.ledger.close_findings(services.feed_name, closed)
    for number, reason in sorted(closed.items()):
        log.info("Finding %d is closed: %s", number, reason)
    return Settled(moved, closed, troubles)


def _with_directory(path: str) -> tuple[str, str]:
    return path, directory_of(path)


def _moved(
    services: Services,
    standing: Sequence[StoredFinding],
    troubles: list[IngestionError],
    *,
    are_named: bool,
) -> Iterator[PutAside]:
    """The strays that were moved; one that may be moved later ends it, for it would meet others.

    One that may be the only copy of its rows is moved only when it was named; so is a directory
    without a manifest, which the ledger is behind for.
    """
    strays = [each for each in standing if each.finding.code is FindingCode.STRAY_FILE]
    if strays and not _may_move(services, troubles):
        strays = []
    if are_named:
        strays += [each for each in standing if is_bare(each.finding)]
    roots = roots_of(services, services.ledger)
    for each in strays:
        stray = stray_of(NumberedFinding(each.finding_id, each.finding), roots)
        if not isinstance(stray, PutAside):
            continue
        with noted(troubles), at(services, "repair"):
            if not are_named and stray_at(services, stray.path).may_be_only_copy:
                log.warning("%s may be the only copy of its rows: it stays.", stray.path)
                continue
            place = put_aside(services, stray)
            if place:
                yield PutAside(stray.path, place, stray.finding_id)
        if any(error.retry for error in troubles):
            return


def _manifests_written(
    services: Services, standing: Sequence[StoredFinding], troubles: list[IngestionError]
) -> dict[int, str]:
    closed = {}
    for each in standing:
        path = each.finding.evidence.get("manifest")
        if each.finding.code is FindingCode.UNFINISHED_BATCH and isinstance(path, str):
            with noted(troubles), at(services, "repair"):
                if write_manifest_anew(services, path):
                    closed[each.finding_id] = f"{path} is there again, as the ledger has it."
    return closed


def _may_move(services: Services, troubles: list[IngestionError]) -> bool:
    """False while the ledger is behind, or nobody can tell: a stray may be a forgotten batch's."""
    may_move = False
    with noted(troubles):
        behind = why_behind(services)
        may_move = behind is None
        if behind:
            log.warning("No stray is moved: %s", behind)
    return may_move


def chosen_findings(
    services: Services, ledger: Ledger, finding_ids: Collection[int]
) -> list[StoredFinding]:
    """The standing findings that were named; all open ones when none was."""
    standing = ledger.findings(services.feed_name)
    if not finding_ids:
        return [each for each in standing if each.state is FindingState.OPEN]
    return [each for each in standing if each.finding_id in set(finding_ids)]


def roots_of(services: Services, ledger: Ledger) -> set[str]:
    """The directories below which the feed lands, or has landed."""
    return {services.root, *ledger.roots(services.feed_name)}


def recorded_losses(services: Services) -> list[StoredFinding]:
    """The standing findings about rows that repairs could not land again."""
    standing = services.ledger.findings(services.feed_name)
    return [each for each in standing if each.finding.subject == OF_LOST]


def _landed_again(services: Services, standing: Sequence[StoredFinding]) -> dict[int, str]:
    replaced = services.ledger.replacements(services.feed_name)
    losses = recorded_losses(services)
    closed = {}
    for each in standing:
        batch, name = (each.finding.evidence.get(key) for key in ("batch", "file"))
        repair = replaced.get(CommittedFile(BatchId(str(batch)), str(name)))
        if repair is not None:
            lost = [
                str(loss.finding_id)
                for loss in losses
                if loss.finding.evidence.get("repair") == repair
                and loss.finding.partition == each.finding.partition
            ]
            rest = f" What it could not land again is finding {', '.join(lost)}." if lost else ""
            closed[each.finding_id] = f"Batch {repair} took the place of {name}.{rest}"
    return closed


def _read_at_last(services: Services, standing: Sequence[StoredFinding]) -> dict[int, str]:
    """Unreadable records that are landed now."""
    numbers = {
        each.finding_id: each.finding
        for each in standing
        if each.finding.code is FindingCode.UNREADABLE_RECORD
    }
    if not numbers:
        return {}
    accounts = services.ledger.accounts(services.feed_name)
    lost = {
        (account.ordinal, offsets)
        for account, offsets, _ in services.ledger.lost(services.feed_name)
    }
    left = standing_unreadable(accounts.generations, list(numbers.values()), accounts.claimed)
    still = {each.key for each in left}
    return {
        number: f"Offset {each.from_offset} was read at last, and is landed."
        for number, each in numbers.items()
        if each.key not in still and not _is_lost(each, lost)
    }


def _is_lost(found: Finding, lost: Collection[tuple[int, OffsetRange]]) -> bool:
    return any(
        ordinal == found.generation
        and offsets.partition.partition == found.partition
        and offsets.from_offset <= (found.from_offset or 0) < offsets.until_offset
        for ordinal, offsets in lost
    )


def _reopened(services: Services, standing: Sequence[StoredFinding]) -> dict[int, str]:
    generations = services.ledger.accounts(services.feed_name).generations
    ended = {
        each.finding_id: ended_by_reopening(each.finding, generations.get(_partition(each)))
        for each in standing
    }
    return {number: reason for number, reason in ended.items() if reason}


def _partition(stored: StoredFinding) -> int:
    return -1 if stored.finding.partition is None else stored.finding.partition
