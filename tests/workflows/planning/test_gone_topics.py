"""A topic that is deleted for good: what was seen of it and not landed is named, to the offset."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import TopicGone, TopicUnknown
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept

RUN = Owner("run")
UNREAD = {(0, 5, 8), (1, 5, 9)}


@pytest.fixture
def story(ledger_dsn: str, tmp_path: Path) -> Story:
    """Five records of each partition are landed; a look has seen more, and then the topic went."""
    story = a_landed_story(ledger_dsn, tmp_path, 5)
    story.broker.logs[0].append(Kind.RECORD, 3)
    story.broker.logs[1].append(Kind.RECORD, 4)
    reconcile(story.services())
    story.broker.topic = "another"
    return story


def standing(story: Story) -> set[tuple[int | None, int | None, int | None]]:
    """The offsets that findings A5 name."""
    return {
        (each.finding.partition, each.finding.from_offset, each.finding.until_offset)
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.TOPIC_RECREATED
    }


def verdicts(story: Story) -> set[Verdict]:
    return {each.finding.verdict for each in story.services().ledger.findings(FEED)}


def a_day_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known now is as good as known for a day."""
    monkeypatch.setattr("tallystick.domain.rules.a5_topic_recreated._BELIEVED_AFTER", timedelta(0))


def test_the_last_ends_that_a_look_has_seen_are_evidence(story: Story) -> None:
    found = reconcile(story.services())
    assert found.verdict is Verdict.UNKNOWN
    assert standing(story) == UNREAD
    again = reconcile(story.services())
    assert [each.key for each in again.findings] == [each.key for each in found.findings]
    told = story.services().ledger.findings(FEED)
    assert len(told) == len(UNREAD)
    assert all("Don't create it by hand" in each.finding.next_step for each in told)
    assert all("the topic was deleted before" in each.finding.cause for each in told)


def test_a_run_names_them_too_and_every_command_gives_the_advice(story: Story) -> None:
    for command in (
        lambda: dry_run(story.services(), None),
        lambda: land_feed(story.services(), None, RUN),
        lambda: repair_feed(story.services(), (), RUN),
    ):
        with pytest.raises(TopicGone) as raised:
            command()
        assert "Don't create it by hand" in str(raised.value)
    assert standing(story) == UNREAD


def test_a_topic_that_never_was_is_still_unknown(story: Story) -> None:
    services = story.services()
    feed = services.feed.model_copy(update={"name": "other"})
    with pytest.raises(TopicUnknown, match="does not exist") as raised:
        dry_run(replace(services, feed=feed), None)
    assert not isinstance(raised.value, TopicGone)


def test_after_a_day_it_is_lost_and_what_was_accepted_stays_so(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile(story.services())
    assert verdicts(story) == {Verdict.UNKNOWN}
    first, _ = story.services().ledger.findings(FEED)
    accept(story.services().ledger, first.finding_id)
    a_day_later(monkeypatch)
    for _ in range(2):
        reconcile(story.services())
        assert {
            (each.finding.verdict, each.state) for each in story.services().ledger.findings(FEED)
        } == {
            (Verdict.UNKNOWN, FindingState.WAIVED),
            (Verdict.PROVEN_LOSS, FindingState.OPEN),
        }
    assert standing(story) == UNREAD


def test_they_end_when_the_same_topic_answers_again(story: Story) -> None:
    reconcile(story.services())
    story.broker.topic = "orders"
    land_feed(story.services(), None, RUN)
    assert standing(story) == set()
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_a_topic_that_takes_its_place_tells_the_same_loss_once(story: Story) -> None:
    reconcile(story.services())
    story.broker.topic = "orders"
    story.broker.recreate()
    land_feed(story.services(), None, RUN)
    told = [
        each
        for each in story.services().ledger.findings(FEED)
        if each.finding.from_offset is not None
    ]
    assert standing(story) >= UNREAD
    assert [each.finding.verdict for each in told] == [Verdict.PROVEN_LOSS] * 2
    assert not any(each.finding.is_provisional for each in told)


def test_a_log_that_began_late_is_said_at_the_first_look_alone(
    ledger_dsn: str, tmp_path: Path
) -> None:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 9)
    broker.logs[0].log_start_offset = 4
    story = Story(ledger_dsn, tmp_path, broker)
    [said] = dry_run(story.services(), None).warnings
    assert said.startswith("1 of 2 partitions began above offset 0 when this feed first looked")
    assert "orders-0 at 4" in said
    assert land_feed(story.services(), None, RUN).plan.warnings == (said,)
    assert land_feed(story.services(), None, RUN).plan.warnings == ()
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK
