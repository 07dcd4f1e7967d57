"""A8, committed file missing.

1. A committed file that is not in storage is named with its ranges.
2. No row is called lost while anything below the feed's roots is unexplained or unread: `in_doubt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ReadSlice
from tallystick.domain.rules.causes import GONE, its_file
from tallystick.domain.rules.evidence import kept_in, of_kept, of_path_not_asked
from tallystick.domain.rules.file_findings import (
    BatchRows,
    FileRows,
    places_of_file,
    see_if_kept,
)
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Loss, Mending, Rule, RuleClass, SubjectKind, Trait
from tallystick.domain.verdicts import Verdict


def _its_file_or_repair(found: Finding) -> str:
    given_up = LostRows.of(found)
    return f"rows given up by repair {given_up.repair}" if given_up else its_file(found)


A8: Final = Rule(
    code=FindingCode.COMMITTED_FILE_MISSING,
    kind=RuleClass.LOSS,
    compares="committed files against the listing; ranges that a repair has recorded as lost",
    endings={
        Level.L1: Ending.ACCEPTANCE,
        Level.L2: Ending.LISTING,
        SubjectKind.BATCH_ROWS: Ending.OFFSETS_READ,
        Level.L3: Ending.FULL_READ,
    },
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="a range of holes alone has no file; a batch on its way from staging",
    remedy="landed again while the broker has it; given up when named",
    one_cause=_its_file_or_repair,
    mending=Mending.LAND_AGAIN,
    traits={Trait.DOUBTS_ROWS},
    loss=lambda _: Loss(
        "the file with these rows is gone, and when a repair replaced it, the log no longer had"
        " them.",
        f"{GONE}. Tell who reads them.",
        OF_LOST,
    ),
)

OF_LOST: Final = "recorded as lost"
"""The subject of findings about landed rows that a repair could not land again: the same offsets
may be told of for their file, too."""

EXPLAIN: Final = (
    "Look at {path} first. Is it a missing file? Move it back (hdfs dfs -mv), or put what was"
    " written anew in its place. Something else? Name its own finding (A9), or let the ledger catch"
    " up (A10). Could nobody read it (U1)? Let our user read it. Is it in _quarantine, or"
    " hidden by its name, and of no use? Delete it."
)
"""Ends the doubt about what lies at a path."""

_LOOK: Final = "Look there, if our user may read it: tallystick reconcile {feed}."


@dataclass(frozen=True, slots=True)
class LostRows:
    """Evidence of rows that a repair could not land again, in place of the file that held them."""

    repair: BatchId
    kept: tuple[str, ...] = ()
    """Where files are kept that may hold them."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {"repair": self.repair, **of_kept(self.kept)}

    @classmethod
    def of(cls, found: Finding) -> LostRows | None:
        """What the finding carries; None for one about a file that is missing."""
        repair = found.evidence.get("repair")
        if found.rule != A8 or not isinstance(repair, str):
            return None
        return cls(BatchId(repair), kept_in(found.evidence))


def missing_file(plan: BatchPlan, file: LandedFile, path: str) -> Iterator[Finding]:
    """A committed file that is not where it was published, and nowhere else that was looked at."""
    for place in places_of_file(plan, file):
        yield finding(
            A8,
            place,
            cause=f"committed rows are not in storage: {path} is missing.",
            next_step=(
                "Perhaps somebody has moved it: look where it went, and move it back. Was it the"
                f" whole root? tallystick repair {plan.feed} --moved {plan.root} NEW. If it is"
                " gone, land its offsets again while the broker has them, by this finding's"
                f" number: tallystick repair {plan.feed} NUMBER"
            ),
        )


def in_doubt(
    found: Iterable[Finding], unexplained: Iterable[str], unread: Iterable[str]
) -> list[Finding]:
    """Give the same findings, those of missing files as UNKNOWN while their rows may lie elsewhere.

    `unexplained` are files below the feed's roots that may be the only copy of what they hold,
    `unread` the paths of which nobody could tell.
    """
    first, unlisted = min(unexplained, default=None), min(unread, default=None)
    path = first or unlisted
    if path is None:
        return list(found)
    evidence = {"unexplained": path} if first else of_path_not_asked(path)
    why = f"{path} is unexplained, and" if first else f"Nobody has looked in {path} now: it"
    return [
        replace(
            each,
            verdict=Verdict.UNKNOWN,
            cause=f"{each.cause} {why} may hold them.",
            next_step=" ".join(
                [
                    EXPLAIN.format(path=path) if first else _LOOK.format(feed=each.feed),
                    each.next_step,
                ]
            ),
            evidence={**each.evidence, **evidence},
        )
        if (each.rule, each.level, each.verdict) == (A8, Level.L2, Verdict.PROVEN_LOSS)
        else each
        for each in found
    ]


def missing_from_batch(rows: BatchRows, missing: OffsetRuns) -> Iterator[Finding]:
    """Committed offsets that no file of the batch has a row of."""
    cause = "the batch's files hold no row of these committed offsets."
    return rows.findings(A8, missing, cause)


def missing_from_file(rows: FileRows, read: ReadSlice) -> Iterator[Finding]:
    """Committed offsets that a full read of their file has found no row of."""
    return rows.findings(
        A8,
        read.missing,
        cause=f"committed rows are not in storage: {rows.path} has no row of these offsets.",
        next_step=see_if_kept(rows.plan.feed),
        now=read.fingerprint,
    )
