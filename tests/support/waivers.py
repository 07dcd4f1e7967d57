"""Two people's word about a finding, as they have just read it."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick.domain.rules.waivers import Waiver
from tallystick.ledger.ledger import Ledger

YEARS_LATER = datetime(2199, 1, 1, tzinfo=UTC)


def accept(ledger: Ledger, number: int, until: datetime = YEARS_LATER) -> None:
    """The finding is waived as it stands now."""
    read = ledger.finding(number)
    assert read is not None
    ledger.waive([Waiver(number, "known", "Ada", "Grace", until, read.digest)])
