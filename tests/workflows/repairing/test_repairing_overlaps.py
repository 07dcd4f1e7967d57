"""Repair where somebody wrote past the schema, and the ledger has offsets in two batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
_FIRST = "generation_id = (SELECT generation_id FROM generation WHERE partition = 0)"
_FORGET = (
    "ALTER TABLE offset_range DROP CONSTRAINT offset_range_no_overlap",
    "ALTER TABLE offset_range DISABLE TRIGGER USER",
    "ALTER TABLE generation DISABLE TRIGGER USER",
    "ALTER TABLE tail_anchor DISABLE TRIGGER USER",
    "UPDATE offset_range SET state = 'released', record_count = NULL, hole_count = NULL"
    f" WHERE {_FIRST}",
    f"DELETE FROM tail_anchor WHERE {_FIRST}",
    f"UPDATE generation SET frontier = 0, read_until = NULL WHERE {_FIRST}",
)
_REMEMBER = (
    "UPDATE offset_range SET state = 'committed', hole_count = 0,"
    f" record_count = upper(offsets) - lower(offsets) WHERE {_FIRST} AND state = 'released'",
    "ALTER TABLE offset_range ENABLE TRIGGER USER",
    "ALTER TABLE generation ENABLE TRIGGER USER",
    "ALTER TABLE tail_anchor ENABLE TRIGGER USER",
)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Of two partitions 0-9 and 10-14 are landed; then 0-14 of partition 0 once more."""
    broker = ScriptedBroker("orders")
    story = Story(ledger_databases(), tmp_path, broker)
    for count in (10, 5):
        for log in broker.logs.values():
            log.append(Kind.RECORD, count)
        land_feed(story.services(), None, OWNER)
    by_hand(story, _FORGET)
    land_feed(story.services(), None, OWNER)
    by_hand(story, _REMEMBER)
    assert story.published_offsets()[0] == sorted([*range(15), *range(15)])
    return story


def by_hand(story: Story, statements: tuple[str, ...]) -> None:
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        for each in statements:
            hand.execute(each)  # type: ignore[call-overload]


def codes(report: ReconcileReport) -> list[str]:
    return sorted(each.code.value for each in report.findings)


def files_of(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def numbers(story: Story, code: str) -> list[int]:
    standing = story.services().ledger.findings(FEED)
    return [each.finding_id for each in standing if each.finding.code.value == code]


def test_rows_of_two_batches_are_landed_once_in_place_of_all(story: Story) -> None:
    assert {"A6", "B2"} <= set(codes(reconcile(story.services())))
    [again] = dry_repair(story.services(), ()).plan.land_again
    assert {str(each.offsets) for each in again.ranges} == {"orders-0 [0, 15)", "orders-1 [0, 15)"}
    report = repair_feed(story.services(), (), OWNER)
    assert not report.errors
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
    assert codes(reconcile(story.services())) == []


def test_a_single_finding_draws_in_every_batch_that_shares_its_offsets(story: Story) -> None:
    reconcile(story.services())
    repair_feed(story.services(), numbers(story, "B2")[:1], OWNER)
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
    assert codes(reconcile(story.services())) == []


def test_a_missing_file_is_landed_again_with_those_that_share_its_offsets(story: Story) -> None:
    files_of(story)[0].unlink()
    reconcile(story.services())
    repair_feed(story.services(), numbers(story, "A8"), OWNER)
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
    assert codes(reconcile(story.services())) == []


def test_none_is_replaced_where_the_broker_lacks_rows_of_one(story: Story) -> None:
    before = files_of(story)
    story.broker.logs[0].log_start_offset = 4
    reconcile(story.services())
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert not report.errors
    assert all(
        "can only be replaced together" in each.reason
        for each in report.plan.not_mended
        if each.finding_id in numbers(story, "B2")
    )
    assert files_of(story) == before


def test_a_file_that_can_t_be_read_hides_neither_itself_nor_what_was_found(story: Story) -> None:
    """Its rows can't be compared with those of the other batch: that part alone is unknown."""
    before = codes(reconcile(story.services()))
    damaged = files_of(story)[0]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    after = codes(reconcile(story.services()))
    assert {"C1", "U1"} <= set(after)
    assert set(before) <= set(after), "what could not be compared has not ended"
