"""A finding as every JSON document shows it: the command line's, and the stored report.

1. There is one shape. Every key is in every document; what is not known is None.
2. `verdict` is what was found. That two people accept the finding is its `state`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from tallystick.domain.identities import Owner
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.extent import Extent
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import WaiverEnding, shown_digest
from tallystick.domain.verdicts import FindingState, Verdict

NUMBER: Final = "NUMBER"
"""Stands in the words of rules for the number that a finding gets on record."""


class WaiverState(StrEnum):
    """What became of a waiver."""

    IN_FORCE = "in force"
    EXPIRED = "expired"
    ENDED = "ended"
    VOID = "void"
    """The finding's evidence has changed since, or the finding is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverPart:
    """What two people have accepted."""

    state: WaiverState
    reason: str
    asked_by: str
    approved_by: str
    expires_at: datetime
    """Excluded."""
    evidence_digest: str
    """Of the evidence that was accepted."""
    ending: WaiverEnding | None
    """Who has ended it before its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPart:
    """One finding; generation, partition and offsets are None where it is not of one log."""

    number: int | None
    """The finding's number in the ledger, for `explain`, `repair` and `waive`; None, like `state`
    and the instants, for a finding that is not on record."""
    code: str
    name: str
    verdict: Verdict
    level: Level
    feed: str
    topic: str
    generation: int | None
    partition: int | None
    from_offset: int | None
    until_offset: int | None
    subject: str
    """A path or a batch; empty where the offsets say it."""
    trouble: str
    """What it comes from: findings of a feed with the same words are one trouble."""
    cause: str
    next_step: str
    evidence: Mapping[str, object]
    evidence_digest: str
    """Of the evidence above: `waive` asks for it."""
    state: FindingState | None
    first_seen_at: datetime | None
    last_confirmed_at: datetime | None
    closed_at: datetime | None
    closed_by: str | None
    """What closed the finding, in a sentence."""
    closed_in: Owner | None
    """The run that did; None where somebody did by hand."""
    waiver: WaiverPart | None
    """The newest one."""
    extent: Extent | None = None
    """How much it is about; None where no offsets are known of it, or nobody asked."""

    @property
    def is_waived(self) -> bool:
        """True while two people accept the finding."""
        return self.state is FindingState.WAIVED

    @property
    def has_ended(self) -> bool:
        """True for one that is closed, or has another verdict now."""
        return self.state in (FindingState.REMEDIED, FindingState.SUPERSEDED)

    @property
    def standing_verdict(self) -> Verdict:
        """What is said of the offsets: the finding's verdict, or that it is accepted."""
        return Verdict.WAIVED if self.is_waived else self.verdict


def finding_part(
    finding: Finding, stored: StoredFinding | None = None, extent: Extent | None = None
) -> FindingPart:
    """The finding as documents show it, with what the ledger knows of it."""
    is_judged = stored is not None and finding.verdict is Verdict.WAIVED
    evidence = to_plain(finding.evidence)
    return FindingPart(
        number=stored.finding_id if stored else None,
        code=finding.code.value,
        name=finding.rule.name,
        verdict=stored.finding.verdict if stored and is_judged else finding.verdict,
        level=finding.level,
        feed=finding.feed,
        topic=finding.topic,
        generation=finding.generation,
        partition=finding.partition,
        from_offset=finding.from_offset,
        until_offset=finding.until_offset,
        subject=finding.subject,
        trouble=finding.trouble,
        cause=finding.cause,
        next_step=_step(finding, stored),
        evidence=evidence,
        evidence_digest=shown_digest(evidence),
        state=stored.state if stored else None,
        first_seen_at=stored.first_seen_at if stored else None,
        last_confirmed_at=stored.last_confirmed_at if stored else None,
        closed_at=stored.closed_at if stored else None,
        closed_by=stored.closed_by if stored else None,
        closed_in=stored.closed_in if stored else None,
        waiver=_waiver_part(stored) if stored else None,
        extent=extent,
    )


def finding_parts(
    findings: Iterable[Finding],
    stored: Mapping[tuple[object, ...], StoredFinding],
    extents: Mapping[int, Extent],
) -> tuple[FindingPart, ...]:
    """The findings, worst first, with what is on record of those of the same key."""
    return tuple(
        finding_part(each, known, extents.get(known.finding_id) if known else None)
        for each in sorted(findings, key=lambda one: -one.verdict.severity)
        for known in (stored.get(each.key),)
    )


def _step(finding: Finding, stored: StoredFinding | None) -> str:
    """What to do, by the finding's own number where it has one."""
    if stored is None:
        return finding.next_step
    named = repair_of(finding.feed, stored.finding_id)
    return finding.next_step.replace(repair_of(finding.feed, NUMBER), named)


def repair_of(feed: str, *numbers: object) -> str:
    """The words by which a next step names findings to repair."""
    return " ".join(["tallystick repair", feed, *map(str, numbers)])


def stored_part(stored: StoredFinding) -> FindingPart:
    """A finding on record as documents show it."""
    return finding_part(stored.finding, stored)


def _waiver_part(stored: StoredFinding) -> WaiverPart | None:
    waiver = stored.waiver
    if waiver is None:
        return None
    over = WaiverState.EXPIRED if stored.has_waiver_expired else WaiverState.VOID
    over = WaiverState.ENDED if stored.waiver_ending else over
    return WaiverPart(
        state=WaiverState.IN_FORCE if stored.state is FindingState.WAIVED else over,
        reason=waiver.reason,
        asked_by=waiver.asked_by,
        approved_by=waiver.approved_by,
        expires_at=waiver.expires_at,
        evidence_digest=waiver.digest,
        ending=stored.waiver_ending,
    )
