"""A repair that names the evidence that was read is refused when a later look found another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import EvidenceChanged
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one file."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def shorten(story: Story, by: int) -> tuple[list[int], list[str]]:
    """The file loses its last bytes, and a look finds it: the findings, and their digests."""
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-by])
    reconcile(story.services())
    standing = story.services().ledger.findings(FEED)
    return [each.finding_id for each in standing], [each.digest for each in standing]


def test_evidence_that_has_changed_since_is_refused_and_nothing_done(story: Story) -> None:
    numbers, read = shorten(story, 1)
    assert shorten(story, 1)[0] == numbers
    batches = len(story.services().ledger.batches(FEED))
    with pytest.raises(EvidenceChanged, match=f"finding {numbers[0]} is"):
        dry_repair(story.services(), numbers, digests=read)
    with pytest.raises(EvidenceChanged, match=f"finding {numbers[0]} is"):
        repair_feed(story.services(), numbers, OWNER, digests=read)
    assert len(story.services().ledger.batches(FEED)) == batches


def test_evidence_as_it_was_read_is_repaired(story: Story) -> None:
    numbers, read = shorten(story, 1)
    report = repair_feed(story.services(), numbers, OWNER, digests=read)
    assert sorted(report.closed) == numbers


def test_a_repair_of_all_is_of_what_its_dry_run_has_read_and_of_nothing_newer(story: Story) -> None:
    shorten(story, 1)
    planned = dry_repair(story.services(), ())
    shorten(story, 1)
    with pytest.raises(EvidenceChanged):
        repair_feed(story.services(), (), OWNER, digests=planned.evidence)
    again = dry_repair(story.services(), ())
    assert repair_feed(story.services(), (), OWNER, digests=again.evidence).closed
