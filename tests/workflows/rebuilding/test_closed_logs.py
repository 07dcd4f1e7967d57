"""A rebuild that closes a log forgets nothing that the ledger has seen in it and not landed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.landed_feed import OWNER
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

Backup = Callable[[Story], Callable[[], Story]]
BOTH_TAILS = {(0, 10, 20), (1, 10, 20)}


@pytest.fixture
def grown(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of each partition are landed, ten more are readable."""
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    return story


@pytest.fixture(params=["seen", "claimed"])
def restore(request: pytest.FixtureRequest, grown: Story, backup: Backup) -> Callable[[], Story]:
    """The ledger of a backup from when these ten were seen, or claimed by a plan."""
    services = grown.services()
    if request.param == "claimed":
        plan_feed(services, None, OWNER)
    else:
        reconcile(services)
    services.ledger.close()
    return backup(grown)


def unread(story: Story) -> set[tuple[int | None, int | None, int | None]]:
    """What is told of the first generation after a rebuild and a run, by two looks alike."""
    assert rebuild(story.services()).is_whole
    assert not land_feed(story.services(), None, OWNER).errors
    first, second = (reconcile(story.services()) for _ in range(2))
    assert first.findings == second.findings
    assert first.verdict is Verdict.UNKNOWN
    return {_interval(each) for each in second.findings if each.code is FindingCode.LEDGER_UNSOUND}


def _interval(found: Finding) -> tuple[int | None, int | None, int | None]:
    assert found.generation == 1
    return found.partition, found.from_offset, found.until_offset


@pytest.mark.parametrize("looks_first", [False, True])
def test_the_tail_of_a_log_that_was_cut_is_told(
    grown: Story, restore: Callable[[], Story], looks_first: bool
) -> None:
    for log in grown.broker.logs.values():
        log.cut(15)
        log.append(Kind.RECORD, 10, value=b"other")
    land_feed(grown.services(), None, OWNER)
    numbers = [each.finding_id for each in grown.services().ledger.findings(FEED)]
    repair_feed(grown.services(), numbers, OWNER)
    land_feed(grown.services(), None, OWNER)
    assert reconcile(grown.services()).verdict is Verdict.PROVEN_LOSS
    restored = restore()
    if looks_first:
        reconcile(restored.services())
    assert unread(restored) == BOTH_TAILS


@pytest.mark.parametrize("looks_first", [False, True])
def test_the_tail_of_a_topic_that_was_made_again_is_told(
    grown: Story, restore: Callable[[], Story], looks_first: bool
) -> None:
    grown.broker.recreate()
    for log in grown.broker.logs.values():
        log.append(Kind.RECORD, 7, value=b"new")
    land_feed(grown.services(), None, OWNER)
    assert reconcile(grown.services()).verdict is Verdict.PROVEN_LOSS
    restored = restore()
    if looks_first:
        reconcile(restored.services())
    assert unread(restored) == BOTH_TAILS


def test_a_gap_between_manifests_of_a_log_that_is_over_is_told(
    grown: Story, lose: Callable[[Story], Story]
) -> None:
    for log in grown.broker.logs.values():
        log.log_start_offset = 15
    land_feed(grown.services(), None, OWNER)
    grown.broker.recreate()
    for log in grown.broker.logs.values():
        log.append(Kind.RECORD, 7, value=b"new")
    land_feed(grown.services(), None, OWNER)
    assert unread(lose(grown)) == {(0, 10, 15), (1, 10, 15)}
