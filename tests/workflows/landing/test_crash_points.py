"""Invariants 1 to 5 and 8: stop after, and just before, every single effect; then run again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.workflows.landing.run import RunReport, land_feed
from tests.support.effects import Countdown, Crash
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

EXPECTED = {
    0: [*range(10), *range(15, 20)],
    1: list(range(7)),
}


def a_topic() -> ScriptedBroker:
    """Two partitions; one has an aborted transaction and its marker, and ends with a marker."""
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[0].append(Kind.ABORTED, 4)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[0].append(Kind.RECORD, 5)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[1].append(Kind.RECORD, 7)
    return broker


def run(story: Story, countdown: Countdown | None = None, owner: str = "test") -> RunReport:
    # Three batches: one is done and one has not begun while another one dies.
    return land_feed(story.services(countdown, max_records_per_batch=12), None, Owner(owner))


def assert_landed_once(story: Story) -> None:
    assert story.published_offsets() == EXPECTED
    services = story.services()
    accounts = services.ledger.accounts(FEED)
    assert {p: each.frontier for p, each in accounts.generations.items()} == {0: 21, 1: 7}
    assert not accounts.unfinished
    assert not services.ledger.unpublished(FEED)
    files = services.ledger.files(FEED)
    assert sum(each.file.record_count for each in files) == 22
    assert all(each.is_published for each in files)


def effects_of_a_clean_run(new_story: Callable[[ScriptedBroker], Story]) -> int:
    story, countdown = new_story(a_topic()), Countdown()
    run(story, countdown)
    assert_landed_once(story)
    return len(countdown.seen)


@pytest.fixture
def new_story(ledger_databases: Callable[[], str], tmp_path: Path) -> Callable[..., Story]:
    count = iter(range(1000))

    def build(broker: ScriptedBroker) -> Story:
        directory = tmp_path / f"story-{next(count)}"
        directory.mkdir()
        return Story(ledger_databases(), directory, broker)

    return build


@pytest.mark.parametrize(
    ("after", "owner"), [(False, "test"), (True, "another")], ids=["before", "after"]
)
def test_a_crash_at_any_effect_loses_and_doubles_nothing(
    new_story: Callable[[ScriptedBroker], Story], after: bool, owner: str
) -> None:
    """The same run tries again what ended before an effect; another one adopts what ended after.

    A crash just before an effect leaves what one just after the last effect leaves: so every state
    is both tried again and adopted.
    """
    total = effects_of_a_clean_run(new_story)
    assert total > 25
    for at in range(total):
        story, countdown = new_story(a_topic()), Countdown(at, after=after)
        with pytest.raises(Crash):
            run(story, countdown)
        report = run(story, owner=owner)
        assert not report.errors, (at, countdown.seen[-1], report.errors)
        assert_landed_once(story)
        assert story.staged() == [], (at, countdown.seen[-1])


def test_two_crashes_in_a_row(new_story: Callable[[ScriptedBroker], Story]) -> None:
    total = effects_of_a_clean_run(new_story)
    for at in range(0, total, 3):
        story = new_story(a_topic())
        for after in (True, False):
            countdown = Countdown(at, after=after)
            with contextlib.suppress(Crash):
                run(story, countdown)
        run(story)
        assert_landed_once(story)
