"""Fixtures of the contract tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.broker_scenes import NOW, BrokerScene, KafkaScene, ScriptedScene
from tests.support.ledger_story import LedgerStory

# Slow, and so among the first.
STARTS_KAFKA = pytest.mark.sandbox


@pytest.fixture
def story(ledger_dsn: str) -> Iterator[LedgerStory]:
    """An empty ledger of its own."""
    story = LedgerStory(ledger_dsn)
    yield story
    story.ledger.close()


@pytest.fixture(params=["scripted", pytest.param("kafka", marks=STARTS_KAFKA)])
def scene(request: pytest.FixtureRequest) -> Iterator[BrokerScene]:
    """A topic of its own, scripted and on a real broker."""
    if request.param == "scripted":
        yield ScriptedScene()
        return
    servers = request.getfixturevalue("kafka")
    properties = {"bootstrap.servers": servers}
    with (
        KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=5) as view,
        KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=2) as impatient,
    ):
        yield KafkaScene(servers, view, impatient)
