"""A8, committed file missing, where its rows may lie elsewhere: then nobody can say that they are
lost.

They may be in a batch that the ledger does not know: a repair has landed them again, or a run whose
commit is forgotten. Or in a stray file; or where nobody could ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.states import Verdict
from tallystick.domain.batches.stray_file import StrayFile, generation_in
from tallystick.domain.finding_codes import Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.evidence import of_path_not_asked
from tallystick.domain.rules.findings import Finding


def perhaps_forgotten(found: Iterable[Finding], unknown: Iterable[BatchPlan]) -> list[Finding]:
    """The same findings; missing rows that a batch unknown to the ledger may hold are UNKNOWN."""
    plans = list(unknown)
    return [
        next((_forgotten(each, plan) for plan in plans if _may_hold(plan, each)), each)
        for each in found
    ]


def perhaps_in_strays(found: Iterable[Finding], strays: Iterable[StrayFile]) -> list[Finding]:
    """The same findings; missing rows that a stray holds, rewritten or in part, are UNKNOWN."""
    holding = [each for each in strays if each.sole]
    return [
        next((_perhaps_in(each, stray) for stray in holding if _is_in(stray, each)), each)
        for each in found
    ]


def perhaps_unasked(found: Iterable[Finding], unasked: Iterable[str]) -> list[Finding]:
    """The same findings; missing rows are UNKNOWN while a path could not be asked where they may
    lie: one of their generation, or of none.
    """
    places = [(path, generation_in(path)) for path in unasked]
    return [
        next((_unasked(each, path) for path, ordinal in places if _may_lie(ordinal, each)), each)
        for each in found
    ]


def not_yet_asked(found: Iterable[Finding], path: str) -> list[Finding]:
    """The same findings of who has not looked in this path; missing rows may lie there."""
    return [
        _in_doubt(
            each,
            f"They may lie elsewhere in {path}; this look did not go there.",
            f"Look there: ./tallystick reconcile {each.feed}",
            of_path_not_asked(path),
        )
        if _may_lie(None, each)
        else each
        for each in found
    ]


def _may_lie(ordinal: int | None, found: Finding) -> bool:
    is_lost = found.rule == A8 and found.verdict is Verdict.PROVEN_LOSS
    return is_lost and found.level is Level.L2 and ordinal in (None, found.generation)


def _unasked(found: Finding, path: str) -> Finding:
    return _in_doubt(
        found,
        f"Nobody could look for them in {path}: they may be there.",
        f"Let our user read it; then look again: ./tallystick reconcile {found.feed}",
        of_path_not_asked(path),
    )


def _may_hold(plan: BatchPlan, found: Finding) -> bool:
    if found.rule != A8 or plan.ordinal != found.generation:
        return False
    from_offset, until_offset = found.from_offset, found.until_offset
    return any(
        each.offsets.partition.partition == found.partition
        and (from_offset is None or from_offset < each.offsets.until_offset)
        and (until_offset is None or until_offset > each.offsets.from_offset)
        for each in plan.ranges
    )


def _forgotten(found: Finding, plan: BatchPlan) -> Finding:
    return _in_doubt(
        found,
        f"Batch {plan.batch_id}, unknown to the ledger, may hold them.",
        f"Let the ledger catch up first: ./tallystick ledger rebuild {found.feed}",
        {"perhaps_in": plan.batch_id},
    )


def _is_in(stray: StrayFile, found: Finding) -> bool:
    is_lost = found.rule == A8 and found.verdict is Verdict.PROVEN_LOSS
    if not is_lost or found.generation is None or found.partition is None:
        return False
    if found.from_offset is None or found.until_offset is None:
        return False
    missing = OffsetRuns.of([(found.from_offset, found.until_offset)])
    return stray.may_hold(found.generation, {found.partition: missing})


def _perhaps_in(found: Finding, stray: StrayFile) -> Finding:
    return _in_doubt(
        found,
        f"The stray file {stray.path} holds some of these offsets (A9).",
        f"Look at the stray first. {found.next_step}",
        {"perhaps_at": stray.path},
    )


def _in_doubt(found: Finding, why: str, next_step: str, evidence: dict[str, object]) -> Finding:
    """The same, of rows that may lie elsewhere."""
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} {why}",
        next_step=next_step,
        evidence={**found.evidence, **evidence},
    )
