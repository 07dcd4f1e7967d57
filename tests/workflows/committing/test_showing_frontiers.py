"""The group that shows what is landed: when readers have it, and never the reason of a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import BrokerUnavailable, IngestionError, SourceRefused
from tallystick.workflows.landing.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story


class Group:
    """Remembers what it was shown; refuses where a test wants it."""

    def __init__(self, trouble: IngestionError | None = None) -> None:
        self.trouble = trouble
        self.shown: list[tuple[str, str, Mapping[int, int]]] = []

    def show(self, feed: str, topic: str, frontiers: Mapping[int, int]) -> None:
        if self.trouble:
            raise self.trouble
        self.shown.append((feed, topic, dict(frontiers)))


@pytest.fixture
def story(ledger_dsn: str, tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_dsn, tmp_path, broker)


def test_what_is_committed_is_shown(story: Story) -> None:
    group = Group()
    services = replace(story.services(max_partitions_per_batch=1), frontier_group=group)
    land_feed(services, None, Owner("a run"))
    assert group.shown == [
        ("orders", "orders", {0: 10, 1: 0}),
        ("orders", "orders", {0: 10, 1: 10}),
    ]


def test_readers_wait_for_nothing_that_is_only_shown(story: Story) -> None:
    class Slow(Group):
        def show(self, feed: str, topic: str, frontiers: Mapping[int, int]) -> None:
            super().show(feed, topic, frontiers)
            read.append(story.published_offsets())

    read: list[object] = []
    services = replace(story.services(), frontier_group=Slow())
    land_feed(services, None, Owner("a run"))
    assert read == [{each: list(range(10)) for each in range(2)}]


@pytest.mark.parametrize(
    "trouble", [BrokerUnavailable("broker:9092", "timed out"), SourceRefused("group g", "used")]
)
def test_a_group_that_can_not_be_told_is_a_warning(
    story: Story, trouble: IngestionError, caplog: pytest.LogCaptureFixture
) -> None:
    services = replace(story.services(), frontier_group=Group(trouble))
    land_feed(services, None, Owner("a run"))
    assert story.published_offsets() == {each: list(range(10)) for each in range(2)}
    said = {each.getMessage(): each.levelname for each in caplog.records}
    [words] = [each for each in said if "does not show what is landed" in each]
    assert (said[words], trouble.describe() in words) == ("WARNING", True)
