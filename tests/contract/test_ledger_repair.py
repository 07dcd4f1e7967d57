"""What the ledger promises of a repair: offsets change hands in one instant, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest

from tallystick.domain.batches.batch import BatchPlan, CommittedFile
from tallystick.domain.batches.landed import FileSlice, LandedFile, LateRows
from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.identities import FeedName
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.report.looks import CameLate
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import ClaimConflict, LedgerRefused
from tallystick.ledger.statements import statement, statements
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, NO_TIME, NOON, LedgerStory, manifest_of, snapshot_of

HOLES = {
    HoleClass.CONTROL: OffsetRuns.of([(4, 5), (25, 27)]),
    HoleClass.ABORTED: OffsetRuns.of([(60, 70)]),
}


def holes_in(start: int, until: int) -> dict[HoleClass, OffsetRuns]:
    """The holes of one piece."""
    clipped = {kind: runs.clipped(start, until) for kind, runs in HOLES.items()}
    return {kind: runs for kind, runs in clipped.items() if runs}


def landed(story: LedgerStory, cuts: tuple[int, ...] = (0, 20, 50, 100)) -> list[CommittedFile]:
    """One batch [0, 100) of partition 0 in a file for each piece, published; its files."""
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, cuts[0], cuts[-1])))
    plan = story.status(attempt.batch_id).plan
    manifest = manifest_of(plan, attempt, holes={0: HOLES})
    files = []
    for number, (start, until) in enumerate(pairwise(cuts)):
        holes = sum(runs.count for runs in holes_in(start, until).values())
        held = FileSlice(0, start, until - 1, until - start - holes)
        late = LateRows(number, NOON - timedelta(hours=number)) if number else None
        files.append(LandedFile(f"part-{number}", 10, "crc32c:0", (held,), late))
    story.ledger.record_verified(attempt, replace(manifest, files=tuple(files)))
    story.ledger.commit(attempt)
    story.ledger.mark_published(attempt.batch_id)
    return [CommittedFile(attempt.batch_id, each.name) for each in files]


def repair_of(story: LedgerStory, file: CommittedFile, start: int, until: int) -> BatchPlan:
    """A planned repair of one file."""
    plan = replace(story.batch_of((0, start, until)), replaces=(file,))
    story.freeze(plan)
    return plan


def ranges(story: LedgerStory) -> list[tuple[str, str, int, int]]:
    """State, offsets, rows and holes of every row that counts, by offset."""
    return story.ask(
        "SELECT state::text, offsets::text, record_count, hole_count FROM offset_range"
        " WHERE state IN ('committed', 'lost', 'retracted') ORDER BY state, lower(offsets)"
    )


def test_until_a_repair_commits_nothing_changes(story: LedgerStory) -> None:
    files = landed(story)
    before = ranges(story)
    plan = repair_of(story, files[1], 20, 50)
    assert story.status(plan.batch_id).plan == plan
    attempt = story.begin(plan.batch_id)
    story.verify(attempt, holes={0: holes_in(20, 50)})
    assert ranges(story) == before
    assert story.account().frontier == 100
    assert story.account().beyond == ()
    assert [each.file.name for each in story.ledger.files(FEED)] == ["part-0", "part-1", "part-2"]


def test_a_repair_takes_exactly_its_offsets_and_its_files(story: LedgerStory) -> None:
    files = landed(story)
    plan = repair_of(story, files[1], 20, 50)
    attempt = story.begin(plan.batch_id)
    story.verify(attempt, holes={0: holes_in(20, 50)})
    story.ledger.commit(attempt)
    assert ranges(story) == [
        ("committed", "[0,20)", 19, 1),
        ("committed", "[20,50)", 28, 2),
        ("committed", "[50,100)", 40, 10),
        ("retracted", "[20,50)", 28, 2),
    ]
    names = [each.file.name for each in story.ledger.files(FEED)]
    assert names[:2] == ["part-0", "part-2"]
    assert names[2].startswith(plan.batch_id)
    assert story.account().frontier == 100
    committed = story.ledger.committed_batch(plan.batch_id)
    assert committed is not None
    assert committed.manifest.plan.replaces == (files[1],)


def test_late_rows_are_those_of_the_files_that_are_read_still(story: LedgerStory) -> None:
    files = landed(story)
    first = files[0].batch_id
    oldest = NOON - timedelta(hours=2)
    assert story.ledger.late_rows(FEED, None) == CameLate(None, 3, oldest, first)
    attempt = story.begin(repair_of(story, files[1], 20, 50).batch_id)
    story.verify(attempt, holes={0: holes_in(20, 50)})
    assert story.ledger.late_rows(FEED, None) == CameLate(None, 3, oldest, first)
    story.ledger.commit(attempt)
    assert story.ledger.late_rows(FEED, None) == CameLate(None, 2, oldest, first)
    assert story.ledger.late_rows(FeedName("payments"), None) is None


def test_what_the_broker_has_no_more_is_lost_from_the_repair_on(story: LedgerStory) -> None:
    """The file is gone; its first offsets have expired: only the others can be landed again."""
    files = landed(story)
    plan = repair_of(story, files[1], 28, 50)
    attempt = story.begin(plan.batch_id)
    story.verify(attempt)
    story.ledger.commit(attempt)
    assert ranges(story) == [
        ("committed", "[0,20)", 19, 1),
        ("committed", "[25,27)", 0, 2),
        ("committed", "[28,50)", 22, 0),
        ("committed", "[50,100)", 40, 10),
        ("lost", "[20,25)", None, None),
        ("lost", "[27,28)", None, None),
        ("retracted", "[20,25)", 5, 0),
        ("retracted", "[27,50)", 23, 0),
    ]
    assert {code for _, _, code in story.ledger.lost(FEED)} == {"A8"}


def test_what_is_being_repaired_is_not_repaired_beside_it(story: LedgerStory) -> None:
    files = landed(story)
    repair_of(story, files[1], 20, 50)
    with pytest.raises(ClaimConflict):
        repair_of(story, files[1], 20, 50)


def test_a_repair_that_is_given_up_leaves_all_as_it_was(story: LedgerStory) -> None:
    files = landed(story)
    before = ranges(story)
    plan = replace(story.batch_of((0, 20, 50)), replaces=(files[1],))
    story.freeze(plan, lease=NO_TIME)
    accounts = story.ledger.accounts(FEED)
    seen = snapshot_of({0: (21, 100)})
    changes = judge_logs(accounts, Observation(seen, {}, {}))
    assert [(each.offsets.from_offset, each.code) for each in changes.cuts] == [
        (20, FindingCode.EXPIRED)
    ]
    story.change(changes, {0: (21, 100)})
    assert story.status(plan.batch_id).state is BatchState.ABANDONED
    assert ranges(story) == before
    repair_of(story, files[1], 20, 50)


def test_a_repaired_range_can_be_repaired_again_and_folded(story: LedgerStory) -> None:
    files = landed(story)
    for file, start, until in ((files[0], 0, 20), (files[1], 20, 50), (files[2], 50, 100)):
        plan = repair_of(story, file, start, until)
        attempt = story.begin(plan.batch_id)
        story.verify(attempt, holes={0: holes_in(start, until)})
        story.ledger.commit(attempt)
        story.ledger.mark_published(plan.batch_id)
    story.ledger.fold(FEED)
    standing = [each for each in ranges(story) if each[0] == "committed"]
    assert standing == [("committed", "[0,100)", 87, 13)]


def holes(story: LedgerStory, where: str = "retracted_by IS NULL") -> list[tuple[str, str, int]]:
    """Class, offsets and count of holes, by class and offsets."""
    return story.ask(
        f"SELECT class::text, runs::text, hole_count FROM hole WHERE {where} ORDER BY 1, 2"
    )


def test_a_repair_takes_over_the_holes_of_its_offsets_and_leaves_the_others(
    story: LedgerStory,
) -> None:
    """The log has rows now where holes were: what the repair has not proven counts no more."""
    files = landed(story)
    attempt = story.begin(repair_of(story, files[1], 20, 50).batch_id)
    story.verify(attempt, holes={0: {HoleClass.ABORTED: OffsetRuns.of([(30, 31)])}})
    story.ledger.commit(attempt)
    assert holes(story) == [
        ("aborted", "{[30,31)}", 1),
        ("aborted", "{[60,70)}", 10),
        ("control", "{[4,5)}", 1),
    ]
    assert holes(story, "retracted_by IS NOT NULL") == [("control", "{[4,5),[25,27)}", 3)]
    counts = story.ledger.landed_counts(FEED)[story.account().generation_id]
    assert counts.record_count + sum(counts.holes.values()) == 100


def test_a_file_is_replaced_once(story: LedgerStory) -> None:
    files = landed(story)
    attempt = story.begin(repair_of(story, files[0], 0, 20).batch_id)
    story.verify(attempt, holes={0: holes_in(0, 20)})
    story.ledger.commit(attempt)
    with pytest.raises(LedgerRefused, match="replaced already"):
        repair_of(story, files[0], 0, 20)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE offset_range SET state = 'retracted' WHERE state = 'committed'",
            "nothing has taken its place",
        ),
        (
            "INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)"
            " SELECT generation_id, '[0,5)', 'retracted', 5, 0 FROM generation",
            "a range is committed before it is retracted",
        ),
        (
            "UPDATE offset_range SET state = 'lost', loss_code = 'A8', record_count = NULL,"
            " hole_count = NULL WHERE state = 'retracted'",
            "retracted: it never changes",
        ),
        (
            "INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)"
            " SELECT generation_id, '[100,105)', 'committed', 5, 0 FROM generation",
            "a range is claimed before it is committed",
        ),
        ("UPDATE hole SET hole_count = 1", "UPDATE refused: hole is evidence"),
        ("UPDATE hole SET retracted_by = batch_id", "UPDATE refused: hole is evidence"),
        ("UPDATE hole SET retracted_by = NULL", "UPDATE refused: hole is evidence"),
        (
            "INSERT INTO hole SELECT batch_id, generation_id, 'compacted', 0, runs, hole_count"
            " FROM hole WHERE retracted_by IS NULL LIMIT 1",
            "hole_counts_once",
        ),
    ],
)
def test_the_schema_refuses_a_retraction_by_hand(
    story: LedgerStory, statement: str, said: str
) -> None:
    files = landed(story)
    attempt = story.begin(repair_of(story, files[0], 0, 20).batch_id)
    story.verify(attempt, holes={0: holes_in(0, 20)})
    story.ledger.commit(attempt)
    with story.raw() as hand, pytest.raises(psycopg.Error) as caught:
        hand.execute(statement.encode())
    assert said in str(caught.value)


def test_the_schema_refuses_a_range_with_holes_of_another_batch(
    story: LedgerStory, ledger_server: LedgerServer, ledger_database: str
) -> None:
    """Somebody has written holes for offsets that are not landed yet, past the guards."""
    story.open({0: (0, 100)})
    first = story.committed((0, 0, 50))
    attempt = story.begin(story.planned((0, 50, 100)))
    story.verify(attempt)
    with psycopg.connect(ledger_server.admin_dsn(ledger_database)) as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(
            "INSERT INTO hole SELECT %s, generation_id, 'aborted', 0, '{[60,63)}', 3"
            " FROM generation",
            [first.batch_id],
        )
    with pytest.raises(LedgerRefused, match="committed with 0 holes, and 3 are on record there"):
        story.ledger.commit(attempt)


def test_the_schema_refuses_a_repair_that_leaves_other_counts(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = landed(story)
    attempt = story.begin(repair_of(story, files[1], 20, 50).batch_id)
    story.verify(attempt, holes={0: holes_in(20, 50)})
    usual = statement("keep_remainders")
    forged = replace(usual, query=usual.query.replace(b"counted.holes", b"(counted.holes + 1)"))
    monkeypatch.setitem(statements(), "keep_remainders", forged)
    with pytest.raises(LedgerRefused, match=r"counts? other holes"):
        story.ledger.commit(attempt)


def test_only_committed_offsets_are_repaired(story: LedgerStory) -> None:
    files = landed(story)
    with pytest.raises(LedgerRefused, match="only what is committed can be replaced"):
        repair_of(story, files[2], 90, 101)
