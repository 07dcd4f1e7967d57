"""A8, committed file missing, where its rows may lie elsewhere: then nobody can say that they are
lost.

They may be in a batch that the ledger does not know: a repair has landed them again, or a run whose
commit is forgotten. Or in a stray file; or where nobody could ask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.stray_file import StrayFile, generation_in
from tallystick.domain.finding_codes import Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.evidence import of_path_not_asked
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the rows of a missing file may lie, and what is then said of them."""

    why: str
    next_step: Callable[[Finding], str]
    evidence: Mapping[str, object]
    generation: int | None = None
    """Of which rows may lie there, by its ordinal; None for all."""
    rows: Mapping[int, OffsetRuns] | None = None
    """What lies there, by partition; None where nobody knows."""

    def may_hold(self, found: Finding) -> bool:
        """True where rows of the missing file that the finding is about may lie here."""
        if found.rule != A8 or found.level is not Level.L2:
            return False
        if self.generation not in (None, found.generation):
            return False
        if self.rows is None:
            return True
        if found.partition is None or found.from_offset is None or found.until_offset is None:
            return False
        held = self.rows.get(found.partition, OffsetRuns())
        return bool(held.clipped(found.from_offset, found.until_offset))


def perhaps_forgotten(found: Iterable[Finding], unknown: Iterable[BatchPlan]) -> list[Finding]:
    """The same findings; missing rows that a batch unknown to the ledger may hold are UNKNOWN."""
    places = [
        _Place(
            f"Batch {plan.batch_id}, unknown to the ledger, may hold them.",
            lambda each: f"Let the ledger catch up first: tallystick ledger rebuild {each.feed}",
            {"perhaps_in": plan.batch_id},
            plan.ordinal,
            {
                each.offsets.partition.partition: OffsetRuns.of(
                    [(each.offsets.from_offset, each.offsets.until_offset)]
                )
                for each in plan.ranges
            },
        )
        for plan in unknown
    ]
    # The ledger comes first, also for what lies elsewhere.
    return _in_doubt(found, places, A8.verdicts)


def perhaps_in_strays(found: Iterable[Finding], strays: Iterable[StrayFile]) -> list[Finding]:
    """The same findings; missing rows that a stray holds, rewritten or in part, are UNKNOWN."""
    places = [
        _Place(
            f"The stray file {stray.path} holds some of these offsets (A9).",
            lambda each: f"Look at the stray first. {each.next_step}",
            {"perhaps_at": stray.path},
            stray.generation,
            stray.held,
        )
        for stray in strays
        if stray.sole
    ]
    return _in_doubt(found, places)


def perhaps_unasked(found: Iterable[Finding], unasked: Iterable[str]) -> list[Finding]:
    """The same findings; missing rows are UNKNOWN while a path could not be asked where they may
    lie: one of their generation, or of none.
    """
    places = [
        _Place(
            f"Nobody could look for them in {path}: they may be there.",
            lambda each: f"Let our user read it; then look again: tallystick reconcile {each.feed}",
            of_path_not_asked(path),
            generation_in(path),
        )
        for path in unasked
    ]
    return _in_doubt(found, places)


def not_yet_asked(found: Iterable[Finding], path: str) -> list[Finding]:
    """The same findings of who has not looked in this path; missing rows may lie there."""
    place = _Place(
        f"They may lie elsewhere in {path}; this look did not go there.",
        lambda each: f"Look there: tallystick reconcile {each.feed}",
        of_path_not_asked(path),
    )
    return _in_doubt(found, [place])


def _in_doubt(
    found: Iterable[Finding],
    places: Collection[_Place],
    verdicts: Collection[Verdict] = (Verdict.PROVEN_LOSS,),
) -> list[Finding]:
    """The same findings; UNKNOWN those of these verdicts whose rows may lie in one of the places,
    by the first such place.
    """
    doubted = []
    for each in found:
        is_asked = each.verdict in verdicts
        place = next((one for one in places if is_asked and one.may_hold(each)), None)
        doubted.append(_doubted(each, place) if place else each)
    return doubted


def _doubted(found: Finding, place: _Place) -> Finding:
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} {place.why}",
        next_step=place.next_step(found),
        evidence={**found.evidence, **place.evidence},
    )
