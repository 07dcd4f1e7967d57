"""Tell who a feed's file names what is new, and what is over: at least once, and in turns.

1. The recipient's turn ends in the ledger after the message is sent. A task that dies in between
   has told, and tells it again; none that dies leaves news untold.
2. One recipient who can't be reached keeps no news from the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.identities import FeedName
from tallystick.domain.report.completeness import Proof
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.news import News, Standing, Told, Wish, news_of, told_of
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState
from tallystick.ledger.ledger import Ledger
from tallystick.settings.cadence import WindowSchedule
from tallystick.settings.feed import Feed
from tallystick.workflows.reconciling.reporting import feed_completeness

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody who is told."""

    send: Callable[[News], object]
    wish: Wish


def tell(
    feed: Feed, turns: Ledger, ledger: Ledger, recipients: Mapping[str, Recipient]
) -> list[Exception]:
    """Why recipients could not be told, one error for each of these; the next call tells them.

    `turns` holds a turn while `ledger` is asked, so they
    are two. Raises what the ledger raises.
    """
    name = FeedName(feed.name)
    failures: list[Exception] = []
    for recipient, each in recipients.items():
        with turns.telling(name, recipient) as turn:
            now = standing_of(feed, ledger, turn.told)
            news = news_of(turn.told, now, each.wish)
            try:
                if news:
                    each.send(news)
            except Exception as error:  # noqa: BLE001 - a notifier's class raises what it likes
                failures.append(error)
                continue
            known = told_of(turn.told, now, each.wish)
            if known != turn.told:
                turn.keep(known)
        if news:
            log.info("Feed %s: what is new was sent to notifier %s.", feed.name, recipient)
    return failures


def standing_of(feed: Feed, ledger: Ledger, told: Told | None) -> Standing:
    """What is on record of the feed, for somebody who was told this much."""
    name = FeedName(feed.name)
    newest = ledger.newest_finding(name)
    ended = ledger.ended_findings(name, told.open_findings, told.newest_finding) if told else {}
    heads = ledger.feed_heads(name, most_runs=0)
    return Standing(
        open_findings=_told(
            ledger, [each for each in ledger.findings(name) if each.state is FindingState.OPEN]
        ),
        ended=_told(ledger, ended.values()),
        newest_finding=newest,
        verdict=heads[0].verdict if heads and heads[0].report else None,
        late_window=_late_window(feed, ledger),
        at=ledger.clock(),
        requests={each.number: each for each in ledger.waiting_requests().get(name, ())},
    )


def _told(ledger: Ledger, found: Iterable[StoredFinding]) -> dict[int, FindingPart]:
    """Those that fail a run, by number."""
    failing = [each for each in found if each.finding.verdict in FAILING_VERDICTS]
    return {each.number: each for each in ledger.told_findings(failing) if each.number is not None}


def _late_window(feed: Feed, ledger: Ledger) -> datetime | None:
    """The newest window that should be complete by now and is not proven to be."""
    if feed.complete_within is None:
        return None
    schedule = WindowSchedule(feed.schedule.cron, feed.schedule.timezone)
    due = schedule.at_or_before(ledger.clock() - feed.complete_within)
    if due <= feed.schedule.start_date:
        return None
    proven = feed_completeness(ledger, FeedName(feed.name)).proven
    is_before = proven.began_at is not None and due < proven.began_at
    return None if is_before or proven.proof_of(due) is Proof.PROVEN else due
