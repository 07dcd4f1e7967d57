"""What is new of a feed, and what is over, beside what somebody was told of it last.

1. Nothing is told twice: what was told is part of the next comparison.
2. Nothing that was recorded is left out: a finding that came and went in between is told as over.
3. Who was never told anything hears of what stands, and of nothing that was over before.
4. Who wants a reminder hears of what stands again, so long after all of it was told last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.rules.waivers import WaiverRequest
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to be told."""

    verdicts: Collection[Verdict] | None = None
    """Of findings, and of the feed before and after a change; None: any."""
    is_told_late: bool = True
    is_told_requests: bool = True
    remind_after: timedelta | None = None

    def hears(self, *verdicts: Verdict | None) -> bool:
        """True where one of them is of interest."""
        return self.verdicts is None or any(each in self.verdicts for each in verdicts)


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
    reminded_at: datetime | None = None
    """All that stands was told then; None while nothing does."""


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
    at: datetime
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
    still: Sequence[FindingPart]
    """Told before, and told again because they stand."""
    still_late: datetime | None
    """End of the window that was told as late before, and of which people are reminded."""
    asked: Sequence[WaiverRequest]
    """Requests for a waiver that wait; those told before, too, where people are reminded."""

    def __bool__(self) -> bool:
        return bool(
            self.opened
            or self.over
            or self.late
            or self.late_no_more
            or self.still
            or self.still_late
            or self.asked
            or self.verdict is not self.verdict_before
        )


def news_of(told: Told | None, now: Standing, wish: Wish) -> News:
    """What to tell; None is somebody who was never told anything.

    To them a verdict that nothing is wrong with is no news, nor is it to who was told something
    before the first report.
    """
    before = told or Told(verdict=_calm(now.verdict))
    standing = _heard(now.open_findings, wish)
    verdict_before = before.verdict or _calm(now.verdict)
    late_since = before.late_window if wish.is_told_late else None
    late_now = now.late_window if wish.is_told_late else None
    is_due = _is_due(before, now, wish)
    return News(
        opened=[each for number, each in standing if number not in before.open_findings],
        over=[each for _, each in _heard(now.ended if told else {}, wish)],
        verdict=now.verdict,
        verdict_before=(verdict_before if wish.hears(now.verdict, verdict_before) else now.verdict),
        late=late_now if late_since is None else None,
        late_no_more=late_since if late_now is None else None,
        still=[each for number, each in standing if is_due and number in before.open_findings],
        still_late=late_since if is_due and late_now else None,
        asked=[
            each
            for number, each in sorted(now.requests.items() if wish.is_told_requests else ())
            if is_due or number not in before.requests
        ],
    )


def _heard(findings: Mapping[int, FindingPart], wish: Wish) -> Sequence[tuple[int, FindingPart]]:
    return [
        (number, each)
        for number, each in sorted(findings.items())
        if wish.verdicts is None or wish.hears(each.verdict)
    ]


def _is_due(told: Told, now: Standing, wish: Wish) -> bool:
    if told.reminded_at is None or wish.remind_after is None:
        return False
    return now.at - told.reminded_at >= wish.remind_after


def told_of(told: Told | None, now: Standing, wish: Wish) -> Told:
    """What somebody knows who was told the news."""
    late = (told and told.late_window) or now.late_window
    # What has ended while this was read is in neither list: it is told the next time.
    unheard = set(told.open_findings if told else ()) - set(now.ended)
    return Told(
        open_findings=tuple(sorted(unheard | set(now.open_findings))),
        newest_finding=now.newest_finding,
        verdict=now.verdict,
        late_window=late if now.late_window else None,
        reminded_at=_reminded_at(told or Told(), now, wish),
        requests=tuple(sorted(now.requests)),
    )


def _reminded_at(told: Told, now: Standing, wish: Wish) -> datetime | None:
    standing = {number for number, _ in _heard(now.open_findings, wish)}
    requests = now.requests.keys() if wish.is_told_requests else set()
    is_late = wish.is_told_late and now.late_window is not None
    if not standing and not requests and not is_late:
        return None
    stood = standing & {*told.open_findings} or requests & {*told.requests}
    stood_late = is_late and told.late_window is not None
    is_told = stood or stood_late
    return told.reminded_at if is_told and not _is_due(told, now, wish) else now.at


def _calm(verdict: Verdict | None) -> Verdict | None:
    return Verdict.PROVEN_OK if verdict and verdict is not Verdict.PROVEN_OK else verdict
