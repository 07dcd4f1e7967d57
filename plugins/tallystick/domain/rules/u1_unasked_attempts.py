"""U1, could not tell, of directories of attempts: what they may hold, nobody could ask or commit.

Such a directory is told by its path, with what ends that: it can be asked again, or was quarantined
on an operator's word. So is one whose files could not be committed: a plan ends that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.asked import Unasked
from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class AttemptsEvidence:
    """A directory of attempts, and why nobody knows what it holds, or could commit it."""

    path: str
    said: str
    """By the witness, or by the attempt to commit."""
    was_asked: bool
    """True where its files could not be committed."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        asked = {"was_asked": True} if self.was_asked else {}
        return {"path": self.path, "said": self.said, **asked}

    @classmethod
    def of(cls, found: Finding) -> AttemptsEvidence | None:
        """What a finding U1 of attempts carries; None for any other finding."""
        path, said = found.evidence.get("path"), found.evidence.get("said")
        if found.rule != U1 or found.level is not Level.L1 or not isinstance(path, str):
            return None
        return cls(path, str(said), bool(found.evidence.get("was_asked")))


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
            evidence=AttemptsEvidence(each.path, each.reason, each.is_asked).as_json(),
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
    again = f"{unasked.remedy} Then look again: tallystick reconcile {feed}"
    if unasked.move is None:
        return again
    return (
        f"{again}. If nobody can read it again, move it to quarantine: {unasked.move}. The next run"
        " then names that place with what is lost, and goes on."
    )


def as_told(found: Finding, files: KeptFiles, batch_id: BatchId) -> Unasked | None:
    """Files that a plan could not commit, as it has told them; None for what it could not ask."""
    told = AttemptsEvidence.of(found)
    if told is None or not told.was_asked:
        return None
    ids = frozenset({batch_id})
    return Unasked(told.path, told.said, found.next_step, files, ids, is_asked=True)


def is_of_attempts(found: Finding) -> bool:
    """True for what is told of a directory of attempts that could not be asked."""
    return AttemptsEvidence.of(found) is not None


def may_hold_any_of(unasked: Unasked, found: Finding) -> bool:
    """True when the rows that the finding is about may be in the directory."""
    bounds = (found.from_offset, found.until_offset)
    if unasked.files.offsets is None or found.partition is None or None in bounds:
        return True
    return any(
        each.partition.partition == found.partition and each.clipped(*bounds)  # type: ignore[arg-type]
        for each in unasked.files.offsets
    )
