"""A batch's directory that the ledger does not know (A10): what a waiver of it covers, and the rows
of it that readers have twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import LedgerBehind
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition of ten records, landed in one file."""
    broker = ScriptedBroker("orders", partitions=1)
    return a_landed_story(ledger_databases(), tmp_path, 10, broker=broker)


def file_of(story: Story) -> Path:
    name = story.services().ledger.files(FEED)[0].file.name
    [file] = (story.directory / "landing" / FEED).rglob(name)
    return file


def shifted(file: Path, target: Path, by: int) -> None:
    """The rows of a file, so many offsets further on."""
    table = pq.read_table(file, partitioning=None)
    place = table.schema.get_field_index("offset")
    pq.write_table(table.set_column(place, "offset", pc.add(table["offset"], by)), target)


def unknown(story: Story) -> Path:
    """A batch's directory with the offsets [5, 15), of which the ledger has [5, 10)."""
    directory = file_of(story).parent.with_name("batch=00000000000000aa")
    directory.mkdir()
    shifted(file_of(story), directory / "x.parquet", 5)
    return directory


def standing(story: Story) -> dict[FindingCode, int]:
    return {each.finding.code: each.finding_id for each in story.services().ledger.findings(FEED)}


def accept_behind(story: Story) -> None:
    accept(story.services().ledger, standing(story)[FindingCode.LEDGER_BEHIND])


def is_accepted(story: Story) -> bool:
    [found] = [
        each
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.LEDGER_BEHIND
    ]
    return found.state is FindingState.WAIVED


@pytest.mark.parametrize("has_manifest", [False, True])
def test_rows_that_a_committed_file_holds_too_are_told(story: Story, has_manifest: bool) -> None:
    directory = unknown(story)
    if has_manifest:
        shutil.copy(file_of(story).parent / "_tally.json", directory)
    told = {each.code: each for each in reconcile(story.services()).findings}
    assert told.keys() == {FindingCode.LEDGER_BEHIND, FindingCode.LANDED_TWICE}
    doubled = told[FindingCode.LANDED_TWICE]
    assert doubled.verdict is Verdict.PROVEN_DUP
    assert (doubled.from_offset, doubled.until_offset) == (5, 10)
    accept_behind(story)
    assert reconcile(story.services()).verdict is Verdict.PROVEN_DUP
    assert feed_completeness(story.services().ledger, FEED).proven.up_to is None


def test_doubled_rows_end_with_the_directory_that_is_quarantined(story: Story) -> None:
    directory = unknown(story)
    reconcile(story.services())
    numbers = standing(story)
    [left] = repair_feed(story.services(), [numbers[FindingCode.LANDED_TWICE]], OWNER).not_mended
    assert "A10" in left.reason
    report = repair_feed(story.services(), list(numbers.values()), OWNER)
    assert (list(report.errors), report.not_mended) == ([], ())
    assert not directory.exists()
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


@pytest.mark.parametrize("has_manifest", [False, True])
def test_a_waiver_covers_the_files_that_were_there(story: Story, has_manifest: bool) -> None:
    directory = unknown(story)
    if has_manifest:
        shutil.copy(file_of(story).parent / "_tally.json", directory)
    reconcile(story.services())
    accept_behind(story)
    with pytest.raises(LedgerBehind):
        land_feed(story.services(), None, OWNER)
    reconcile(story.services())
    assert is_accepted(story), "a plan and a reconcile see the same"
    shifted(file_of(story), directory / "z.parquet", 7)
    reconcile(story.services())
    assert not is_accepted(story)
    accept_behind(story)
    shifted(file_of(story), directory / "z.parquet", 9)
    with pytest.raises(LedgerBehind):
        land_feed(story.services(), None, OWNER)
    assert not is_accepted(story)
