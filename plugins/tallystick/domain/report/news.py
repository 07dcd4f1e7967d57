"""What is new of a feed, and what is over, beside what somebody was told of it last.

1. Nothing is told twice: what was told is part of the next comparison.
2. Nothing that was recorded is left out: a finding that came and went in between is told as over.
3. Who was never told anything hears of what stands, and of nothing that was over before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.rules.waivers import WaiverRequest
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody knows of a feed."""

    open_findings: tuple[int, ...] = ()
    """Numbers, ascending."""
    newest_finding: int = 0
    """No finding with a larger number was on record."""
    verdict: Verdict | None = None
    """None before the first report."""
    late_window: datetime | None = None
    """End of the first window that is not complete in time; None while none is late."""
    requests: tuple[int, ...] = ()
    """Numbers of the requests for a waiver that nobody had answered."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is on record of a feed now."""

    open_findings: Mapping[int, FindingPart]
    ended: Mapping[int, FindingPart]
    """Of those that were told as open, or came since: the ones that stand open no more."""
    newest_finding: int
    """Read before all others: what came meanwhile has a larger number."""
    verdict: Verdict | None
    late_window: datetime | None
    requests: Mapping[int, WaiverRequest]
    """Those for a waiver that wait for somebody else's word."""


@dataclass(frozen=True, slots=True)
class News:
    """The difference; false where there is none."""

    opened: Sequence[FindingPart]
    over: Sequence[FindingPart]
    verdict: Verdict | None
    """As it is now."""
    verdict_before: Verdict | None
    """Other than `verdict` where that has changed."""
    late: datetime | None
    """End of the window that was not complete in time; None where that was told, or none is."""
    late_no_more: datetime | None
    """End of the window that was told as late, and is complete now."""
    asked: Sequence[WaiverRequest]
    """Requests for a waiver that wait."""

    def __bool__(self) -> bool:
        return bool(
            self.opened
            or self.over
            or self.late
            or self.late_no_more
            or self.asked
            or self.verdict is not self.verdict_before
        )


def news_of(told: Told | None, now: Standing) -> News:
    """What to tell; None is somebody who was never told anything.

    To them a verdict that nothing is wrong with is no news, nor is it to who was told something
    before the first report.
    """
    before = told or Told(verdict=_calm(now.verdict))
    ended = now.ended if told else {}
    late_since = before.late_window
    return News(
        opened=[
            each
            for number, each in sorted(now.open_findings.items())
            if number not in before.open_findings
        ],
        over=[each for _, each in sorted(ended.items())],
        verdict=now.verdict,
        verdict_before=before.verdict or _calm(now.verdict),
        late=now.late_window if late_since is None else None,
        late_no_more=late_since if now.late_window is None else None,
        asked=[each for number, each in now.requests.items() if number not in before.requests],
    )


def told_of(told: Told | None, now: Standing) -> Told:
    """What somebody knows who was told the news."""
    late = (told and told.late_window) or now.late_window
    # What has ended while this was read is in neither list: it is told the next time.
    unheard = set(told.open_findings if told else ()) - set(now.ended)
    return Told(
        open_findings=tuple(sorted(unheard | set(now.open_findings))),
        newest_finding=now.newest_finding,
        verdict=now.verdict,
        late_window=late if now.late_window else None,
        requests=tuple(sorted(now.requests)),
    )


def _calm(verdict: Verdict | None) -> Verdict | None:
    return Verdict.PROVEN_OK if verdict and verdict is not Verdict.PROVEN_OK else verdict
