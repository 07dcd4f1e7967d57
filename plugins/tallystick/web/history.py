"""A page of a feed's past: three lists of one stretch of time, so that none runs ahead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from tallystick.domain.identities import FeedName
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.troubles import Trouble, troubles_of
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.ledger.ledger import Ledger
from tallystick.web.answers import HistoryAnswer

MOST_OF_A_KIND: Final = 50
"""Verdicts, troubles, and steps of waivers, on one page."""
_MOST_FINDINGS: Final = 500


def history_of(ledger: Ledger, feed: FeedName, until: datetime | None) -> HistoryAnswer:
    """What was up to an instant, which counts: the newest of it, as far as all three lists go."""
    verdicts = ledger.verdict_changes(feed, until, most=MOST_OF_A_KIND + 1)
    closed = ledger.closed_findings(feed, until, most=_MOST_FINDINGS + 1)
    waivers = ledger.waiver_steps(feed, until, most=MOST_OF_A_KIND + 1)
    left_out = [
        *(each.taken_at for each in verdicts[MOST_OF_A_KIND:]),
        *(each.taken_at for each in waivers[MOST_OF_A_KIND:]),
        *(each for each in (_first_left_out(closed),) if each),
    ]
    before = max(left_out, default=None)
    parts = ledger.told_findings(
        each for each in closed if before is None or (each.closed_at and each.closed_at > before)
    )
    return HistoryAnswer(
        feed=feed,
        verdicts=[each for each in verdicts if before is None or each.taken_at > before],
        closed=[each for one in newest_first(parts) for each in one.findings],
        waivers=[each for each in waivers if before is None or each.taken_at > before],
        before=before,
    )


def newest_first(closed: Iterable[FindingPart]) -> list[Trouble]:
    """The troubles of closed findings, by when the last of each was closed."""
    return sorted(troubles_of(closed), key=_closed_at, reverse=True)


def _closed_at(trouble: Trouble) -> float:
    return trouble.closed_at.timestamp() if trouble.closed_at else 0.0


def _first_left_out(closed: Sequence[StoredFinding]) -> datetime | None:
    """When the newest one was closed that has no place on the page; None where all have one."""
    troubles: set[str] = set()
    for place, each in enumerate(closed):
        troubles.add(each.finding.trouble)
        if len(troubles) > MOST_OF_A_KIND or place == _MOST_FINDINGS:
            return each.closed_at
    return None
