"""What is said of a feed now: by its newest report, and by the findings that stand since."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.verdicts import Verdict

# Every finding of these is on record, so the record knows better than an older report if it stands.
_ON_RECORD: Final = frozenset(
    {Verdict.WAIVED, Verdict.SUSPECTED, Verdict.PROVEN_DUP, Verdict.PROVEN_LOSS}
)


def verdict_now(reported: Verdict | None, standing: Iterable[Verdict]) -> Verdict:
    """The worst of what stands, and of what only the newest report could say.

    What a silent witness would have said is on no record, so UNKNOWN lasts until the next report;
    so it does before the first one. A finding that has ended since the report counts no more.

    >>> verdict_now(Verdict.PROVEN_LOSS, []).value, verdict_now(None, []).value
    ('PROVEN_OK', 'UNKNOWN')
    >>> verdict_now(Verdict.UNKNOWN, [Verdict.SUSPECTED]).value
    'UNKNOWN'
    """
    if reported is None:
        told = Verdict.UNKNOWN
    else:
        told = Verdict.PROVEN_OK if reported in _ON_RECORD else reported
    return Verdict.worst_of([told, *standing])


def seconds_to_loss(
    complete_up_to: datetime | None, retention_ms: int | None, lag: int | None, now: datetime
) -> float | None:
    """The least time until retention may take what is not landed; None when nothing waits, or
    nobody knows.

    All that was appended before `complete_up_to` is landed: what waits is newer than that. A report
    that is older than the retention says nothing of it; a loss that is near, or has come, is a
    finding.
    """
    if not lag or complete_up_to is None or retention_ms is None:
        return None
    least = (complete_up_to + timedelta(milliseconds=retention_ms) - now).total_seconds()
    return least if least > 0 else None
