"""A batch is committed while a plan looks at the log: commits don't wait for the planning lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tallystick.workflows.planning.plan import dry_run, plan_feed
from tests.support.dying_attempts import (
    TWO,
    a_half_landed_story,
    expire,
    landed,
    lost,
    record_proof,
)
from tests.support.meanwhile import Meanwhile
from tests.support.story import Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    return a_half_landed_story(ledger_databases(), tmp_path)


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

    broker: Any = Meanwhile(story.broker, commit, method="snapshot", call=1)
    caplog.set_level("INFO")
    report = plan_feed(replace(story.services(), broker=broker), None, TWO)

    assert "looking anew" in caplog.text
    assert report.findings == ()
    assert report.adopted == []
    assert lost(story) == set()
    assert [[str(one.offsets) for one in each.ranges] for each in report.batches] == [
        ["orders-0 [20, 25)", "orders-1 [20, 25)"]
    ]
