"""Check: what a run must say loudly after everything that could be landed has been (L0 and L1)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from tallystick.domain.closing import Heard, ended_findings
from tallystick.domain.findings import (
    FAILING_VERDICTS,
    GROWING_CODES,
    PLANNING_CODES,
    Finding,
)
from tallystick.domain.ledger_rules import standing_short_reads
from tallystick.domain.log_rules import OF_LOST, recorded_stops
from tallystick.domain.rules import lasting_findings
from tallystick.domain.states import FindingState
from tallystick.domain.waivers import as_accepted
from tallystick.errors import CheckFailed
from tallystick.ports.findings import StoredFinding
from tallystick.workflows.observing import observe
from tallystick.workflows.outlooks import outlook, terms
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def check(services: Services, since: datetime) -> Sequence[Finding]:
    """What plans and batches have found since this instant, and what lasts.

    A repair that the run took over may have lost rows: that is told too. What lasts is stopped
    partitions, lost anchors, stalled stable offsets, and losses that are near. L0 was decided
    before each commit: a batch that was not accounted for is not committed. What a reconcile has
    found meanwhile is not this run's to fail on.
    """
    with at(services, "check"):
        accounts = services.ledger.accounts(services.feed_name)
        seen = observe(services, accounts)
        recorded = services.ledger.findings(services.feed_name)
        known, told = accounts.generations, [each.finding for each in recorded]
        around = outlook(services, known, seen.snapshot)
        standing = (
            *recorded_stops(known, told),
            *lasting_findings(services.feed_name, known, seen, around, terms(services)),
        )
        services.ledger.record_findings(services.feed_name, standing)
        # Asked now: what was recorded with other evidence has ended its waiver.
        accepted = {
            each.finding.key
            for each in services.ledger.findings(services.feed_name)
            if each.state is FindingState.WAIVED
        }
    # A run that is run again tells what its first life has found, but for what has passed since.
    over = ended_findings(
        {each.finding_id: each.finding for each in recorded},
        (*standing, *standing_short_reads(known, told, accounts.open_repairs)),
        Heard(
            seen.snapshot.taken_at,
            broker=True,
            storage=False,
            leaderless=seen.snapshot.leaderless,
            not_told=around.not_told,
        ),
        known,
    )
    news = [
        each.finding
        for each in recorded
        if _told_at(each) >= since
        and (each.finding.code in PLANNING_CODES or each.finding.subject == OF_LOST)
        and each.finding_id not in over
    ]
    keys = {each.key for each in news}
    found = as_accepted((*news, *(each for each in standing if each.key not in keys)), accepted)
    for finding in found:
        log.warning("Found: %s", finding)
    if not found:
        log.info("Feed %s: nothing found at levels L0 and L1.", services.feed_name)
    return found


def _told_at(stored: StoredFinding) -> datetime:
    """When the finding was news: a partition that stands still is, to every plan that sees it."""
    is_lasting = stored.finding.code in GROWING_CODES
    return stored.last_confirmed_at if is_lasting else stored.first_seen_at


def require_clean(feed: str, findings: Sequence[Finding]) -> None:
    """Raise CheckFailed when a finding is neither harmless nor accepted."""
    require_none_failing(feed, [str(each) for each in findings if each.verdict in FAILING_VERDICTS])


def require_none_failing(feed: str, failing: Sequence[str]) -> None:
    """Raise CheckFailed with these sentences; none of them is well."""
    if failing:
        raise CheckFailed(feed, failing)
