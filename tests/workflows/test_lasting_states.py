"""A state that lasts is one finding, however far the log grows behind it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.window import Window
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.run import land_feed
from tests.support.scripted_broker import NOW, Kind
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
HOUR = timedelta(hours=1)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One landed batch."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def numbers(story: Story, code: str) -> list[int]:
    return [
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code.value == code
    ]


def test_a_loss_that_is_near_is_one_finding_while_the_log_grows(story: Story) -> None:
    story.broker.retention_ms = 24 * 3_600_000
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 3, at=NOW - 23 * HOUR)
    reconcile(story.services())
    (near,) = numbers(story, "W1")
    log.append(Kind.RECORD, 1)
    report = reconcile(story.services())
    assert numbers(story, "W1") == [near]
    (told,) = report.findings
    assert (told.from_offset, told.until_offset) == (10, 14)


def test_an_unread_partition_is_one_finding_while_the_log_grows(story: Story) -> None:
    story.broker.logs[2] = type(story.broker.logs[0])()
    story.broker.logs[2].append(Kind.RECORD, 3)
    reconcile(story.services())
    (unread,) = numbers(story, "N1")
    story.broker.logs[2].append(Kind.RECORD, 3)
    reconcile(story.services())
    assert numbers(story, "N1") == [unread]


def test_a_partition_that_stands_still_is_one_finding_and_fails_every_run(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=NOW + 300 * 24 * HOUR)
    told = []
    for hour in range(4):
        log.append(Kind.RECORD, 2)
        window = Window(NOW + hour * HOUR, NOW + (hour + 1) * HOUR)
        report = land_feed(story.services(until="window_end"), window, OWNER)
        told.append([each.code.value for each in report.findings])
    assert len(numbers(story, "Z5")) == 1
    assert told == [["Z5"]] * 4
