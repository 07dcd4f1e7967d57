"""recheck.py, which shares no line with the package: it comes to the same verdicts, or says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.ledger import ledger
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.landed_feed import OWNER, files
from tests.support.rechecked import Sceptic, sceptic_of
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept

OK, LOSS, DUP = "PROVEN_OK", "PROVEN_LOSS", "PROVEN_DUP"
SUSPECTED, UNKNOWN, WAIVED = "SUSPECTED", "UNKNOWN", "WAIVED"


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions in two batches; the first partition has an aborted transaction."""
    story = a_landed_story(ledger_databases(), tmp_path / "files", 10)
    story.broker.logs[0].append(Kind.ABORTED, 2)
    story.broker.logs[0].append(Kind.CONTROL, 1)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    land(story)
    return story


@pytest.fixture
def sceptic(story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Sceptic:
    return sceptic_of(story, tmp_path, capsys)


def land(story: Story) -> None:
    assert not land_feed(story.services(), None, OWNER).errors


def first_file(story: Story) -> Path:
    """The one with the first ten offsets of both partitions."""
    [found] = [
        each
        for each in files(story)
        if 0 in pq.read_table(each, partitioning=None)["offset"].to_pylist()
    ]
    return found


def same(sceptic: Sceptic, *verdicts: str) -> None:
    """Both say this of the partitions, and the script is content."""
    found = sceptic.recheck()
    assert found.verdicts == {place: (one, one) for place, one in enumerate(verdicts)}, found.said
    assert found.exit_code == 0, found.said


def test_a_healthy_feed_is_as_the_report_says(sceptic: Sceptic) -> None:
    same(sceptic, OK, OK)


def test_folding_a_repair_and_a_rebuild_change_nothing_for_it(
    sceptic: Sceptic, ledger_databases: Callable[[], str]
) -> None:
    story = sceptic.story
    first_file(story).unlink()
    reconcile(story.services())
    repair_feed(story.services(), story.named(), OWNER)
    same(sceptic, OK, OK)
    land(story)
    same(sceptic, OK, OK)
    story.dsn = ledger_databases()

    rebuild(story.services())

    same(sceptic, OK, OK)


def test_an_old_ledger_that_has_forgotten_what_it_may_is_rechecked_as_before(
    sceptic: Sceptic, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = sceptic.recheck().head
    monkeypatch.setattr(ledger, "KEPT_FOR", timedelta(days=-2))
    services = sceptic.story.services()
    assert not reconcile(services).findings  # sees the manifests beside their files
    services.ledger.fold(FEED)
    proofs = [each for each in sceptic.export() if each["table"] == "verification"]
    assert [each["hashes"] for each in proofs] == [None, None]
    same(sceptic, OK, OK)
    assert sceptic.recheck().head == head


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def swapped(path: Path) -> None:
    """Two values change their places: every offset is there."""
    table = pq.read_table(path, partitioning=None)
    values = table["value"].to_pylist()
    values[:2] = reversed(values[:2])
    place = table.schema.get_field_index("value")
    pq.write_table(table.set_column(place, "value", pa.array(values, pa.binary())), path)


def moved(path: Path) -> None:
    """With its whole directory, under another hour."""
    hour = path.parents[1]
    (hour.with_name("hour=03")).mkdir(exist_ok=True)
    path.parent.rename(hour.with_name("hour=03") / path.parent.name)


def copied_in_part(path: Path) -> None:
    """A copy whose footer is there, and says nothing that a reader understands."""
    content = path.read_bytes()
    path.with_name("part.parquet").write_bytes(content[:-200] + bytes(192) + content[-8:])


@pytest.mark.parametrize(
    ("harm", "verdict"),
    [
        (Path.unlink, LOSS),
        (lambda path: shutil.rmtree(path.parent), LOSS),
        (flipped, LOSS),
        (swapped, LOSS),
        (lambda path: path.write_bytes(b""), LOSS),
        (lambda path: shutil.copy(path, path.with_name("copy.parquet")), DUP),
        (lambda path: shutil.copy(path, path.with_name(f"{path.name}._COPYING_")), DUP),
        (copied_in_part, SUSPECTED),
        (lambda path: path.with_name("notes.txt").write_text("mine"), SUSPECTED),
        (lambda path: path.with_name("_notes").write_text("mine"), OK),
        (moved, UNKNOWN),
        (lambda path: path.with_name("_tally.json").unlink(), UNKNOWN),
    ],
    ids=[
        "missing file", "missing directory", "flipped bit", "swapped values", "emptied file",
        "doubled file", "killed copy", "damaged copy", "foreign file", "hidden file",
        "moved directory", "lost manifest",
    ],
)  # fmt: skip
def test_damage_is_judged_as_by_the_report(
    sceptic: Sceptic, harm: Callable[[Path], object], verdict: str
) -> None:
    harm(first_file(sceptic.story))

    same(sceptic, verdict, verdict)


def test_an_unknown_batch_is_no_stray(
    sceptic: Sceptic, ledger_databases: Callable[[], str]
) -> None:
    story = sceptic.story
    story.dsn = ledger_databases()
    [batch, *_] = sorted((story.directory / "landing" / FEED).rglob("batch=*"))
    kept = story.directory / "kept"
    batch.rename(kept)
    rebuild(story.services())
    kept.rename(batch)

    same(sceptic, UNKNOWN, UNKNOWN)


def test_lost_offsets_are_lost_until_two_people_accept_it(sceptic: Sceptic) -> None:
    log = sceptic.story.broker.logs[0]
    log.append(Kind.RECORD, 20)
    log.log_start_offset = len(log.entries) - 5
    land_feed(sceptic.story.services(), None, OWNER)
    same(sceptic, LOSS, OK)

    ledger = sceptic.story.services().ledger
    [found] = ledger.findings(FEED)
    accept(ledger, found.finding_id)

    same(sceptic, WAIVED, OK)


def test_rows_that_a_repair_gave_up_are_lost(sceptic: Sceptic) -> None:
    first_file(sceptic.story).unlink()
    sceptic.story.broker.logs[0].log_start_offset = 4
    reconcile(sceptic.story.services())
    repair_feed(sceptic.story.services(), sceptic.story.named(), OWNER)

    same(sceptic, LOSS, OK)


def test_what_only_the_tool_can_see_is_taken_over_and_named(sceptic: Sceptic) -> None:
    sceptic.story.broker.leaderless = {1}

    found = sceptic.recheck()

    assert found.verdicts == {0: (OK, OK), 1: (UNKNOWN, UNKNOWN)}
    assert "U1 UNKNOWN" in found.said


def test_a_report_that_is_older_than_the_damage_is_contradicted(sceptic: Sceptic) -> None:
    lines = sceptic.reported()
    first_file(sceptic.story).unlink()

    found = sceptic.recheck(lines)

    assert found.verdicts == {0: (LOSS, OK), 1: (LOSS, OK)}
    assert found.exit_code == 1
    assert "A8 PROVEN_LOSS [0, 10):" in found.said


def test_a_feed_that_has_landed_nothing_has_nothing_to_show(
    ledger_databases: Callable[[], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = a_landed_story(ledger_databases(), tmp_path / "files", 0)

    same(sceptic_of(story, tmp_path, capsys), OK, OK)


def test_records_that_wait_where_nothing_is_landed_are_not_ok(
    ledger_databases: Callable[[], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = a_landed_story(ledger_databases(), tmp_path / "files", 0)
    story.broker.logs[0].append(Kind.RECORD, 5)

    same(sceptic_of(story, tmp_path, capsys), UNKNOWN, OK)
