"""A batch is committed while a plan looks at the log: commits don't wait for the planning lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tallystick.workflows.planning.plan import dry_run, plan_feed
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind
from tests.support.story import Story, a_landed_story
from tests.workflows.asking.test_only_copies import TWO, expire, landed, lost, record_proof


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of two partitions are landed, ten more are readable."""
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    return story


def test_a_plan_is_decided_again_when_a_batch_that_it_cuts_was_committed(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    rmtree(story.directory / "landing" / "_staging")  # nobody finds anything to ask
    expire(story)
    foreseen = dry_run(story.services(), None)
    assert {(each.from_offset, each.until_offset) for each in foreseen.findings} == {(10, 20)}

    def commit() -> None:
        story.services().ledger.commit(attempt)

    # The first look finds what is to be asked, the second one plans.
    broker: Any = Meanwhile(story.broker, commit, method="snapshot", call=2)
    caplog.set_level("INFO")
    report = plan_feed(replace(story.services(), broker=broker), None, TWO)

    assert "planning anew" in caplog.text
    assert report.findings == ()
    assert report.adopted == []
    assert lost(story) == set()
    assert [[str(one.offsets) for one in each.ranges] for each in report.batches] == [
        ["orders-0 [20, 25)", "orders-1 [20, 25)"]
    ]
