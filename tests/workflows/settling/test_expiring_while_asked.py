"""What the log loses while attempts are asked stands for what they hold, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import AttemptId
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed, settle_and_plan
from tallystick.workflows.planning.plan import plan_feed
from tests.support.dying_attempts import ALL, ONE, TWO, lost, release_claims
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.unreadable_store import LISTS, unreadable


class Expiring(ScriptedBroker):
    """Partition 1 expires right after a first look, and goes on expiring with every other."""

    looks: int | None = None

    def snapshot(self, topic: str) -> BrokerSnapshot:
        seen = super().snapshot(topic)
        if self.looks is not None:
            self.looks += 1
            self.logs[1].append(Kind.RECORD, 1)
            self.logs[1].log_start_offset = 19 + self.looks
        return seen


@pytest.fixture
def broker() -> Expiring:
    return Expiring("orders")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path, broker: Expiring) -> Story:
    """Two batches, one of each partition, that were landed and died; partition 0 has expired."""
    story = a_landed_story(ledger_databases(), tmp_path, 10, broker=broker)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    batches = plan_feed(story.services(max_partitions_per_batch=1), None, ONE).batches
    assert len(batches) == 2
    for number, batch in enumerate(batches, start=1):
        assert land_batch(story.services(), batch.batch_id, AttemptId(f"{number}" * 16), ONE)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 5)
    broker.logs[0].log_start_offset = 20
    return story


@pytest.mark.parametrize("is_claimed", [False, True], ids=["released", "claimed"])
def test_what_expires_between_settling_and_the_plan_is_settled_by_the_next_run(
    story: Story, broker: Expiring, is_claimed: bool
) -> None:
    if not is_claimed:
        release_claims(story)
    broker.looks = 0

    report = settle_and_plan(story.services(), None, TWO)

    assert len(report.rescued) == 1
    assert all(from_offset >= 20 for _, from_offset, _ in lost(story)), "no file holds these"
    broker.looks = None
    for _ in range(2):
        land_feed(story.services(), None, TWO)
    assert story.published_offsets()[0] == ALL[0]
    assert set(range(20)) < set(story.published_offsets()[1])


def test_nothing_that_expires_is_lost_while_staging_can_not_be_listed(
    story: Story, broker: Expiring
) -> None:
    """Any directory of staging may hold it."""
    broker.looks = 0

    plan_feed(unreadable(story, "/landing/_staging", LISTS, is_end=True), None, TWO)

    assert lost(story) == set()
    found = [each.finding for each in story.services().ledger.findings(FEED)]
    assert {(each.code, each.verdict) for each in found} == {(FindingCode.EXPIRED, Verdict.UNKNOWN)}
    assert {path for each in found for path in held_in(each.evidence) or ()} == {
        "/landing/_staging"
    }
