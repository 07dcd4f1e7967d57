"""Fixtures of the pages' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ledger_story import LedgerStory


@pytest.fixture
def story(ledger_dsn: str) -> Iterator[LedgerStory]:
    """An empty ledger of its own."""
    story = LedgerStory(ledger_dsn)
    yield story
    story.ledger.close()
