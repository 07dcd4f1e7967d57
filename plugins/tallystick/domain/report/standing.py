"""What is said of a feed now: by who was heard last, and by the findings that stand since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class LastHeard:
    """What a witness answered last to who asked at its level."""

    heard_at: datetime | None
    """The newest report to which it answered; None where there is none."""
    silent_since: datetime | None
    """The first report after that to which it did not; None while it answers."""


Heard: TypeAlias = Mapping[Level, LastHeard]
"""The broker at L1, the listings at L2, the rows at L3, the second reader at L4."""


def verdict_now(heard: Heard, standing: Iterable[Verdict], *, is_blank: bool) -> Verdict:
    """The worst of the findings that stand; at least UNKNOWN where none could say all.

    So it is until broker and storage were heard, while a witness is silent, and while of one log
    nothing is landed and records wait there (`is_blank`). What an older report has said counts no
    more.

    >>> verdict_now({}, [], is_blank=False).value
    'UNKNOWN'
    """
    is_heard = all(level in heard and heard[level].heard_at for level in (Level.L1, Level.L2))
    is_told = is_heard and not is_blank and not any(each.silent_since for each in heard.values())
    return Verdict.worst_of([Verdict.PROVEN_OK if is_told else Verdict.UNKNOWN, *standing])
