"""Check: what a run must say loudly after everything that could be landed has been (L0 and L1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from tallystick.domain.findings import FAILING_VERDICTS, Finding
from tallystick.domain.rules import standing_findings
from tallystick.errors import CheckFailed
from tallystick.workflows.observing import observe
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def check(services: Services, since: datetime) -> Sequence[Finding]:
    """The findings that are news since this instant, and those that last; worst troubles first.

    L0 was decided before each commit: a batch that was not accounted for is not committed.
    """
    with at(services, "check"):
        accounts = services.ledger.accounts(services.feed_name)
        seen = observe(services, accounts)
        standing = standing_findings(services.feed_name, accounts.generations, seen)
        services.ledger.record_findings(services.feed_name, standing)
        recorded = services.ledger.findings(services.feed_name)
    news = [each.finding for each in recorded if each.first_seen_at >= since]
    places = {_place(each) for each in news}
    found = [*news, *(each for each in standing if _place(each) not in places)]
    for finding in found:
        log.warning("Found: %s", finding)
    if not found:
        log.info("Feed %s: nothing found at levels L0 and L1.", services.feed_name)
    return found


def _place(finding: Finding) -> tuple[object, ...]:
    return (
        finding.code,
        finding.generation,
        finding.partition,
        finding.from_offset,
        finding.until_offset,
    )


def require_clean(feed: str, findings: Sequence[Finding]) -> None:
    """Raise CheckFailed when a finding is a proven loss, a proven duplicate, or unknown."""
    failing = [str(each) for each in findings if each.verdict in FAILING_VERDICTS]
    if failing:
        raise CheckFailed(feed, failing)
