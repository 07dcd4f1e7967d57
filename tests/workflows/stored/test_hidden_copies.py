"""Nothing is called lost while a file below the feed's roots may hold it, hidden ones too."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageRefused
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

HIDDEN = ["_{}", ".{}", "_old/{}", "../_old/{}", ".old/_older/{}", "_quarantine/{}", "_staging/{}"]


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, ten records and then five; all but the last six have expired."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)
    broker.logs[0].log_start_offset = 9
    return story


def files(story: Story) -> tuple[Path, Path]:
    """The file with offset 0, and the other one."""
    found = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    first, second = sorted(found, key=lambda each: pq.read_table(each)["offset"][0].as_py())
    return first, second


def hide(story: Story, name: str) -> Path:
    """Somebody takes the file with offset 0 out of readers' sight, and leaves it where it is."""
    file, _ = files(story)
    hidden = file.parent / name.format(file.name)
    hidden.parent.mkdir(parents=True, exist_ok=True)
    return file.rename(hidden)


def stored(story: Story, path: Path) -> str:
    return "/" + os.path.relpath(path, story.directory)


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No directory of this name may be listed."""
    really = LocalFileStore.entries

    def entries(store: LocalFileStore, path: str) -> Any:
        if path.endswith(f"/{name}"):
            raise StorageRefused(path, "no permission")
        return really(store, path)

    monkeypatch.setattr(LocalFileStore, "entries", entries)


@pytest.mark.parametrize("name", HIDDEN)
def test_rows_of_a_file_that_lies_there_hidden_are_not_a_proven_loss(
    story: Story, name: str
) -> None:
    hidden = hide(story, name)

    [found] = reconcile(story.services()).findings

    assert (found.verdict, found.evidence["unexplained"]) == (
        Verdict.UNKNOWN,
        stored(story, hidden),
    )


@pytest.mark.parametrize("name", HIDDEN)
def test_rows_of_a_file_that_lies_there_hidden_are_not_given_up(story: Story, name: str) -> None:
    hide(story, name)
    reconcile(story.services())

    repair_feed(story.services(), story.named(), Owner("one"))

    assert story.services().ledger.lost(FEED) == []


def test_a_copy_that_was_hidden_in_another_batchs_directory_is_seen_in_each_look(
    story: Story,
) -> None:
    """That directory is as it was in the look before."""
    file, second = files(story)
    file.rename(second.parent / f"_{file.name}")
    for each in (file.parent, second.parent):
        os.utime(each, (0, 0))

    verdicts = [reconcile(story.services()).verdict for _ in range(3)]

    assert verdicts == [Verdict.UNKNOWN] * 3


def test_a_hidden_directory_that_can_not_be_listed_may_hold_missing_rows(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(story, "_old/{}")
    refuse(monkeypatch, "_old")

    found = reconcile(story.services())
    repair_feed(story.services(), story.named(), Owner("one"))

    assert {each.code for each in found.findings} == {
        FindingCode.COMMITTED_FILE_MISSING,
        FindingCode.COULD_NOT_TELL,
    }
    assert found.verdict is Verdict.UNKNOWN
    assert story.services().ledger.lost(FEED) == []


def test_what_is_hidden_is_nobodys_finding_while_no_row_is_missing(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = files(story)
    (file.parent / f"_{file.name}").write_bytes(file.read_bytes())
    (file.parent.parent / "_old").mkdir()
    refuse(monkeypatch, "_old")

    assert reconcile(story.services()).findings == ()


def test_a_hidden_copy_of_rows_that_are_in_their_place_explains_no_missing_one(
    story: Story,
) -> None:
    file, second = files(story)
    (file.parent / f"_{second.name}").write_bytes(second.read_bytes())
    (file.parent / "_notes").write_text("no rows at all")
    file.unlink()

    assert reconcile(story.services()).verdict is Verdict.PROVEN_LOSS
