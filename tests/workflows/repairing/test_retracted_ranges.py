"""A retracted row is what a repair has taken, whatever range it was taken from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
_RANGES = """
SELECT lower(offsets), upper(offsets), record_count, hole_count FROM offset_range
 WHERE state = %s::range_state ORDER BY lower(offsets), range_id
"""


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition of four batches, ten offsets each: nine records, then a marker."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, broker=broker)
    for _ in range(4):
        broker.logs[0].append(Kind.RECORD, 9)
        broker.logs[0].append(Kind.CONTROL, 1)
        land_feed(story.services(), None, OWNER)
    return story


def fold(story: Story) -> None:
    services = story.services()
    store_report(services, report_of(services, reconcile(services)))


def ranges(story: Story, state: str) -> list[tuple[int, int, int, int]]:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as connection:
        return [tuple(row) for row in connection.execute(_RANGES.encode(), [state])]


def lose(story: Story, *offsets: int) -> None:
    """The files that hold these offsets are gone."""
    for file in sorted((story.directory / "landing" / FEED).rglob("*.parquet")):
        if set(pq.read_table(file, partitioning=None)["offset"].to_pylist()) & set(offsets):
            file.unlink()


def repaired(story: Story) -> None:
    reconcile(story.services())
    assert not repair_feed(story.services(), story.named(), OWNER).errors
    assert reconcile(story.services()).findings == ()


def test_a_repair_of_one_file_after_folding_retracts_that_file_alone(story: Story) -> None:
    fold(story)
    assert ranges(story, "committed") == [(0, 40, 36, 4)]
    lose(story, 10)
    repaired(story)
    assert ranges(story, "retracted") == [(10, 19, 9, 0)]
    assert sum(count for _, _, count, _ in ranges(story, "committed")) == 36
    assert sum(holes for _, _, _, holes in ranges(story, "committed")) == 4


def test_a_repair_of_two_files_in_one_folded_range_retracts_both(story: Story) -> None:
    fold(story)
    lose(story, 0, 20)
    repaired(story)
    assert ranges(story, "retracted") == [(0, 9, 9, 0), (20, 29, 9, 0)]


def test_one_of_a_range_that_was_not_folded_retracts_what_it_took(story: Story) -> None:
    lose(story, 0)
    repaired(story)
    assert ranges(story, "retracted") == [(0, 9, 9, 0)]
    fold(story)
    lose(story, 0)
    repaired(story)
    assert ranges(story, "retracted") == [(0, 9, 9, 0), (0, 9, 9, 0)]


def test_what_was_lost_with_its_file_is_retracted_too(story: Story) -> None:
    fold(story)
    lose(story, 10)
    story.broker.logs[0].log_start_offset = 15
    reconcile(story.services())
    repair_feed(story.services(), story.named(), OWNER)
    assert ranges(story, "retracted") == [(10, 19, 9, 0)]
    assert [row[:2] for row in ranges(story, "lost")] == [(10, 15)]


@pytest.mark.parametrize("offsets", ["[10,12)", "[10,25)"])
def test_what_was_retracted_never_changes_afterwards(story: Story, offsets: str) -> None:
    lose(story, 10)
    repaired(story)
    before = ranges(story, "retracted")
    with (
        psycopg.connect(story.dsn, user=OWNER_ROLE) as connection,
        pytest.raises(psycopg.Error, match="retracted"),
    ):
        connection.execute(
            "UPDATE offset_range SET offsets = %s, record_count = 2, hole_count = 0"
            " WHERE state = 'retracted'",
            [offsets],
        )
    assert ranges(story, "retracted") == before
