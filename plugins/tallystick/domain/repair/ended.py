"""Which findings a repair's batches and generations have ended: asked of the ledger alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.rules.a3_log_cut import ended_by_reopening
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.a11_unreadable_record import standing_unreadable
from tallystick.domain.rules.evidence import file_in
from tallystick.domain.rules.findings import Finding, FindingCode


@dataclass(frozen=True, slots=True)
class LedgerNow:
    """What the ledger says after a repair's batches."""

    accounts: Accounts
    replaced: Mapping[CommittedFile, BatchId]
    """By replaced file, the repair that took its place."""
    lost: Sequence[tuple[GenerationAccount, OffsetRange, str]]
    standing: Mapping[int, Finding]
    """All findings of the feed that stand, by number."""


def ended_by_repair(chosen: Mapping[int, Finding], now: LedgerNow) -> dict[int, str]:
    """The findings that have ended, each with what ended it."""
    return {
        number: reason
        for number, found in chosen.items()
        if (
            reason := _landed_again(found, now)
            or _reopened(found, now.accounts)
            or _read_at_last(found, now)
        )
    }


def losses_of(repair: BatchId, standing: Mapping[int, Finding]) -> Iterator[tuple[int, Finding]]:
    """The findings about rows that this repair could not land again."""
    for number, each in standing.items():
        lost = LostRows.of(each)
        if lost and lost.repair == repair:
            yield number, each


def _landed_again(found: Finding, now: LedgerNow) -> str | None:
    file = file_in(found.evidence)
    repair = now.replaced.get(file) if file else None
    if file is None or repair is None:
        return None
    losses = losses_of(repair, now.standing)
    lost = [str(number) for number, each in losses if each.partition == found.partition]
    rest = f" What it could not land again is finding {', '.join(lost)}." if lost else ""
    return f"Batch {repair} took the place of {file.name}.{rest}"


def _reopened(found: Finding, accounts: Accounts) -> str | None:
    partition = -1 if found.partition is None else found.partition
    return ended_by_reopening(found, accounts.generations.get(partition))


def _read_at_last(found: Finding, now: LedgerNow) -> str | None:
    """Of an unreadable record that is landed now: neither waiting still, nor lost."""
    accounts = now.accounts
    is_waiting = standing_unreadable(accounts.generations, [found], accounts.claimed)
    if found.code is not FindingCode.UNREADABLE_RECORD or is_waiting or _is_lost(found, now):
        return None
    return f"Offset {found.from_offset} was read at last, and is landed."


def _is_lost(found: Finding, now: LedgerNow) -> bool:
    return any(
        log.ordinal == found.generation
        and offsets.partition.partition == found.partition
        and (found.from_offset or 0) in offsets
        for log, offsets, _ in now.lost
    )
