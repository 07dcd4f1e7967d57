"""What is said of a feed now: by who was heard last, and by the findings that stand since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict

# Every finding of these is on record, so the record knows better than an older report if it stands.
_ON_RECORD: Final = frozenset(
    {Verdict.WAIVED, Verdict.SUSPECTED, Verdict.PROVEN_DUP, Verdict.PROVEN_LOSS}
)


@dataclass(frozen=True, slots=True)
class LastHeard:
    """What a witness answered last to who asked at its level."""

    heard_at: datetime | None
    """The newest report to which it answered; None where there is none."""
    silent_since: datetime | None
    """The first report after that to which it did not; None while it answers."""


Heard: TypeAlias = Mapping[Level, LastHeard]
"""The broker at L1, the listings at L2, the rows at L3, the second reader at L4."""


def verdict_now(reported: Verdict | None, heard: Heard, standing: Iterable[Verdict]) -> Verdict:
    """The worst of what stands, of who is silent, and of what only the newest report could say.

    What a silent witness would have said is on no record, so UNKNOWN lasts until somebody asks it
    again; so it does before the first report. A finding that has ended since counts no more.

    >>> verdict_now(Verdict.PROVEN_LOSS, {}, []).value, verdict_now(None, {}, []).value
    ('PROVEN_OK', 'UNKNOWN')
    >>> verdict_now(Verdict.UNKNOWN, {}, [Verdict.SUSPECTED]).value
    'UNKNOWN'
    """
    if reported is None or any(each.silent_since for each in heard.values()):
        told = Verdict.UNKNOWN
    else:
        told = Verdict.PROVEN_OK if reported in _ON_RECORD else reported
    return Verdict.worst_of([told, *standing])
