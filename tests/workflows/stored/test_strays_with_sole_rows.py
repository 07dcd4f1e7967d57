"""A stray that may be the only copy of its rows is moved by its finding's number, never else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition of ten records, landed in one file."""
    broker = ScriptedBroker("orders", partitions=1)
    return a_landed_story(ledger_databases(), tmp_path, 10, broker=broker)


def file_of(story: Story) -> Path:
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    return file


def shifted(file: Path, target: Path, by: int) -> None:
    """The rows of a file, so many offsets further on."""
    table = pq.read_table(file, partitioning=None)
    place = table.schema.get_field_index("offset")
    pq.write_table(table.set_column(place, "offset", pc.add(table["offset"], by)), target)


def stray_finding(story: Story) -> tuple[int, Finding]:
    [found] = [
        (each.finding_id, each.finding)
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.STRAY_FILE
    ]
    return found


def sole_copies(story: Story) -> dict[str, Path]:
    file = file_of(story)
    hour = file.parent.parent
    above = story.directory / "landing" / FEED / "above.parquet"
    found = {"beside": file.parent / "b.parquet", "in the hour": hour / "h.parquet", "above": above}
    shifted(file, found["beside"], 20)
    shifted(file, found["in the hour"], 5)
    shifted(file, above, 20)
    return found


@pytest.mark.parametrize("place", ["beside", "in the hour", "above"])
def test_it_is_named_and_left(story: Story, place: str) -> None:
    strays = sole_copies(story)
    for name, each in strays.items():
        if name != place:
            each.unlink()
    reconcile(story.services())
    number, found = stray_finding(story)
    assert "sole_rows" in found.evidence
    assert f"repair {FEED} NUMBER" in found.next_step
    for report in (dry_repair(story.services(), ()), repair_feed(story.services(), (), OWNER)):
        assert number in [each.finding_id for each in report.not_mended]
        assert not report.quarantined
        assert not report.plan.quarantined
    assert strays[place].exists()
    assert not repair_feed(story.services(), [number], OWNER).not_mended
    assert not strays[place].exists()


def test_the_exact_rows_are_in_its_evidence(story: Story) -> None:
    file = file_of(story)
    shifted(file, file.parent / "b.parquet", 5)
    reconcile(story.services())
    _, found = stray_finding(story)
    [rows] = found.evidence["sole_rows"]  # type: ignore[misc]
    assert (rows["partition"], rows["offsets"], rows["runs"]) == (0, 5, 1)
    assert rows["first_runs"] == [[10, 15]]
    assert "[10, 15) of partition 0" in found.cause


def test_one_beside_a_committed_file_that_is_damaged_is_left(story: Story) -> None:
    file = file_of(story)
    copy = file.parent / "copy.parquet"
    copy.write_bytes(file.read_bytes())
    reconcile(story.services())
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    story.broker.logs[0].log_start_offset = 10
    report = repair_feed(story.services(), (), OWNER)
    assert not report.quarantined
    assert copy.exists()


def test_one_that_can_not_be_read_is_left_and_what_is_no_parquet_is_moved(story: Story) -> None:
    file = file_of(story)
    half, notes = file.parent / "half.parquet", file.parent / "notes.csv"
    half.write_bytes(file.read_bytes()[:100])
    notes.write_bytes(b"hello")
    reconcile(story.services())
    report = repair_feed(story.services(), (), OWNER)
    assert [each.path.rpartition("/")[2] for each in report.quarantined] == ["notes.csv"]
    assert half.exists()


def test_a_copy_that_a_killed_put_has_left_is_told_and_moved(story: Story) -> None:
    """Spark skips it; pyarrow, Hive and Trino read it."""
    file = file_of(story)
    copy = file.with_name(f"{file.name}._COPYING_")
    copy.write_bytes(file.read_bytes())
    found = reconcile(story.services())
    assert {each.code for each in found.findings} == {
        FindingCode.STRAY_FILE,
        FindingCode.LANDED_TWICE,
    }
    assert not repair_feed(story.services(), (), OWNER).errors
    assert not copy.exists()
    assert reconcile(story.services()).findings == ()
