"""Places whose looks come at instants that a test sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.timed_story import Place, place_of


@pytest.fixture
def place(ledger_databases: Callable[[], str], tmp_path: Path) -> Place:
    return place_of(ledger_databases(), tmp_path)


@pytest.fixture
def pair(ledger_databases: Callable[[], str], tmp_path: Path) -> Place:
    return place_of(ledger_databases(), tmp_path, 2)
