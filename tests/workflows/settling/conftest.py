"""A feed with a batch that is due, and whose attempts die."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.dying_attempts import a_half_landed_story
from tests.support.story import Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of two partitions are landed, ten more are readable."""
    return a_half_landed_story(ledger_databases(), tmp_path)
