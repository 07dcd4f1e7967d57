"""C1, content changed.

A file whose bytes differ from the commit's is proven to be changed, and so is one that its bytes
prove to be damaged. Rows that differ in a file whose length and checksum do not prove one of the
two witnesses wrong, and nobody knows which: UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.file_findings import (
    BatchRows,
    FileRows,
    how_to_land_again,
    places_of_file,
    see_if_kept,
    sums_of,
)
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, SubjectKind, Trait
from tallystick.domain.verdicts import Verdict

C1: Final = Rule(
    code=FindingCode.CONTENT_CHANGED,
    kind=RuleClass.CORRUPTION,
    compares=(
        "length and checksum against those of the commit, or content fingerprint against that of"
        " the first full read"
    ),
    endings={
        Level.L2: Ending.LISTING,
        SubjectKind.BATCH_ROWS: Ending.OFFSETS_READ,
        Level.L3: Ending.FULL_READ,
    },
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="-",
    remedy="landed again while the broker has it",
    one_cause=its_file,
    mending=Mending.LAND_AGAIN,
    traits={Trait.DOUBTS_ROWS},
)


def changed_file(
    plan: BatchPlan, file: LandedFile, path: str, now: StoredFile
) -> Iterator[Finding]:
    """A committed file that has another length, or another checksum as far as it could be asked."""
    if now.length_bytes != file.length_bytes:
        cause = f"{path} has {now.length_bytes} bytes, {file.length_bytes} were committed."
    elif now.trouble is None and now.checksum != file.checksum:
        cause = f"{path} has checksum {now.checksum}, {file.checksum} was committed."
    else:
        return
    for place in places_of_file(plan, file):
        yield finding(
            C1,
            place,
            cause=cause,
            next_step=how_to_land_again(plan.feed),
            evidence=now.as_evidence(),
        )


def uncommitted_in_batch(rows: BatchRows, more: OffsetRuns) -> Iterator[Finding]:
    """Rows in a batch's files whose offsets are none that it has committed."""
    cause = "the batch's files hold rows of offsets that it has not committed."
    return rows.findings(C1, more, cause)


def damaged_file(rows: FileRows, reason: str, now: StoredFile) -> Finding:
    """A committed file that nobody can read any more."""
    return finding(
        C1,
        rows.place,
        cause=f"{rows.path} can't be read any more: {reason}.",
        next_step=see_if_kept(rows.plan.feed),
        # Not the reason: whoever reads the same bytes may stumble over another page.
        evidence=now.as_evidence(),
    )


def changed_rows(
    rows: FileRows, known: Fingerprint, found: Fingerprint, now: StoredFile
) -> Finding:
    """Rows that are not what the first full read of their file has found."""
    feed, is_as_committed = rows.plan.feed, now.is_as_committed(rows.file)
    cause = f"the rows in {rows.path} are not what its first full read found:"
    cause += f" {'; '.join(known.differences(found))}."
    if is_as_committed:
        cause += " But its length and checksum are those of its commit: one of the two is wrong."
    return finding(
        C1,
        rows.place,
        Verdict.UNKNOWN if is_as_committed else Verdict.PROVEN_LOSS,
        cause=cause,
        next_step=(
            "Compare its rows with the broker's while it has them: tallystick reconcile"
            f" {feed} --level 4; or land them again: tallystick repair {feed} --dry-run"
            if is_as_committed
            else see_if_kept(feed)
        ),
        evidence={
            "fingerprint": sums_of(known),
            "fingerprint_now": sums_of(found),
            "taken_by": "the first full read",
            **now.as_evidence(),
        },
    )
