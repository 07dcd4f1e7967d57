"""The start policy is of the feed, whichever partition had a leader at its first plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.errors import PartitionsLeaderless
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.story import FEED, Story


def test_a_partition_without_a_leader_at_the_first_plan_begins_where_the_feed_begins(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    broker = MinuteByMinute("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 1000)
        log.log_start_offset = 500
    story = Story(ledger_databases(), tmp_path, broker)
    services = replace(story.services(), clock=broker)
    source = services.feed.source.model_copy(update={"start": "latest"})
    services = replace(services, feed=services.feed.model_copy(update={"source": source}))

    def run(owner: str) -> RunReport:
        return land_feed(services, None, Owner(owner))

    broker.leaderless = {1}
    with pytest.raises(PartitionsLeaderless) as refused:
        run("one")
    assert "partitions [1] begin by source.start: latest" in str(refused.value)
    assert not services.ledger.accounts(FEED).generations, "a feed begins as a whole"
    assert reconcile(services).verdict is Verdict.UNKNOWN
    broker.leaderless = set()
    run("two")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 3)
    report = run("three")

    assert story.published_offsets() == {0: [1000, 1001, 1002], 1: [1000, 1001, 1002]}
    assert report.findings == []
