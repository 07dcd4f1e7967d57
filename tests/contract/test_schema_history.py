"""What has happened stays as it was: the role that runs can't write history anew by hand."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.contract.test_ledger_grants import live
from tests.support.ledger_server import LedgerServer

FOLD = (
    "WITH gone AS (DELETE FROM offset_range WHERE state = 'committed' RETURNING *)"
    " INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)"
    " SELECT generation_id, range_merge(range_agg(offsets)), 'committed',"
    " {rows}, {holes} FROM gone GROUP BY generation_id"
)
FOLD_HOLES = (
    "WITH gone AS (DELETE FROM hole WHERE retracted_by IS NULL RETURNING *)"
    " INSERT INTO hole (generation_id, class, position, runs, hole_count)"
    " SELECT generation_id, class, 0, {runs}, {count} FROM gone GROUP BY generation_id, class"
)
NEW_HOLE = (
    "INSERT INTO hole (batch_id, generation_id, class, position, runs, hole_count)"
    " SELECT {batch}, generation_id, 'compacted', 0, '{runs}', {count} FROM generation"
)
NEW_REPAIR = (
    "INSERT INTO plan (feed, revision, owner, planned_at) SELECT feed, 99, 'me', now() FROM feed"
    " WHERE feed = 'orders';"
    "INSERT INTO batch (batch_id, feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label)"
    " SELECT 'aaaaaaaaaaaaaaaa', feed, (SELECT max(plan_id) FROM plan), root, topic, cluster_id,"
    " topic_id, ordinal, label FROM batch LIMIT 1;"
    "INSERT INTO replaced_file (batch_id, old_batch_id, name)"
    " SELECT 'aaaaaaaaaaaaaaaa', batch_id, name FROM file LEFT JOIN file_retraction gone"
    " USING (batch_id, name) WHERE gone.name IS NULL LIMIT 1;"
)


@pytest.fixture(scope="module")
def lived(ledger_server: LedgerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ledger with a history. Of each log [0, 16) is committed, with holes at [5, 8), [13, 16)."""
    database = ledger_server.fresh()
    live(ledger_server.dsn(database), tmp_path_factory.mktemp("lived"))
    yield database
    ledger_server.drop(database)


@pytest.fixture
def hand(
    ledger_server: LedgerServer, lived: str
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The role that runs, writing by hand; nothing of it is kept."""
    with psycopg.connect(ledger_server.dsn(lived)) as connection:
        yield connection
        connection.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        FOLD.format(rows="sum(record_count)", holes="sum(hole_count)"),
        FOLD_HOLES.format(runs="range_agg(runs)", count="sum(hole_count)"),
    ],
)
def test_rows_are_folded_with_their_counts(
    hand: psycopg.Connection[tuple[object, ...]], statement: str
) -> None:
    assert hand.execute(statement.encode()).rowcount > 0
    hand.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (FOLD.format(rows="sum(record_count) + 1", holes="sum(hole_count) - 1"), "counted anew"),
        (FOLD_HOLES.format(runs="range_agg(runs)", count="sum(hole_count) + 9"), "are not"),
        (
            FOLD_HOLES.format(
                runs="range_agg(runs) + '{[9,10)}'::int8multirange",
                count="sum(hole_count) + 1",
            )
            .replace("FROM gone", "FROM gone WHERE class = 'control'")
            .replace("IS NULL RETURNING", "IS NULL AND class = 'control' RETURNING"),
            "its committed ranges count other holes",
        ),
        (NEW_HOLE.format(batch="NULL", runs="{[0,2)}", count=2), "count other holes"),
        (NEW_HOLE.format(batch="NULL", runs="{[500,502)}", count=2), "count other holes"),
        (NEW_HOLE.format(batch="NULL", runs="{[0,2)}", count=3), "are not 3"),
        (NEW_HOLE.format(batch="NULL", runs="{[0,2),[900,)}", count=2), "are not 2"),
        (
            NEW_HOLE.format(batch="(SELECT min(batch_id) FROM batch)", runs="{[0,2)}", count=2),
            "count other holes",
        ),
        (
            "UPDATE hole SET retracted_by = (SELECT max(batch_id) FROM replaced_file)"
            " WHERE retracted_by IS NULL",
            "is retracted, and no repair commits",
        ),
        (
            NEW_REPAIR + "UPDATE hole SET retracted_by = 'aaaaaaaaaaaaaaaa'"
            " WHERE retracted_by IS NULL",
            "is retracted, and no repair commits",
        ),
        (
            NEW_REPAIR + "INSERT INTO file_retraction (batch_id, name, replaced_by)"
            " SELECT old_batch_id, name, batch_id FROM replaced_file"
            " WHERE batch_id = 'aaaaaaaaaaaaaaaa'",
            "is retracted, and no repair commits",
        ),
        (
            "INSERT INTO file_retraction (batch_id, name, replaced_by)"
            " SELECT f.batch_id, f.name, (SELECT max(batch_id) FROM replaced_file) FROM file f"
            " LEFT JOIN file_retraction gone USING (batch_id, name) WHERE gone.name IS NULL",
            "is retracted, and no repair commits",
        ),
        (
            "INSERT INTO replaced_file (batch_id, old_batch_id, name)"
            " SELECT (SELECT min(batch_id) FROM batch), batch_id, name FROM file LIMIT 1",
            "which files it replaces is said by its plan",
        ),
        (
            "UPDATE offset_range SET state = 'retracted' WHERE state = 'committed';"
            "INSERT INTO offset_range (generation_id, offsets, state, loss_code)"
            " SELECT generation_id, '[0,16)', 'lost', 'A1' FROM generation",
            "is retracted, and no repair commits",
        ),
        (
            "UPDATE offset_range SET state = 'retracted' WHERE state = 'committed';"
            "INSERT INTO offset_range (generation_id, offsets, state, record_count, hole_count)"
            " SELECT generation_id, '[0,16)', 'committed', 16, 0 FROM generation",
            "is retracted, and no repair commits",
        ),
        (
            "INSERT INTO stored_anew (batch_id, name, checksum)"
            " SELECT batch_id, name, split_part(checksum, ':', 1) || ':of other bytes' FROM file",
            "of another kind",
        ),
        ("UPDATE feed SET topic = 'another'", "feed is evidence"),
        ("UPDATE feed SET first_planned_at = now()", "feed is evidence"),
        ("UPDATE batch SET published_by = 'me' WHERE state = 'published'", "it never changes"),
        ("UPDATE batch SET published_at = now() WHERE state = 'published'", "it never changes"),
        (
            "UPDATE attempt SET application_id = 'mine' WHERE outcome = 'committed'",
            "its outcome never changes",
        ),
        (
            "UPDATE attempt SET ended_at = now() WHERE outcome = 'committed'",
            "its outcome never changes",
        ),
        (
            "UPDATE generation SET state = 'closed', ended_at = now(), ending_code = 'A6',"
            " ending_reason = 'x'; UPDATE generation SET ending_code = 'A10'",
            "why it ended never changes",
        ),
        ("UPDATE generation SET seen_epoch = NULL", "seen_epoch never moves back"),
        ("UPDATE generation SET seen_epoch = seen_epoch - 1", "seen_epoch never moves back"),
    ],
)
def test_history_is_not_written_anew(
    hand: psycopg.Connection[tuple[object, ...]], statement: str, why: str
) -> None:
    with pytest.raises(psycopg.Error, match=why):
        hand.execute(f"{statement}; SET CONSTRAINTS ALL IMMEDIATE".encode())
