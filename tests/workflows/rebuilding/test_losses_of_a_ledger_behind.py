"""What a ledger from an older backup calls unread may have been read: none of it is proven lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.landed_feed import land
from tests.support.scripted_broker import Kind
from tests.support.story import Story


@pytest.fixture
def behind(story: Story, backup: Callable[[Story], Callable[[], Story]]) -> Story:
    """What was landed after the backup has expired since."""
    land(story)
    restored = backup(story)
    log = story.broker.logs[1]
    log.append(Kind.RECORD, 5)
    land(story)
    log.log_start_offset = len(log.entries)
    return restored()


def losses_told(story: Story, level: Level = Level.L2) -> list[Finding]:
    return [
        each
        for each in reconcile(story.services(), level).findings
        if each.code is FindingCode.EXPIRED
    ]


def test_what_a_batch_unknown_to_the_ledger_may_hold_is_not_called_lost(behind: Story) -> None:
    [found] = losses_told(behind)
    assert (found.partition, found.from_offset, found.until_offset) == (1, 7, 12)
    assert found.verdict is Verdict.UNKNOWN
    assert "A10" in found.cause
    assert "tallystick ledger rebuild orders" in found.next_step


def test_a_look_that_lists_no_storage_remembers_that_the_ledger_is_behind(behind: Story) -> None:
    reconcile(behind.services())
    assert [each.verdict for each in losses_told(behind, Level.L1)] == [Verdict.UNKNOWN]


def test_once_the_ledger_has_caught_up_only_what_is_lost_is_told(behind: Story) -> None:
    reconcile(behind.services())
    log = behind.broker.logs[1]
    log.append(Kind.RECORD, 4)
    log.log_start_offset = len(log.entries) - 1
    assert rebuild(behind.services()).is_whole
    [found] = losses_told(behind)
    assert (found.from_offset, found.until_offset) == (12, 15)
    assert found.verdict is Verdict.PROVEN_LOSS
