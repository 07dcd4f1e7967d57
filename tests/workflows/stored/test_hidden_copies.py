"""Nothing is called lost while a file below the feed's roots may hold it, hidden ones too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

HIDDEN = ["_{}", ".{}", "_old/{}", "../_old/{}"]


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, ten records and then five; all but the last six have expired."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)
    broker.logs[0].log_start_offset = 9
    return story


def hide(story: Story, name: str) -> None:
    """Somebody takes the file with offset 0 out of readers' sight, and leaves it where it is."""
    files = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    [file] = [each for each in files if 0 in pq.read_table(each)["offset"].to_pylist()]
    hidden = file.parent / name.format(file.name)
    hidden.parent.mkdir(exist_ok=True)
    file.rename(hidden)


@pytest.mark.parametrize("name", HIDDEN)
def test_rows_of_a_file_that_lies_there_hidden_are_not_a_proven_loss(
    story: Story, name: str
) -> None:
    hide(story, name)

    assert reconcile(story.services()).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("name", HIDDEN)
def test_rows_of_a_file_that_lies_there_hidden_are_not_given_up(story: Story, name: str) -> None:
    hide(story, name)
    reconcile(story.services())

    repair_feed(story.services(), story.named(), Owner("one"))

    assert story.services().ledger.lost(FEED) == []
