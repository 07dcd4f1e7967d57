"""A state that lasts is one finding, however far the log grows behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.window import Window
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
HOUR = timedelta(hours=1)


class AnHourLater(ScriptedBroker):
    """It is looked at an hour after its records were sent, so their window is over."""

    def snapshot(self, topic: str) -> BrokerSnapshot:
        return replace(super().snapshot(topic), taken_at=NOW + HOUR)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One landed batch."""
    return a_landed_story(ledger_databases(), tmp_path, 10, broker=AnHourLater("orders"))


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


def test_an_unread_partition_is_one_finding_while_the_log_grows(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    story.broker.logs[0].append(Kind.RECORD, 3)
    reconcile(story.services())
    (unread,) = numbers(story, "N1")
    story.broker.logs[0].append(Kind.RECORD, 3)
    reconcile(story.services())
    assert numbers(story, "N1") == [unread]


def land(story: Story, hours: int) -> RunReport:
    """A run for the hour that begins so many hours from now."""
    window = Window(NOW + hours * HOUR, NOW + (hours + 1) * HOUR)
    return land_feed(story.services(until="window_end"), window, OWNER)


def test_a_last_record_from_the_future_stalls_nothing_before_more_is_readable(
    story: Story,
) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=NOW + 300 * 24 * HOUR)
    assert not land(story, 0).findings
    log.open(3)
    assert not land(story, 1).findings
    log.end(is_committed=True)
    (found,) = land(story, 2).findings
    assert (found.code.value, found.from_offset, found.until_offset) == ("Z5", 10, 15)


def stalled(story: Story) -> None:
    """Offset 10 is from the future, and fifty more are readable behind it."""
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=NOW + 300 * 24 * HOUR)
    log.append(Kind.RECORD, 50)
    assert [each.code.value for each in land(story, 0).findings] == ["Z5"]


def test_a_log_that_is_over_stalls_nothing_any_more(story: Story) -> None:
    stalled(story)
    story.broker.recreate(2)
    story.broker.logs[0].append(Kind.RECORD, 10)
    land(story, 1)
    reconcile(story.services())
    assert not numbers(story, "Z5")


def test_a_new_log_is_not_stalled_by_what_held_up_the_old_one(story: Story) -> None:
    stalled(story)
    story.broker.recreate(2)
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    log.append(Kind.RECORD, 60, at=NOW + 300 * 24 * HOUR)
    assert "Z5" not in [each.code.value for each in land(story, 1).findings]
    (found,) = (each for each in land(story, 2).findings if each.code.value == "Z5")
    assert (found.generation, found.from_offset) == (2, 5)


def test_the_log_after_a_cut_ends_what_stalled_before_it(story: Story) -> None:
    stalled(story)
    story.broker.logs[0].cut(12)
    land(story, 1)
    (cut,) = numbers(story, "A3")
    assert len(numbers(story, "Z5")) == 1
    repair_feed(story.services(), [cut], OWNER)
    reconcile(story.services())
    assert not numbers(story, "Z5")


def test_a_partition_that_stands_still_is_one_finding_and_fails_every_run(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=NOW + 300 * 24 * HOUR)
    told = []
    for hour in range(4):
        log.append(Kind.RECORD, 2)
        told.append([each.code.value for each in land(story, hour).findings])
    assert len(numbers(story, "Z5")) == 1
    assert told == [["Z5"]] * 4
