"""Which reports are kept for good, and which of their pages go with the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.paths import page_taken_at

KEPT_FOR: Final = timedelta(days=28)
"""Four times as long as Kafka keeps records unless told otherwise; nothing younger is thinned."""


def perhaps_thinned(names: Iterable[str], now: datetime) -> list[str]:
    """The old pages but the last one of each day, which stays whatever the ledger has forgotten.

    A ledger that was made anew knows none of the reports that were before it.
    """
    until = (now - KEPT_FOR).replace(hour=0, minute=0, second=0, microsecond=0)
    days: defaultdict[object, list[tuple[datetime, str]]] = defaultdict(list)
    for name in names:
        taken_at = page_taken_at(name)
        if taken_at is not None and taken_at < until:
            days[taken_at.date()].append((taken_at, name))
    return [name for pages in days.values() for _, name in sorted(pages)[:-1]]
