"""How a file is stored may change while its bytes stay: its former checksum says nothing then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageUnavailable
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OTHER_WAY = "MD5-of-0MD5-of-2048CRC32C"


@pytest.fixture(autouse=True)
def chunk_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The store tells checksums as HDFS does, by chunks of so many bytes."""
    chunks = [512]

    def checksum(store: LocalFileStore, path: str) -> str:
        entry = store.status(path)
        assert entry is not None
        blank = f"MD5-of-0MD5-of-{chunks[0]}CRC32C:{'0' * 64}"
        return str(store.checksum_like(path, entry.length_bytes, blank))

    monkeypatch.setattr(LocalFileStore, "checksum", checksum)
    return chunks


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two files of ten rows, in two batches."""
    broker = ScriptedBroker("orders", partitions=1)
    return a_landed_story(ledger_databases(), tmp_path, 10, 10, broker=broker)


def look(story: Story, level: Level) -> Verdict:
    return reconcile(story.services(), level).verdict


def told(story: Story) -> list[tuple[str, str]]:
    return [
        (each.finding.code.value, each.finding.verdict.value)
        for each in story.services().ledger.findings(FEED)
    ]


def touch_all(story: Story) -> list[Path]:
    """As after a move: each file has been written anew, so each is asked again."""
    files = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    for each in files:
        content = each.read_bytes()
        each.unlink()
        each.write_bytes(content)
    return files


@pytest.mark.parametrize("was_read_before", [False, True])
def test_the_same_bytes_in_another_way_are_no_loss_and_are_settled_by_one_full_read(
    story: Story, chunk_bytes: list[int], was_read_before: bool
) -> None:
    if was_read_before:
        assert look(story, Level.L3) is Verdict.PROVEN_OK
    chunk_bytes[0] = 2048
    touch_all(story)

    assert look(story, Level.L2) is Verdict.UNKNOWN
    assert told(story) == [("U1", "UNKNOWN")] * 2
    [step] = {each.finding.next_step for each in story.services().ledger.findings(FEED)}
    assert step.endswith("tallystick reconcile orders --level 3")
    report = repair_feed(story.services(), (), Owner("one"))
    assert not report.batches, "nothing is landed again"

    assert look(story, Level.L3) is Verdict.PROVEN_OK
    assert told(story) == []
    for level in Level:
        assert look(story, level) is Verdict.PROVEN_OK
    files = story.services().ledger.files(FEED)
    assert {each.file.checksum.partition(":")[0] for each in files} == {OTHER_WAY}
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute("SELECT checksum, proven_at FROM stored_anew").fetchall()
        committed = hand.execute("SELECT checksum FROM file").fetchall()
    assert {str(checksum).partition(":")[0] for checksum, _ in rows} == {OTHER_WAY}
    assert all(OTHER_WAY not in checksum for (checksum,) in committed)


def test_and_back_again(story: Story, chunk_bytes: list[int]) -> None:
    for chunk_bytes[0] in (2048, 512):
        touch_all(story)
        assert look(story, Level.L3) is Verdict.PROVEN_OK
    assert look(story, Level.L2) is Verdict.PROVEN_OK


def test_other_bytes_in_another_way_are_a_loss_as_soon_as_they_are_read(
    story: Story, chunk_bytes: list[int]
) -> None:
    chunk_bytes[0] = 2048
    file = touch_all(story)[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))

    assert look(story, Level.L2) is Verdict.UNKNOWN
    assert look(story, Level.L3) is Verdict.PROVEN_LOSS
    assert ("C1", "PROVEN_LOSS") in told(story)
    assert len(told(story)) == len([each for each in told(story) if each[0] == "C1"])


def test_as_many_bytes_are_read_as_a_scrub_may_read(story: Story, chunk_bytes: list[int]) -> None:
    chunk_bytes[0] = 2048
    touch_all(story)
    services = story.services()
    small = services.feed.reconcile.model_copy(update={"scrub_budget": 1})
    services = replace(services, feed=services.feed.model_copy(update={"reconcile": small}))

    assert reconcile(services, Level.L3).verdict is Verdict.UNKNOWN
    assert told(story) == [("U1", "UNKNOWN")]
    assert reconcile(services, Level.L3).verdict is Verdict.PROVEN_OK


def test_one_whose_bytes_can_not_be_read_hides_no_other(
    story: Story, chunk_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk_bytes[0] = 2048
    sick = touch_all(story)[0].name
    really = LocalFileStore.read_range

    def read_range(store: LocalFileStore, path: str, position: int, length: int) -> bytes:
        if path.endswith(sick) and length == store.status(path).length_bytes:  # type: ignore[union-attr]
            raise StorageUnavailable(path, "BlockMissingException: could not obtain block")
        return really(store, path, position, length)

    services = story.services()
    blank = LocalFileStore.checksum
    told_by = {path: blank(LocalFileStore(story.directory), path) for path in paths_of(story)}
    monkeypatch.setattr(LocalFileStore, "checksum", lambda _, path: told_by[path])
    monkeypatch.setattr(LocalFileStore, "read_range", read_range)

    assert reconcile(services, Level.L3).verdict is Verdict.UNKNOWN
    assert told(story) == [("U1", "UNKNOWN")]


def paths_of(story: Story) -> list[str]:
    directories = story.services().ledger.directories(FEED)
    return [f"{each.path}/{name}" for each in directories for name in each.files]
