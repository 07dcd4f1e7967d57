"""A finding rests on what was found: what is accepted is that, and nothing worse.

The same look makes the same evidence again; a look that could not look ends nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.scrubbing import scrub
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.refusals import refuse
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story
from tests.support.waivers import accept

OWNER = Owner("one")
C1, A8, A9, B2, U1 = (
    FindingCode.CONTENT_CHANGED,
    FindingCode.COMMITTED_FILE_MISSING,
    FindingCode.STRAY_FILE,
    FindingCode.LANDED_TWICE,
    FindingCode.COULD_NOT_TELL,
)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One file of ten rows."""
    broker = ScriptedBroker("orders", partitions=1)
    return a_landed_story(ledger_databases(), tmp_path, 10, broker=broker)


def landed_file(story: Story) -> Path:
    [directory] = story.services().ledger.directories(FEED)
    [name] = directory.files
    return story.directory / str(directory.path).lstrip("/") / name


def flip(file: Path, place: float = 0.5) -> None:
    content = bytearray(file.read_bytes())
    content[int(len(content) * place)] ^= 1
    file.write_bytes(bytes(content))


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def swap_values(file: Path) -> None:
    """Two values change places: every count, offset and sum of bytes is what it was."""
    table = pq.read_table(file, partitioning=None)
    values = table["value"].to_pylist()
    values[:2] = reversed(values[:2])
    place = table.schema.get_field_index("value")
    pq.write_table(table.set_column(place, "value", pa.array(values, pa.binary())), file)


def a_week_goes_by(story: Story) -> None:
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE batch_check DISABLE TRIGGER batch_check_append_only")
        hand.execute("UPDATE batch_check SET checked_at = checked_at - interval '8 days'")


def look(story: Story, level: Level = Level.L2) -> ReconcileReport:
    return reconcile(story.services(), level)


def standing(story: Story) -> Sequence[StoredFinding]:
    return story.services().ledger.findings(FEED)


def on_record(story: Story) -> list[tuple[str, str, str]]:
    return [
        (each.finding.code.value, each.finding.level.value, each.state.value)
        for each in standing(story)
    ]


def accept_all(story: Story) -> None:
    ledger = story.services().ledger
    for each in ledger.findings(FEED):
        if each.state is FindingState.OPEN:
            accept(ledger, each.finding_id)


@pytest.mark.parametrize("harm", [cut_short, flip, swap_values])
@pytest.mark.parametrize("accepted_after", [Level.L2, Level.L3])
def test_what_two_people_have_accepted_stays_accepted(
    story: Story, harm: Callable[[Path], None], accepted_after: Level
) -> None:
    look(story, Level.L3)
    harm(landed_file(story))
    a_week_goes_by(story)
    look(story, accepted_after)
    accept_all(story)
    if accepted_after is Level.L2:
        assert look(story, Level.L3).has_failed, "what the rows say is another trouble"
        accept_all(story)

    for level in (Level.L2, Level.L3, Level.L2, Level.L3):
        report = look(story, level)
        assert (report.verdict, report.has_failed) == (Verdict.WAIVED, False)
    assert {(code, state) for code, _, state in on_record(story)} == {("C1", "waived")}
    assert len({level for _, level, _ in on_record(story)}) == len(on_record(story))


@pytest.mark.parametrize(
    "worse",
    [
        lambda file: file.write_bytes(b""),
        lambda file: flip(file, 0.3),
        cut_short,
        swap_values,
        Path.unlink,
    ],
    ids=["empty", "another bit", "cut short", "rewritten", "gone"],
)
@pytest.mark.parametrize("before", [flip, cut_short])
def test_what_becomes_worse_is_not_accepted_with_what_was_before(
    story: Story, before: Callable[[Path], None], worse: Callable[[Path], object]
) -> None:
    original = landed_file(story).read_bytes()
    before(landed_file(story))
    look(story)
    accept_all(story)
    assert not look(story).has_failed

    if worse is not cut_short:
        landed_file(story).write_bytes(original)
    worse(landed_file(story))

    report = look(story)
    assert (report.verdict, report.has_failed) == (Verdict.PROVEN_LOSS, True)


def test_the_sentence_on_record_is_what_the_last_look_saw(story: Story) -> None:
    file = landed_file(story)
    flip(file)
    look(story)
    file.write_bytes(b"")
    look(story)
    [stored] = story.services().ledger.findings(FEED)
    assert f"{file.name} has 0 bytes" in stored.finding.cause
    assert stored.finding.evidence["length_bytes"] == 0


# The first full read ------------------------------------------------------------------------------


def checks(story: Story) -> list[tuple[Any, ...]]:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute("SELECT level::text, is_clean FROM batch_check ORDER BY check_id")
        return [row for row in rows.fetchall() if row[0] != "L4"]


def fingerprints(story: Story) -> int:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        [[count]] = hand.execute("SELECT count(*) FROM file_fingerprint").fetchall()
        return int(count)


def test_no_fingerprint_is_taken_of_a_file_that_is_not_as_it_was_committed(story: Story) -> None:
    file = landed_file(story)
    original = file.read_bytes()
    swap_values(file)

    look(story, Level.L3)

    assert fingerprints(story) == 0
    assert ("L3", True) not in checks(story), "a batch of which something stands is not clean"
    file.write_bytes(original)
    assert look(story, Level.L3).verdict is Verdict.PROVEN_OK
    assert fingerprints(story) == 1
    a_week_goes_by(story)
    assert look(story, Level.L3).verdict is Verdict.PROVEN_OK


@pytest.mark.parametrize("level", [Level.L3, Level.L4])
def test_no_look_calls_a_batch_clean_of_which_something_stands(story: Story, level: Level) -> None:
    """The same rows in other bytes: whoever reads the rows finds nothing."""
    file = landed_file(story)
    pq.write_table(pq.read_table(file, partitioning=None), file, compression="none")
    look(story)
    accept_all(story)
    for _ in range(2):
        assert [each.level for each in look(story, level).findings] == [Level.L2]
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute("SELECT is_clean, sample FROM batch_check ORDER BY check_id").fetchall()
    after_the_commit = [clean for clean, sample in rows if not sample or sample["turn"] > 0]
    assert after_the_commit
    assert not any(after_the_commit)


def test_a_file_that_is_changed_and_put_back_during_the_read_gives_no_fingerprint(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = landed_file(story)
    original = file.read_bytes()
    services = story.services()
    spark: Any = services.spark
    really = spark._port.scrub

    def read_another(order: object) -> object:
        read = really(order)
        file.write_bytes(original)
        return read

    swap_values(file)
    monkeypatch.setattr(spark._port, "scrub", read_another)
    report = scrub(services)

    assert fingerprints(story) == 0
    assert [each.code for each in report.unheard] == [U1]
    assert report.left_due == 1


def test_rows_that_differ_in_a_file_as_it_was_committed_prove_one_witness_wrong(
    story: Story,
) -> None:
    look(story, Level.L3)
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE file_fingerprint DISABLE TRIGGER USER")
        hand.execute("UPDATE file_fingerprint SET high_hash_sum = 1")
    a_week_goes_by(story)

    [found] = look(story, Level.L3).findings

    assert (found.code, found.verdict, found.level) == (C1, Verdict.UNKNOWN, Level.L3)
    assert "length and checksum are those of its commit: one of the two is wrong" in found.cause
    accept_all(story)
    assert look(story, Level.L3).verdict is Verdict.WAIVED
    a_week_goes_by(story)
    look(story)
    assert checks(story)[-1] == ("L2", False), "its offsets are right, and it is not clean"
    flip(landed_file(story))
    assert look(story, Level.L3).verdict is Verdict.PROVEN_LOSS
    repair_feed(story.services(), [each.finding_id for each in standing(story)], OWNER)
    assert look(story, Level.L3).verdict is Verdict.PROVEN_OK
    assert standing(story) == []


# A look that could not look -----------------------------------------------------------------------


@pytest.mark.parametrize("harm", [flip, cut_short])
def test_a_file_that_could_not_be_asked_was_not_looked_at(
    story: Story, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    file = landed_file(story)
    harm(file)
    look(story)
    before = standing(story)
    with monkeypatch.context() as refusing:
        refuse(refusing, "checksum", file.name)
        report = look(story)
    assert {each.code for each in report.findings} == {C1, U1}
    assert not report.is_complete
    [same] = [each.finding for each in standing(story) if each.finding.code is C1]
    assert same == before[0].finding
    assert dry_repair(story.services(), ()).plan.land_again

    assert [each.code for each in look(story).findings] == [C1], "the doubt ends, the loss stands"


@pytest.mark.parametrize("harm", [flip, cut_short])
def test_a_waiver_outlives_a_look_that_could_not_look(
    story: Story, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    file = landed_file(story)
    harm(file)
    look(story)
    accept_all(story)
    with monkeypatch.context() as refusing:
        refuse(refusing, "checksum", file.name)
        look(story)
    assert look(story).verdict is Verdict.WAIVED
    if harm is cut_short:
        cut_short(file)
        with monkeypatch.context() as refusing:
            refuse(refusing, "checksum", file.name)
            assert look(story).verdict is Verdict.PROVEN_LOSS, "its length is another one now"


def test_a_stray_that_is_written_anew_is_another_one(story: Story) -> None:
    stray = landed_file(story).with_name("marker.parquet")
    stray.write_bytes(b"")
    look(story)
    accept_all(story)
    assert look(story).verdict is Verdict.WAIVED

    stray.write_bytes(b"rows")

    assert [each.code for each in look(story).findings] == [A9]
    assert look(story).verdict is Verdict.SUSPECTED


def test_a_stray_that_can_t_be_read_still_holds_what_it_held(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = landed_file(story)
    stray = file.with_name("copy.parquet")
    stray.write_bytes(file.read_bytes())
    assert {each.code for each in look(story).findings} == {A9, B2}
    refuse(monkeypatch, "read_back_file", stray.name)

    report = look(story)

    assert {each.code for each in report.findings} == {A9, B2, U1}
    assert {code for code, _, _ in on_record(story)} == {"A9", "B2", "U1"}
    assert not report.is_complete


def test_rows_that_a_batch_without_a_readable_manifest_may_hold_are_not_lost(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger lacks a published batch: its rows are read, not what its manifest says."""
    file = landed_file(story)
    other = file.parent.with_name("batch=00000000000000ff")
    other.mkdir()
    (other / "part-0.parquet").write_bytes(file.read_bytes())
    (other / "_tally.json").write_bytes((file.parent / "_tally.json").read_bytes())
    file.unlink()
    refuse(monkeypatch, "read", "_tally.json")

    [missing] = [each for each in look(story).findings if each.code is A8]

    assert missing.verdict is Verdict.UNKNOWN
    assert str(missing.evidence["unexplained"]).endswith("=00000000000000ff/part-0.parquet")


@pytest.mark.parametrize("is_on_record", [True, False])
def test_rows_that_may_lie_in_a_directory_that_may_not_be_listed_are_not_lost(
    story: Story, monkeypatch: pytest.MonkeyPatch, *, is_on_record: bool
) -> None:
    """A look that could not look changes nothing that is on record, and proves no loss."""
    file = landed_file(story)
    closed = file.parent.parent / "closed"
    closed.mkdir()
    file.unlink()
    if is_on_record:
        look(story)
        accept_all(story)
    with monkeypatch.context() as refusing:
        refuse(refusing, "entries", closed.name)
        [missing] = [each for each in look(story).findings if each.code is A8]
    assert missing.verdict is (Verdict.WAIVED if is_on_record else Verdict.UNKNOWN)
    assert look(story).verdict is (Verdict.WAIVED if is_on_record else Verdict.PROVEN_LOSS)


def test_a_full_read_does_not_call_lost_what_a_listing_has_not_explained(story: Story) -> None:
    file = landed_file(story)
    file.rename(file.with_name("moved.parquet"))
    look(story)
    before = standing(story)
    accept_all(story)
    for level in (Level.L3, Level.L2, Level.L3):
        assert look(story, level).verdict is Verdict.WAIVED
    assert [each.finding for each in standing(story)] == [each.finding for each in before]


def test_what_was_unexplained_stays_so_while_it_could_not_be_asked(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = landed_file(story)
    moved = file.rename(file.with_name("moved.parquet"))
    [before] = [each for each in look(story).findings if each.code is A8]
    assert str(before.evidence["unexplained"]).endswith(moved.name)
    refuse(monkeypatch, "checksum", moved.name)

    report = look(story)

    assert {each.code for each in report.findings} == {A8, A9, U1}
    [after] = [each for each in report.findings if each.code is A8]
    assert after == before


def test_a_stray_is_what_it_was_while_the_file_that_it_copies_can_t_be_asked(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = landed_file(story)
    file.with_name("copy.parquet").write_bytes(file.read_bytes())
    look(story)
    accept_all(story)
    refuse(monkeypatch, "checksum", file.name)
    report = look(story)
    assert {each.code for each in report.findings if each.verdict is Verdict.WAIVED} == {A9, B2}
    assert {each.code for each in report.findings} == {A9, B2, U1}


def test_a_copy_of_what_could_not_be_listed_is_not_called_a_double(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = landed_file(story)
    beside = file.parent.parent / "copied"
    beside.mkdir()
    shutil.copy(file, beside)
    with monkeypatch.context() as refusing:
        refuse(refusing, "entries", file.parent.name)
        assert {each.code for each in look(story).findings} == {A9, U1}
    assert {each.code for each in look(story).findings} == {A9, B2}
