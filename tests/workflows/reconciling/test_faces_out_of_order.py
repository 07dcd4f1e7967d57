"""Reports are stored in another order than they were asked for: the later question counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import (
    feed_completeness,
    report_of,
    store_report,
)
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.silent_store import SilentStore
from tests.support.story import FEED, Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = MinuteByMinute("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    assert not land_feed(services_of(story), None, Owner("one")).errors
    return story


def services_of(story: Story) -> Services:
    assert isinstance(story.broker, MinuteByMinute)
    return replace(story.services(), clock=story.broker)


@pytest.mark.parametrize("long_one_is_stored", ["first", "last"])
def test_a_silence_is_not_ended_by_an_answer_to_an_earlier_question(
    story: Story, long_one_is_stored: str
) -> None:
    """A reconcile hears storage, and reads in full for hours; another one begins later, hears
    nothing, and is done first.
    """
    services = services_of(story)
    long = report_of(services, reconcile(services))
    if long_one_is_stored == "first":
        store_report(services, long)
    silent = replace(services, store=SilentStore(services.store))  # type: ignore[arg-type]
    later = report_of(silent, reconcile(silent))
    assert later.verdict is Verdict.UNKNOWN
    store_report(services, later)
    if long_one_is_stored == "last":
        store_report(services, long)

    [head] = services.ledger.feed_heads(FEED, most_runs=0)
    assert head.verdict is Verdict.UNKNOWN
    services.broker.snapshot("orders")
    land_feed(services, None, Owner("two"))
    found = feed_completeness(services.ledger, FEED).proven
    assert found.up_to is not None
    assert found.up_to <= later.taken_at
