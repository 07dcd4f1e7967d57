"""A partition that can't be read now holds up no other one of its batch, and keeps its claim."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId, Owner
from tallystick.errors import BrokerUnavailable
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tests.support.dying_attempts import lost, record_proof
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

LONG = timedelta(minutes=1)
ONE, TWO = Owner("one"), Owner("two")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def frozen(story: Story) -> BatchPlan:
    """One batch of both partitions; nobody has begun it."""
    [batch] = plan_feed(story.services(), None, ONE).batches
    assert len(batch.ranges) == 2
    return batch


def claims(story: Story) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for batch in story.services().ledger.accounts(FEED).unfinished:
        for each in batch.plan.ranges:
            offsets = each.offsets
            place = (offsets.from_offset, offsets.until_offset)
            found.setdefault(offsets.partition.partition, []).append(place)
    return found


def test_a_partition_without_a_leader_holds_up_no_other_of_its_batch(story: Story) -> None:
    frozen(story)
    story.broker.leaderless = {1}

    land_feed(story.services(), None, TWO)

    assert story.published_offsets() == {0: list(range(10))}
    assert claims(story) == {1: [(0, 10)]}
    story.broker.leaderless = set()
    land_feed(story.services(), None, TWO)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_a_high_watermark_that_lags_holds_up_no_other_partition(story: Story) -> None:
    frozen(story)
    log = story.broker.logs[1]
    log.epoch += 1
    log.open_from = 7

    land_feed(story.services(), None, TWO)

    assert story.published_offsets() == {0: list(range(10))}
    assert claims(story) == {1: [(0, 10)]}


def test_a_batch_that_failed_twice_keeps_the_claim_of_a_partition_without_a_leader(
    story: Story,
) -> None:
    batch = frozen(story)
    for number in "12":
        assert land_batch(story.services(), batch.batch_id, AttemptId(number * 16), ONE)
    for file in (story.directory / "landing" / "_staging").rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-7])  # nobody can prove them
    story.broker.leaderless = {1}

    land_feed(story.services(), None, TWO)

    assert story.published_offsets() == {0: list(range(10))}
    assert claims(story) == {1: [(0, 10)]}


def test_a_partition_without_a_leader_costs_no_verified_row(story: Story) -> None:
    """Landed without the sick one, its neighbour would stand in the way of the proof's commit."""
    batch = frozen(story)
    attempt = land_batch(story.services(), batch.batch_id, AttemptId("1" * 16), ONE)
    assert attempt
    record_proof(story.services(), attempt)
    story.broker.leaderless = {1}

    report = land_feed(story.services(), None, TWO)

    assert [each.batch_id for each in report.plan.rescued] == [batch.batch_id]
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
    story.broker.leaderless = set()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
        log.log_start_offset = 10
    assert not land_feed(story.services(), None, TWO).findings
    assert lost(story) == set()


@pytest.mark.parametrize("kind", [Kind.RECORD, Kind.CONTROL], ids=["rows alone", "a hole"])
@pytest.mark.parametrize("is_tried_twice", [False, True])
def test_a_batch_is_left_whole_while_its_files_may_be_proven_later(
    story: Story, kind: Kind, is_tried_twice: bool
) -> None:
    story.broker.logs[1].entries[4].kind = kind
    batch = frozen(story)
    for number in "12" if is_tried_twice else "1":
        assert land_batch(story.services(), batch.batch_id, AttemptId(number * 16), ONE)
    story.broker.leaderless = {1}

    land_feed(story.services(), None, TWO)

    assert claims(story) == {0: [(0, 10)], 1: [(0, 10)]}
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    story.broker.logs[0].log_start_offset = 10
    land_feed(story.services(), None, TWO)
    story.broker.leaderless = set()
    land_feed(story.services(), None, TWO)
    assert lost(story) == set()
    rows = [each for each in range(15) if each != 4 or kind is Kind.RECORD]
    assert story.published_offsets() == {0: list(range(15)), 1: rows}


def test_a_batch_that_loses_claims_in_the_same_look_is_left_whole(story: Story) -> None:
    """What its attempt has read stands for both partitions, and can't be proven in parts."""
    batch = frozen(story)
    assert land_batch(story.services(), batch.batch_id, AttemptId("1" * 16), ONE)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    story.broker.logs[0].log_start_offset = 10
    story.broker.leaderless = {1}

    land_feed(story.services(), None, TWO)

    assert claims(story) == {0: [(0, 10)], 1: [(0, 10)]}
    story.broker.leaderless = set()
    land_feed(story.services(), None, TWO)
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}


def test_a_living_attempt_keeps_all_claims_of_its_batch(story: Story) -> None:
    batch = frozen(story)
    story.broker.leaderless = {1}
    with pytest.raises(BrokerUnavailable):
        land_batch(story.services(), batch.batch_id, AttemptId("1" * 16), ONE)
    held = story.services().ledger.begin_attempt(
        batch.batch_id, attempt_id=AttemptId("2" * 16), owner=ONE, lease=LONG
    )
    assert held

    land_feed(story.services(), None, TWO)

    assert claims(story) == {0: [(0, 10)], 1: [(0, 10)]}
