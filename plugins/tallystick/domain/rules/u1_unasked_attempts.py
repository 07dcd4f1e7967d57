"""U1, could not tell, of directories of attempts: what they may hold, nobody could ask or commit.

Such a directory is told by its path, with what ends that: it can be asked again, or was moved aside
on an operator's word. So is one whose files could not be committed: a plan ends that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.domain.attempts.asked import Unasked
from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import U1


def unasked_attempts(feed: str, topic: str, unasked: Sequence[Unasked]) -> tuple[Finding, ...]:
    """What is told of directories of attempts that could not be asked (U1)."""
    return tuple(
        Finding(
            rule=U1,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=topic,
            cause=_cause(each),
            next_step=_way_out(feed, each),
            evidence={
                "path": each.path,
                "said": each.reason,
                **({"was_asked": True} if each.is_asked else {}),
            },
            subject=each.path,
        )
        for each in sorted(unasked, key=lambda each: each.path)
    )


def _cause(unasked: Unasked) -> str:
    if unasked.is_asked:
        return f"what attempts hold in {unasked.path} could not be committed: {unasked.reason}"
    return f"nobody could ask what attempts hold in {unasked.path}: {unasked.reason}"


def _way_out(feed: str, unasked: Unasked) -> str:
    if unasked.is_asked:
        return unasked.remedy
    again = f"{unasked.remedy} Then look again: ./tallystick reconcile {feed}"
    if unasked.move is None:
        return again
    return (
        f"{again}. If nobody can read it again, move it aside: {unasked.move}. The next run then"
        " names that place with what is lost, and goes on."
    )


def as_told(found: Finding, files: KeptFiles, batch_id: BatchId) -> Unasked | None:
    """Files that a plan could not commit, as it has told them; None for what it could not ask."""
    if not found.evidence.get("was_asked"):
        return None
    reason = str(found.evidence["said"])
    ids = frozenset({batch_id})
    return Unasked(found.subject, reason, found.next_step, files, ids, is_asked=True)


def is_of_attempts(found: Finding) -> bool:
    """True for what is told of a directory of attempts that could not be asked."""
    is_unknown = found.code is FindingCode.COULD_NOT_TELL and found.level is Level.L1
    return is_unknown and "path" in found.evidence


def may_hold_any_of(unasked: Unasked, found: Finding) -> bool:
    """True when the rows that the finding is about may be in the directory."""
    bounds = (found.from_offset, found.until_offset)
    if unasked.files.offsets is None or found.partition is None or None in bounds:
        return True
    return any(
        each.partition.partition == found.partition and each.clipped(*bounds)  # type: ignore[arg-type]
        for each in unasked.files.offsets
    )
