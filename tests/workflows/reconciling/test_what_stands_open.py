"""What stands open is said by everybody: reconcile, the list of findings, repair, and each run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.run_news import open_beside
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.workflows.landing.checking import failure
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions with ten landed records each, and ten more that nobody has read."""
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    return story


def land(story: Story) -> RunReport:
    """A run of its own each time: what another run has found is no news."""
    return land_feed(story.services(), None, Owner(token_hex(4)))


def standing(story: Story) -> list[StoredFinding]:
    return list(story.services().ledger.findings(FEED))


def places(stored: list[StoredFinding]) -> list[tuple[str, int | None, int | None]]:
    return [(x.finding.code.value, x.finding.from_offset, x.finding.until_offset) for x in stored]


def test_a_loss_that_reconcile_states_is_on_record_with_a_number_at_once(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15

    [told] = reconcile(story.services()).findings

    assert told.verdict is Verdict.PROVEN_LOSS
    [stored] = standing(story)
    assert stored.finding.key == told.key
    assert stored.state is FindingState.OPEN
    [left] = dry_repair(story.services(), ()).plan.not_mended
    assert left.finding_id == stored.finding_id
    assert "can be had nowhere any more" in left.reason


def test_a_loss_that_a_reconcile_has_recorded_is_no_news_of_a_run(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15
    reconcile(story.services())
    [recorded] = standing(story)

    assert land(story).findings == []

    assert [each.finding_id for each in standing(story)] == [recorded.finding_id]
    assert [each.key for each in reconcile(story.services()).findings] == [recorded.finding.key]
    assert standing(story)[0].finding_id == recorded.finding_id


def test_what_was_lost_since_a_reconcile_is_told_by_the_run(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = 17

    [news] = land(story).findings

    assert (news.from_offset, news.until_offset) == (15, 17)
    assert places(standing(story)) == [("A1", 10, 15), ("A1", 15, 17)]


def test_a_look_without_the_partition_ends_no_loss(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15
    reconcile(story.services())
    story.broker.leaderless = {0}

    land(story)
    reconcile(story.services())

    assert ("A1", 10, 15) in places(standing(story))


def test_a_loss_that_a_reconcile_has_recorded_stays_accepted(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15
    reconcile(story.services())
    [recorded] = standing(story)
    accept(story.services().ledger, recorded.finding_id)

    assert land(story).findings == []
    [told] = reconcile(story.services()).findings
    assert told.verdict is Verdict.WAIVED


@pytest.mark.parametrize("grown", [0, 20], ids=["cut", "cut and grown again"])
def test_a_cut_that_a_reconcile_has_recorded_is_repaired_by_its_number(
    story: Story, grown: int
) -> None:
    log = story.broker.logs[0]
    land(story)
    log.cut(12)
    log.append(Kind.RECORD, grown)

    reconcile(story.services())
    [recorded] = standing(story)
    assert recorded.finding.code is FindingCode.LOG_CUT
    land(story)

    assert [each.finding_id for each in standing(story)] == [recorded.finding_id]
    assert dry_repair(story.services(), [recorded.finding_id]).plan.new_generations


def test_a_recreated_topic_is_told_once_before_and_after_the_plan(story: Story) -> None:
    reconcile(story.services())
    story.broker.recreate()
    reconcile(story.services())
    recorded = standing(story)

    land(story)
    reconcile(story.services())

    assert [each.finding_id for each in standing(story)] == [each.finding_id for each in recorded]
    assert {each.finding.code for each in standing(story)} == {FindingCode.TOPIC_RECREATED}


def test_a_partition_that_was_added_is_begun_by_any_look(story: Story) -> None:
    story.broker.logs[2] = type(story.broker.logs[0])()
    story.broker.logs[2].append(Kind.RECORD, 4)

    assert reconcile(story.services()).findings == ()
    story.broker.logs[2].log_start_offset = 3

    [news] = land(story).findings
    assert (news.partition, news.from_offset, news.until_offset) == (2, 0, 3)
    assert news.verdict is Verdict.PROVEN_LOSS, "the reconcile has seen it"


def test_a_run_that_finds_nothing_new_says_what_stands_open(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert land(story).findings == []
    assert "nothing new at levels L0, L1 and L4; from before, nothing is open." in caplog.text
    story.broker.logs[0].append(Kind.RECORD, 10)
    story.broker.logs[0].log_start_offset = 25
    land(story)
    caplog.clear()

    report = land(story)

    assert report.findings == [], "an old loss does not fail every later run"
    [stored] = open_beside(report.findings, report.on_record)
    assert "nothing new at levels L0, L1 and L4; from before, 1 trouble open." in caplog.text
    assert f"finding {stored.finding_id}: orders-0 [20, 25) A1 PROVEN_LOSS" in caplog.text


def test_a_run_names_what_it_found_by_number(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    story.broker.logs[0].log_start_offset = 15
    report = land(story)
    [stored] = report.on_record
    assert f"Found: finding {stored.finding_id}: orders-0 [10, 15) A1" in caplog.text
    assert open_beside(report.findings, report.on_record) == []
    failed = failure(FEED, report.findings, report.on_record)
    assert f"PROVEN_LOSS, 1 trouble (finding {stored.finding_id})" in str(failed)


def test_what_two_people_have_accepted_does_not_stand_open(story: Story) -> None:
    story.broker.logs[0].log_start_offset = 15
    [stored] = land(story).on_record
    accept(story.services().ledger, stored.finding_id)
    report = land(story)
    assert open_beside(report.findings, report.on_record) == []
