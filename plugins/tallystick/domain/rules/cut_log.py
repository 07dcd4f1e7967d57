"""A log that was cut: its partition stops, and goes on by an operator's word only (A3, A4).

What a plan recorded stays as it was stated then: today's bounds can't tell a cut any more.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallystick.domain.finding_codes import Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.planning.log_changes import EndedGeneration, Observation
from tallystick.domain.rules.evidence import kept_in, of_kept
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.losses import look_in_kept
from tallystick.domain.rules.rule import Rule, Trait
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class CutEvidence:
    """What a partition stopped with."""

    reason: str
    landed_until: int
    """The frontier then (excluded)."""
    cut_at: int | None = None
    """Below it the log is as it was, by its epochs; None where they can't tell."""
    kept: tuple[str, ...] = ()
    """Where files are kept that may hold what was cut."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {
            "reason": self.reason,
            "landed_until": self.landed_until,
            **({} if self.cut_at is None else {"cut_at": self.cut_at}),
            **of_kept(self.kept),
        }

    @classmethod
    def of(cls, found: Finding) -> CutEvidence | None:
        """What the finding of a cut carries; None for any other finding, and for a doubt."""
        landed_until, cut_at = (found.evidence.get(each) for each in ("landed_until", "cut_at"))
        if not found.rule.has(Trait.CUT) or not isinstance(landed_until, int):
            return None
        return cls(
            str(found.evidence.get("reason")),
            landed_until,
            cut_at if isinstance(cut_at, int) else None,
            kept_in(found.evidence),
        )


def cut_finding(
    feed: str,
    account: GenerationAccount,
    seen: Observation | None,
    stopped: EndedGeneration,
    rule: Rule,
    *,
    shown_end: int | None = None,
) -> Finding:
    """A partition whose log was cut: it stops, all others go on.

    `shown_end` is where the log ends now, if that is where it was cut. Where it has grown since,
    the leader epochs say where; without them, or a look, all that is known is that the last landed
    record was.
    """
    check = seen.logs.get(account.partition.partition) if seen else None
    cut_at = check.cut_at if check else None
    ends = [each for each in (shown_end, cut_at) if each is not None]
    from_offset = min(ends, default=account.anchor.offset if account.anchor else None)
    evidence = CutEvidence(stopped.reason, account.frontier, cut_at, tuple(stopped.kept)).as_json()
    return finding(
        feed,
        account,
        None
        if from_offset is None
        else offset_range(account.partition, from_offset, account.readable_before),
        rule,
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=f"the log was cut: {stopped.reason}.",
        next_step=(
            f"{look_in_kept(evidence)}This partition has stopped, all others go on. Its landed rows"
            " are kept. When you know what happened, name this finding:"
            f" tallystick repair {feed} NUMBER"
        ),
        evidence=evidence,
    )


def has_lost_unlanded(cut: Finding) -> bool:
    """True where offsets were cut that had not been landed: no new generation brings them back."""
    evidence = CutEvidence.of(cut)
    if evidence is None or cut.until_offset is None:
        return False
    return cut.until_offset > evidence.landed_until


def ended_by_reopening(each: Finding, account: GenerationAccount | None) -> str | None:
    """What a new generation says of a cut before it; None where that leaves the cut standing."""
    if account is None or not each.rule.has(Trait.CUT) or each.generation is None:
        return None
    if account.ordinal <= each.generation or has_lost_unlanded(each):
        return None
    return f"Generation {account.ordinal} was opened at offset {account.first_offset}."
