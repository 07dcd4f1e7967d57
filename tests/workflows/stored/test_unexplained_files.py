"""Nothing is given up while anything below the feed's roots is unexplained, or unread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageRefused
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
ALL = {0: list(range(15))}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, ten records and then five; all but the last six have expired."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)
    broker.logs[0].log_start_offset = 9
    return story


def first_file(story: Story) -> Path:
    """The file with offset 0."""
    files = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    return next(each for each in files if 0 in offsets_in(each))


def offsets_in(file: Path) -> list[int]:
    found: list[int] = pq.read_table(file, partitioning=None)["offset"].to_pylist()
    return found


def test_no_row_becomes_lost_that_may_lie_where_nobody_could_look(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding is named, and the broker has nothing of the file any more."""
    file = first_file(story)
    (file.parent.parent / "closed").mkdir()
    file.unlink()
    reconcile(story.services())
    named = [each.finding_id for each in story.services().ledger.findings(FEED)]
    really = LocalFileStore.entries

    def entries(store: LocalFileStore, path: str) -> Any:
        if path.endswith("/closed"):
            raise StorageRefused(path, "no permission")
        return really(store, path)

    with monkeypatch.context() as refusing:
        refusing.setattr(LocalFileStore, "entries", entries)
        repair_feed(story.services(), named, Owner("one"))
    assert story.services().ledger.lost(FEED) == []
    repair_feed(story.services(), named, Owner("one"))
    assert story.services().ledger.lost(FEED) != []


def moved_to_another_hour(story: Story) -> tuple[Path, Path]:
    """The file as it was committed, and where it lies after its directory was moved."""
    file = first_file(story)
    target = file.parent.parent.parent / "hour=13" / file.parent.name
    target.parent.mkdir(exist_ok=True)
    file.parent.rename(target)
    return file, target / file.name


def stored(story: Story, path: Path) -> str:
    return "/" + str(path.relative_to(story.directory))


def standing(story: Story) -> list[tuple[FindingCode, Verdict]]:
    found = story.services().ledger.findings(FEED)
    return [(each.finding.code, each.finding.verdict) for each in found]


def numbers(story: Story) -> list[int]:
    return [each.finding_id for each in story.services().ledger.findings(FEED)]


def lost(story: Story) -> list[tuple[int, int]]:
    return [
        (each.from_offset, each.until_offset) for _, each, _ in story.services().ledger.lost(FEED)
    ]


def missing(story: Story) -> int:
    [number] = [
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.COMMITTED_FILE_MISSING
    ]
    return number


def test_nothing_is_lost_while_a_moved_directory_is_there(story: Story) -> None:
    file, lies_at = moved_to_another_hour(story)
    assert {each.verdict for each in reconcile(story.services(), Level.L2).findings} == {
        Verdict.UNKNOWN,  # the missing file
        Verdict.SUSPECTED,  # the stray, which may be the only copy
    }
    for named in ((), [missing(story)]):
        report = repair_feed(story.services(), named, OWNER)
        assert [*report.plan.land_again, *report.quarantined] == []
        assert stored(story, lies_at) in " ".join(each.reason for each in report.not_mended)
    assert (story.published_offsets(), lost(story)) == (ALL, [])
    lies_at.parent.rename(file.parent)
    assert reconcile(story.services()).findings == ()


def test_a_file_that_was_quarantined_before_it_was_missed_is_not_given_up(story: Story) -> None:
    file = first_file(story)
    aside = story.directory / "landing" / "_quarantine" / FEED / "strays" / "7" / file.name
    aside.parent.mkdir(parents=True)
    file.rename(aside)
    [found] = reconcile(story.services()).findings
    assert (found.verdict, found.evidence["unexplained"]) == (
        Verdict.UNKNOWN,
        stored(story, aside),
    )
    [left] = repair_feed(story.services(), numbers(story), OWNER).not_mended
    assert stored(story, aside) in left.reason
    assert lost(story) == []


def test_rows_of_another_stray_keep_a_missing_file_from_being_given_up_until_it_is_named(
    story: Story,
) -> None:
    file = first_file(story)
    stray = file.parent.parent / "unreadable.parquet"
    stray.write_bytes(file.read_bytes()[:99])
    file.unlink()
    reconcile(story.services())
    number = missing(story)
    repair_feed(story.services(), [number], OWNER)
    assert lost(story) == []
    repair_feed(story.services(), [each for each in numbers(story) if each != number], OWNER)
    assert not stray.exists()
    repair_feed(story.services(), [number], OWNER)
    assert lost(story) == [(0, 9)]


def test_a_file_that_was_moved_after_it_was_told_as_missing_is_not_given_up(story: Story) -> None:
    file = first_file(story)
    hidden = story.directory / "hidden"
    file.rename(hidden)
    reconcile(story.services())
    assert standing(story) == [(FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS)]
    hidden.rename(file.parent.parent / file.name)
    assert not repair_feed(story.services(), numbers(story), OWNER).errors
    assert lost(story) == []


def test_rows_of_a_missing_file_that_a_stray_holds_are_not_called_lost(story: Story) -> None:
    """Somebody has written the file anew under another name."""
    file = first_file(story)
    stray = file.parent / "rewritten.parquet"
    pq.write_table(pq.read_table(file, partitioning=None), stray, compression="gzip")
    file.unlink()
    found = reconcile(story.services()).findings
    assert {(each.code, each.verdict) for each in found} == {
        (FindingCode.COMMITTED_FILE_MISSING, Verdict.UNKNOWN),
        (FindingCode.STRAY_FILE, Verdict.SUSPECTED),
    }
    for named in ((), numbers(story)[:1]):
        repair_feed(story.services(), named, OWNER)
        assert lost(story) == []
        assert stray.exists()
    assert story.published_offsets() == ALL


def test_a_stray_that_can_not_be_read_keeps_rows_from_being_called_lost(story: Story) -> None:
    file = first_file(story)
    content = file.read_bytes()
    file.unlink()
    stray = file.parent / "half.parquet"
    stray.write_bytes(content[: len(content) // 2])
    reconcile(story.services())
    missing = next(
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.COMMITTED_FILE_MISSING
    )
    report = repair_feed(story.services(), [missing], OWNER)
    assert [each.finding_id for each in report.not_mended] == [missing]
    assert stored(story, stray) in report.not_mended[0].reason
    assert lost(story) == []
