"""What the log loses while attempts are asked is asked of them, too, before it is called lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import AttemptId
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
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
def test_what_expires_between_two_looks_of_a_plan_is_asked_too(
    story: Story, broker: Expiring, is_claimed: bool
) -> None:
    if not is_claimed:
        release_claims(story)
    broker.looks = 0

    report = plan_feed(story.services(), None, TWO)

    assert len(report.rescued) == 2
    seen_by_the_plan = broker.logs[1].log_start_offset - 1
    assert lost(story) == {(1, 20, seen_by_the_plan)}, "no file holds these"
    broker.looks = None
    land_feed(story.services(), None, TWO)
    assert story.published_offsets()[0] == ALL[0]
    assert set(range(20)) < set(story.published_offsets()[1])


def test_what_expires_between_two_looks_is_not_lost_while_staging_can_not_be_listed(
    story: Story, broker: Expiring
) -> None:
    """Nothing is lost at first; then any directory of staging may hold what partition 1 loses."""
    broker.logs[0].log_start_offset = 0
    for number, batch in enumerate(plan_feed(story.services(), None, TWO).adopted, start=3):
        assert land_batch(story.services(), batch.batch_id, AttemptId(f"{number}" * 16), TWO)
    for file in (story.directory / "landing" / "_staging").rglob("*.parquet"):
        file.unlink()  # both batches have failed twice, and hold nothing
    broker.looks = 0

    plan_feed(unreadable(story, "/landing/_staging", LISTS, is_end=True), None, TWO)

    assert lost(story) == set()
    found = [each.finding for each in story.services().ledger.findings(FEED)]
    told = {each.subject for each in found if each.code is FindingCode.COULD_NOT_TELL}
    assert told == {"/landing/_staging"}
    assert {each.verdict for each in found if each.partition == 1} == {Verdict.UNKNOWN}
