"""A log has one life under one topic id, unless it was cut: no offset is landed in two of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.story import FEED, Story

OWNER = Owner("one")
CLOSE = (
    "UPDATE generation SET state = 'closed', ended_at = now(), ending_code = '{code}',"
    " ending_reason = 'by hand' WHERE ordinal = 1 AND partition = 0"
)
SECOND_LIFE = (
    "INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal, first_offset,"
    " frontier, last_seen_until, opening_reason) SELECT feed, topic, partition, cluster_id,"
    " topic_id, 2, {first}, {first}, {first}, 'by hand' FROM generation"
    " WHERE ordinal = 1 AND partition = 0"
)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, landed up to 20."""
    story = Story(ledger_databases(), tmp_path, MinuteByMinute("orders", partitions=1))
    story.broker.logs[0].append(Kind.RECORD, 20)
    land_feed(story.services(), None, OWNER)
    return story


def by_hand(story: Story, *statements: str) -> None:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        for each in statements:
            hand.execute(each.encode())


@pytest.mark.parametrize("code", ["A3", "A5", "A6"])
def test_the_schema_refuses_a_second_life_below_the_frontier_of_a_log_that_was_not_cut(
    story: Story, code: str
) -> None:
    with pytest.raises(psycopg.Error, match="no finding says that the log was cut"):
        by_hand(story, CLOSE.format(code=code), SECOND_LIFE.format(first=19))
    assert reconcile(story.services()).findings == ()


def test_a_second_life_from_the_frontier_on_lands_nothing_twice(story: Story) -> None:
    by_hand(story, CLOSE.format(code="A6"), SECOND_LIFE.format(first=20))
    story.broker.logs[0].append(Kind.RECORD, 5)
    assert land_feed(story.services(), None, OWNER).findings == []
    assert story.published_offsets() == {0: list(range(25))}
    assert reconcile(story.services()).findings == ()


def test_a_log_that_was_cut_gets_its_second_life_and_no_finding_for_it(story: Story) -> None:
    story.broker.logs[0].cut(12)
    land_feed(story.services(), None, OWNER)
    [cut] = story.services().ledger.findings(FEED)
    repair_feed(story.services(), [cut.finding_id], OWNER)
    story.broker.logs[0].append(Kind.RECORD, 8)
    land_feed(story.services(), None, OWNER)
    assert {each.ordinal for each in story.services().ledger.generations(FEED)[0]} == {1, 2}
    assert sorted(story.published_offsets()[0]) == sorted([*range(20), *range(12, 20)])
    assert reconcile(story.services()).findings == ()


def test_what_lies_between_a_gap_and_a_cut_is_landed_twice_and_told(story: Story) -> None:
    """The records from 20 on are planned by a run that dies; those from 25 on land before them."""
    story.broker.logs[0].append(Kind.RECORD, 5)
    plan_feed(story.services(lease=timedelta(minutes=1)), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 5)
    land_feed(story.services(), None, Owner("two"))
    assert story.published_offsets() == {0: [*range(20), *range(25, 30)]}
    story.broker.logs[0].cut(28)
    story.broker.logs[0].append(Kind.RECORD, 4)
    land_feed(story.services(), None, Owner("two"))
    cuts = [each.finding_id for each in story.services().ledger.findings(FEED)]
    repair_feed(story.services(), cuts, Owner("two"))
    land_feed(story.services(), None, Owner("two"))
    assert story.published_offsets()[0].count(27) == 2
    assert [told(each) for each in reconcile(story.services()).findings] == [
        ("A3", Verdict.PROVEN_LOSS, 1, 0, 28, 30),
        ("A6", Verdict.PROVEN_DUP, 2, 0, 25, 28),
    ]


def test_offsets_of_two_lives_of_one_log_are_told(story: Story) -> None:
    """Somebody has written past the schema."""
    by_hand(
        story,
        "ALTER TABLE generation DISABLE TRIGGER USER",
        CLOSE.format(code="A3"),
        SECOND_LIFE.format(first=5),
        "ALTER TABLE generation ENABLE TRIGGER USER",
    )
    land_feed(story.services(), None, OWNER)
    assert len(story.published_offsets()[0]) == 35
    found = reconcile(story.services())
    assert found.verdict is Verdict.PROVEN_DUP
    assert [told(each) for each in found.findings] == [("A6", Verdict.PROVEN_DUP, 2, 0, 5, 20)]
    assert "generations 1 and 2" in found.findings[0].cause
    assert [told(each) for each in reconcile(story.services()).findings] == [
        ("A6", Verdict.PROVEN_DUP, 2, 0, 5, 20)
    ]


def told(each: Finding) -> tuple[str, Verdict, int | None, int | None, int | None, int | None]:
    return (
        each.code.value,
        each.verdict,
        each.generation,
        each.partition,
        each.from_offset,
        each.until_offset,
    )
