"""Check: what a run must say loudly after everything that could be landed has been (L0, L1, L4)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from tallystick.domain.identities import Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.report.finding_part import stored_part
from tallystick.domain.report.troubles import (
    counted_troubles,
    named_findings,
    troubles_among,
    troubles_of,
)
from tallystick.domain.rules.a7_short_read import standing_short_reads
from tallystick.domain.rules.a11_unreadable_record import standing_unreadable
from tallystick.domain.rules.closing import Heard, ended_findings
from tallystick.domain.rules.findings import (
    FAILING_VERDICTS,
    Finding,
    Level,
)
from tallystick.domain.rules.log_findings import end_findings
from tallystick.domain.rules.n1_overdue import missed_reconcile
from tallystick.domain.rules.run_news import open_beside, told_by_run
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import as_accepted
from tallystick.domain.rules.witnesses import lasting_findings
from tallystick.domain.verdicts import FindingState
from tallystick.errors import CheckFailed, SourceError
from tallystick.settings.cadence import longest_pause
from tallystick.workflows.comparing.second_reading import (
    NOTHING_COMPARED,
    SecondReadReport,
    compare_newest,
)
from tallystick.workflows.place import at
from tallystick.workflows.planning.looking import look_at_log
from tallystick.workflows.planning.outlooks import terms
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_MOST_TOLD: Final = 20


def compare(services: Services) -> SecondReadReport:
    """What the second reader says of new batches; nothing where the broker can't be asked.

    The check that follows meets the same broker, and the next run compares.
    """
    try:
        return compare_newest(services)
    except SourceError as error:
        log.warning("New batches were not compared with the broker: %s", error.describe())
        return NOTHING_COMPARED


def check(
    services: Services,
    since: datetime,
    owner: Owner,
    compared: SecondReadReport = NOTHING_COMPARED,
) -> Sequence[Finding]:
    """What the owner's plans and batches have found since this instant, and what lasts.

    `compared` is what the second reader has said of new batches. What differs is committed, and
    readers see it, so it is told at once.

    A repair that the run took over may have lost rows: that is told too. What lasts is stopped
    partitions, lost anchors, stalled stable offsets, near losses, and an overdue reconcile. L0 was
    decided before each commit: what was not accounted for is not committed. What a reconcile has
    found meanwhile is not this run's to fail on. What stands open from before is said, and fails
    nothing again.
    """
    with at(services, "check"):
        before = services.ledger.findings(services.feed_name)
        look = look_at_log(services)
        accounts, seen, around = look.accounts, look.seen, look.around
        recorded = services.ledger.findings(services.feed_name)
        known, told = accounts.generations, [each.finding for each in recorded]
        logs = services.ledger.ended_logs(services.feed_name)
        stopped = [each for each in logs if each[0].state is GenerationState.STOPPED]
        waiting = {each.finding_id: each.finding for each in before if each.finding.is_provisional}
        standing = (
            # Files hold a loss up: each run fails until they are settled.
            *(each for each in look.findings if each.is_provisional),
            *end_findings(services.feed_name, stopped, told),
            *lasting_findings(services.feed_name, known, seen, around, terms(services)),
            *_missed_reconcile(services),
        )
        services.ledger.record_findings(services.feed_name, standing)
        standing = (*standing, *compared.findings)
        own = services.ledger.published_by(services.feed_name, owner)
        heard = Heard(
            seen.snapshot.taken_at,
            broker=seen.snapshot,
            storage=False,
            not_told=around.not_told,
        )
        ended = ended_findings(waiting, look.findings, heard, known)
        services.ledger.close_findings(services.feed_name, ended, run=owner, as_found=before)
        # Asked now: what was recorded with other evidence has ended its waiver.
        on_record = services.ledger.findings(services.feed_name)
    # A run that is run again tells what its first life has found, but for what has passed since.
    over = ended_findings(
        {each.finding_id: each.finding for each in recorded},
        (
            *standing,
            *standing_short_reads(known, told, accounts.open_repairs),
            *standing_unreadable(known, told, accounts.claimed),
        ),
        heard,
        known,
    )
    accepted = {each.finding.key for each in on_record if each.state is FindingState.WAIVED}
    found = as_accepted(told_by_run(recorded, standing, since=since, over=over, own=own), accepted)
    levels = "L0, L1 and L4" if compared.has_looked else "L0 and L1"
    _tell(services.feed_name, levels, found, on_record)
    return found


def _missed_reconcile(services: Services) -> Sequence[Finding]:
    """What is told of a reconcile that is overdue."""
    ledger, feed, now = services.ledger, services.feed_name, services.present()
    heard_at = ledger.last_heard(feed)[Level.L2].heard_at
    if heard_at is None:
        # Each commit reads its own files back, so the first look is as good as an answer.
        heard_at = min((each.looked_at for each in ledger.look_places(feed)), default=now)
    pause = longest_pause(services.feed.reconcile.cron, now)
    return missed_reconcile(feed, services.topic, heard_at, pause, now)


def _tell(
    feed: str, levels: str, found: Sequence[Finding], on_record: Sequence[StoredFinding]
) -> None:
    """What is new, and what stands open from before: a run that finds nothing new is not clean."""
    news = troubles_among(found, on_record)
    for each in news:
        log.warning("Found: %s", each)
    before = troubles_of(stored_part(each) for each in open_beside(found, on_record))
    level = logging.WARNING if before else logging.INFO
    log.log(
        level,
        "Feed %s: %s at levels %s; from before, %s.",
        feed,
        counted_troubles(len(news)) if news else "nothing new",
        levels,
        f"{counted_troubles(len(before))} open" if before else "nothing is open",
    )
    for each in before[:_MOST_TOLD]:
        since = min(one.first_seen_at for one in each.findings if one.first_seen_at)
        log.warning("Open since %s: %s", since.isoformat(timespec="seconds"), each)
    if len(before) > _MOST_TOLD:
        log.warning("And %d more: tallystick findings %s", len(before) - _MOST_TOLD, feed)


def failure(
    feed: str,
    findings: Sequence[Finding],
    on_record: Sequence[StoredFinding],
    fail_on: Collection[str] = FAILING_VERDICTS,
) -> CheckFailed | None:
    """What a task is to fail with: the findings of these verdicts; None without one."""
    failing = troubles_among([each for each in findings if each.verdict in fail_on], on_record)
    if not failing:
        return None
    numbers = sorted(number for each in failing for number in each.numbers)
    return CheckFailed(
        feed,
        failing[0].verdict.value,
        counted_troubles(len(failing)),
        named_findings(numbers) if numbers else "",
    )
