"""What the ledger forgets when it is old: the same answers, and nothing that a finding needs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.manifest_texts import parted, whole_text
from tallystick.domain.identities import BatchId
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.exporting import exported
from tallystick.ledger.proofs import DirectoryLook
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of, snapshot_of
from tests.support.looks import record_look
from tests.support.report_documents import a_document


@pytest.fixture
def aged(
    story: LedgerStory, ledger_server: LedgerServer, ledger_database: str
) -> Iterator[psycopg.Connection[Any]]:
    """Can say of rows that they are of long ago, which nobody else can."""
    with psycopg.connect(ledger_server.admin_dsn(ledger_database), autocommit=True) as admin:
        admin.execute("SET session_replication_role = replica")
        yield admin


def land(story: LedgerStory, batches: int = 3) -> list[BatchId]:
    """Published batches of ten offsets each, seen beside their files."""
    story.open({0: (0, 100), 1: (0, 100)})
    landed = []
    for n in range(batches):
        attempt = story.committed((0, 10 * n, 10 * n + 10), (1, 10 * n, 10 * n + 10))
        story.ledger.mark_published(attempt.batch_id)
        landed.append(attempt.batch_id)
    see(story, landed)
    return landed


def see(story: LedgerStory, batches: list[BatchId]) -> None:
    digests = {each: DirectoryLook(sha256(each.encode()).digest()) for each in batches}
    story.ledger.note_directory_looks(digests, [], compared_at=datetime.now(UTC))


def grow_old(aged: psycopg.Connection[Any], *batches: BatchId) -> None:
    aged.execute(
        "UPDATE batch SET committed_at = committed_at - interval '29 days'"
        " WHERE batch_id = ANY(%s)",
        [list(batches)],
    )


def kept(story: LedgerStory) -> set[str]:
    return {row[0] for row in story.ask("SELECT batch_id FROM verification WHERE hashes <> ''")}


def export(story: LedgerStory) -> list[dict[str, Any]]:
    lines = [json.loads(each.line) for each in exported(story.dsn, FEED)]
    return [
        {key: value for key, value in each.items() if key not in ("hashes", "exported_at")}
        for each in lines
    ]


def test_hashes_of_old_batches_go_and_all_else_is_as_before(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    *old, young = land(story)
    grow_old(aged, *old)
    story.ledger.fold(FEED)  # ranges are folded, and hashes are gone
    assert kept(story) == {young}
    before = export(story)
    story.ledger.fold(FEED)
    assert export(story) == before
    found = story.ledger.committed_batch(old[0])
    assert found is not None
    assert found.manifest_text is None
    assert found.manifest.unhashed == {0: 9, 1: 9}


def test_an_export_is_the_same_but_for_the_hashes(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    story.open({0: (0, 100)})
    batch = story.committed((0, 0, 10)).batch_id
    story.ledger.mark_published(batch)
    see(story, [batch])
    grow_old(aged, batch)
    before = export(story)
    story.ledger.fold(FEED)
    assert (export(story), kept(story)) == (before, set())


def test_the_text_is_what_was_proven_once_the_rows_say_their_hashes(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    [batch] = land(story, 1)
    whole = story.ledger.committed_batch(batch)
    assert whole is not None
    grow_old(aged, batch)
    story.ledger.fold(FEED)
    account = story.ledger.committed_batch(batch)
    assert account is not None
    hashes = [
        each.anchor.content_hash.hex()
        for each in whole.manifest.ranges
        if each.anchor and each.anchor.content_hash
    ]
    assert whole_text(account.account, hashes) == whole.manifest_text
    assert account.manifest_sha256 == whole.manifest_sha256
    assert account.manifest.ranges != whole.manifest.ranges
    assert account.manifest.files == whole.manifest.files


def test_parts_of_two_manifests_are_no_text(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 10)))
    parts = parted(story.verify(attempt).to_json())
    with pytest.raises(ValueError, match="not those of this manifest"):
        whole_text(parts.account, ["00" * 16 for _ in parts.hashes])


def test_what_a_finding_is_about_or_a_repair_needs_is_kept(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    in_trouble, accepted, unseen, fine = land(story, 4)
    story.ledger.record_findings(
        FEED, [finding_of(0, 5, batch=in_trouble), finding_of(10, 15, batch=accepted)]
    )
    aged.execute("UPDATE finding SET state = 'waived' WHERE evidence ->> 'batch' = %s", [accepted])
    story.ledger.note_directory_looks({}, [unseen], compared_at=datetime.now(UTC))
    grow_old(aged, in_trouble, accepted, unseen, fine)
    story.ledger.fold(FEED)
    assert kept(story) == {in_trouble, accepted, unseen}
    aged.execute("UPDATE finding SET state = 'remedied', closed_at = now(), closed_by = 'a look'")
    story.ledger.fold(FEED)
    assert kept(story) == {unseen}


def test_two_folds_beside_commits_forget_what_is_old_and_nothing_else(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    old = land(story, 3)
    grow_old(aged, *old)
    verified = [story.verified((0, at, at + 10)) for at in (30, 40, 50)]
    gate = threading.Barrier(3)

    def work(place: int) -> None:
        mine = story.another()
        gate.wait(20)
        for attempt in verified:
            if place:
                mine.ledger.fold(FEED)
            else:
                mine.ledger.commit(attempt)
        mine.ledger.close()

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(3)))
    assert kept(story) == {each.batch_id for each in verified}
    committed = [each.status.plan.batch_id for each in story.ledger.batches(FEED)]
    assert committed == [*old, *(each.batch_id for each in verified)]


def test_a_repair_of_an_old_batch_needs_no_hash(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    [old] = land(story, 1)
    grow_old(aged, old)
    story.ledger.fold(FEED)
    [file] = [each.file for each in story.ledger.files(FEED) if each.file.slices[0].partition == 0]
    plan = replace(story.batch_of((0, 0, 10)), replaces=(CommittedFile(old, file.name),))
    story.freeze(plan)
    attempt = story.begin(plan.batch_id)
    story.verify(attempt)
    story.ledger.commit(attempt)
    assert set(story.ledger.replacements(FEED)) == {CommittedFile(old, file.name)}
    assert not story.ledger.unsound(FEED)
    assert kept(story) == {plan.batch_id}


LOOK_DAYS = (
    "SELECT looked_at::date, count(shown), count(*) FROM broker_snapshot GROUP BY 1 ORDER BY 1"
)


def look(story: LedgerStory, aged: psycopg.Connection[Any], *days_ago: int) -> None:
    """Looks of so many days ago, two in each day."""
    for each in days_ago:
        for _ in range(2):
            record_look(story.ledger, FEED, snapshot_of({0: (0, 100 - each)}))
            aged.execute(
                "UPDATE broker_snapshot SET begun_at = now() - make_interval(days => %s),"
                " taken_at = now() - make_interval(days => %s)"
                " WHERE snapshot_id = (SELECT max(snapshot_id) FROM broker_snapshot)",
                [each, each],
            )


def test_of_old_looks_one_of_each_day_stays_whole(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    story.open({0: (0, 100)})
    look(story, aged, 60, 50, 5)
    ids = [row[0] for row in story.ask("SELECT snapshot_id FROM broker_snapshot")]
    sums = story.ledger.look_sums(ids)
    newest = story.ledger.newest_bounds(FEED)
    story.ledger.fold(FEED)
    counts = [tuple(row[1:]) for row in story.ask(LOOK_DAYS)]
    assert counts == [(1, 2), (1, 2), (1, 1), (2, 2)]
    places = story.ledger.look_places(FEED)
    assert len(story.ledger.looks([each.snapshot_id for each in places])) == len(places)
    assert len(places) == sum(whole for whole, _ in counts)
    assert story.ledger.newest_bounds(FEED) == newest
    assert story.ledger.look_sums(ids) == sums
    shown = [each["shown"] for each in export(story) if each["table"] == "broker_snapshot"]
    assert shown.count(None) == 2


def test_the_newest_look_at_a_source_that_has_been_silent_stays_whole(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    """What is complete up to when must not move back because time passes."""
    story.open({0: (0, 100)})
    look(story, aged, 60, 50)
    [newest] = story.ask("SELECT max(snapshot_id) FROM broker_snapshot")
    story.ledger.fold(FEED)
    whole = story.ask("SELECT max(snapshot_id) FROM broker_snapshot WHERE shown IS NOT NULL")
    assert whole == [newest]


def test_looks_about_which_a_finding_stands_are_kept(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    story.open({0: (0, 100)})
    look(story, aged, 60, 50)
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    aged.execute("UPDATE finding SET first_seen_at = now() - interval '50 days'")
    story.ledger.fold(FEED)
    assert [tuple(row[1:]) for row in story.ask(LOOK_DAYS)][:2] == [(1, 2), (2, 2)]


def report(
    story: LedgerStory, aged: psycopg.Connection[Any], days_ago: int, verdict: Verdict
) -> int:
    number = story.ledger.store_report(replace(a_document(), feed=FEED, verdict=verdict))
    aged.execute(
        "UPDATE report SET recorded_at = date_trunc('day', now(), 'UTC') + interval '12 hours'"
        " - make_interval(days => %s) WHERE report_id = %s",
        [days_ago, number],
    )
    return number


def test_of_old_reports_the_last_and_the_worst_of_each_day_stay(
    story: LedgerStory, aged: psycopg.Connection[Any]
) -> None:
    story.open({0: (0, 100)})
    ok, loss = Verdict.PROVEN_OK, Verdict.PROVEN_LOSS
    told = [
        report(story, aged, days, verdict)
        for days, verdict in [
            (60, ok),
            (60, loss),
            (60, ok),
            (60, ok),
            (50, ok),
            (50, ok),
            (5, ok),
            (5, ok),
        ]
    ]
    story.ledger.fold(FEED)
    left = {row[0] for row in story.ask("SELECT report_id FROM report")}
    assert left == {told[1], told[3], *told[5:]}


@pytest.mark.parametrize("which", ["max(report_id)", "min(report_id)"])
def test_the_last_and_the_worst_report_of_a_day_can_not_be_removed(
    story: LedgerStory, aged: psycopg.Connection[Any], which: str
) -> None:
    story.open({0: (0, 100)})
    for verdict in (Verdict.PROVEN_LOSS, Verdict.PROVEN_OK, Verdict.PROVEN_OK):
        report(story, aged, 60, verdict)
    with story.raw() as hand, pytest.raises(psycopg.Error, match="DELETE refused: report"):
        hand.execute(f"DELETE FROM report WHERE report_id = (SELECT {which} FROM report)".encode())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE broker_snapshot SET shown = NULL",
        "UPDATE broker_snapshot SET shown = '\\x00'",
        "UPDATE broker_snapshot SET log_start_sum = 7, shown = NULL",
        "UPDATE verification SET hashes = NULL",
        "UPDATE verification SET hashes = '\\x00'",
        "UPDATE verification SET manifest = '', hashes = NULL",
    ],
)
def test_what_no_other_row_has_can_not_be_forgotten(
    story: LedgerStory, aged: psycopg.Connection[Any], statement: str
) -> None:
    story.open({0: (0, 100)})
    look(story, aged, 60)
    story.ledger.mark_published(story.committed((0, 0, 10)).batch_id)
    with story.raw() as hand, pytest.raises(psycopg.Error, match="is evidence and never changes"):
        hand.execute(statement.encode())
