"""History stays as it was, whoever writes by hand; guards ask the ledger's own tables alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tallystick.ledger import migrations as migrating
from tallystick.ledger.migrations import Purpose, grant, migrate
from tallystick.ledger.statements import migrations
from tests.contract.test_ledger_grants import live
from tests.support.ledger_server import OWNER_ROLE, RUNNER_ROLE, LedgerServer

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
    """A ledger with a history, where everybody may still make temporary tables.

    Of each log [0, 16) is committed, with holes at [5, 8), [13, 16).
    """
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


WITHOUT_PATH = (
    "SELECT f.oid::regprocedure::text FROM pg_proc f"
    " WHERE f.pronamespace = quote_ident(current_schema())::regnamespace"
    " AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = f.oid AND d.deptype = 'e')"
    " AND NOT coalesce(f.proconfig @> ARRAY['search_path=' || quote_ident(current_schema())"
    " || ', pg_temp'], false)"
)
FORGED_BATCH = """
INSERT INTO public.batch
       (batch_id, feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label)
SELECT 'aaaaaaaaaaaaaaaa', feed, plan_id, root, topic, cluster_id, topic_id, ordinal, label
  FROM public.batch LIMIT 1;
INSERT INTO public.attempt (attempt_id, batch_id, token, owner)
VALUES ('bbbbbbbbbbbbbbbb', 'aaaaaaaaaaaaaaaa', 1, 'x');
INSERT INTO public.verification (batch_id, attempt_id, isolation, manifest, sha256, file_sha256)
VALUES ('aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb', 'read_committed', 'x', sha256('x'), sha256('x'));
UPDATE public.batch SET state = 'landing', newest_token = 1 WHERE batch_id = 'aaaaaaaaaaaaaaaa';
UPDATE public.batch
   SET state = 'verified', verification_id = (SELECT max(verification_id) FROM public.verification)
 WHERE batch_id = 'aaaaaaaaaaaaaaaa';
UPDATE public.batch
   SET state = 'committed', committed_by = 'bbbbbbbbbbbbbbbb', committed_at = now(),
       commit_number = nextval('commit_number'), record_count = 1, hole_count = 0, byte_count = 1
 WHERE batch_id = 'aaaaaaaaaaaaaaaa';
"""


@pytest.mark.parametrize(
    ("shadow", "statement", "why"),
    [
        (
            "offset_range AS SELECT generation_id, 'committed'::range_state AS state,"
            " false AS replaces, '[0,1000000)'::int8range AS offsets FROM generation",
            "DELETE FROM public.offset_range WHERE state = 'committed'",
            "would be forgotten",
        ),
        (
            "hole AS SELECT generation_id, class, NULL::text AS retracted_by,"
            " '{[0,1000000)}'::int8multirange AS runs"
            " FROM generation, unnest(enum_range(NULL::hole_class)) AS class",
            "DELETE FROM public.hole WHERE retracted_by IS NULL",
            "would be forgotten",
        ),
        (
            "offset_range AS SELECT generation_id, 'committed' AS state,"
            " '[0,1000000)'::int8range AS offsets FROM generation",
            "UPDATE public.generation SET frontier = 900000, last_seen_until = 900000",
            "not all between is committed or lost",
        ),
        ("commit_link AS SELECT 'aaaaaaaaaaaaaaaa' AS batch_id", FORGED_BATCH, "has no link"),
    ],
    ids=["ranges", "holes", "frontier", "chain"],
)
def test_a_temporary_table_switches_no_guard_off(
    ledger_server: LedgerServer, lived: str, shadow: str, statement: str, why: str
) -> None:
    with psycopg.connect(ledger_server.dsn(lived)) as hand:
        hand.execute(f"CREATE TEMPORARY TABLE {shadow}".encode())
        with pytest.raises(psycopg.Error, match=why):
            hand.execute(f"{statement}; SET CONSTRAINTS ALL IMMEDIATE".encode())


def test_every_function_names_its_path(ledger_server: LedgerServer, ledger_database: str) -> None:
    with psycopg.connect(ledger_server.dsn(ledger_database)) as hand:
        assert hand.execute(WITHOUT_PATH.encode()).fetchall() == []


def test_a_later_migrations_functions_get_the_path_too(
    ledger_server: LedgerServer, ledger_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that it makes, and those that it replaces: a replaced one has lost its path."""
    script = b"".join(
        b"CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END';" % name
        for name in (b"guard_feed_once_more", b"guard_anchor")
    )
    later = replace(migrations()[-1], version=len(migrations()) + 1, name="later", script=script)
    monkeypatch.setattr(migrating, "migrations", lambda: (*migrations(), later))
    dsn = ledger_server.dsn(ledger_database, role=OWNER_ROLE)
    assert migrate(dsn) == ("later",)
    with psycopg.connect(dsn) as hand:
        assert hand.execute("SELECT to_regproc('guard_feed_once_more')").fetchone() != (None,)
        assert hand.execute(WITHOUT_PATH.encode()).fetchall() == []


@pytest.fixture
def open_house(ledger_server: LedgerServer) -> Iterator[str]:
    """A database in which everybody may create, as in those of PostgreSQL 14 and before."""
    database = ledger_server.fresh(template="template0")
    ledger_server.execute(database, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    yield database
    ledger_server.drop(database)


def test_a_migration_takes_from_everybody_what_nobody_needs(
    ledger_server: LedgerServer, open_house: str
) -> None:
    """An operator of a role's own would come before PostgreSQL's where a guard compares ranges."""
    ledger_server.migrate(open_house)
    for refused in (
        "CREATE FUNCTION public.yes(int8range, int8range) RETURNS boolean"
        " LANGUAGE sql AS 'SELECT true'",
        "CREATE TEMPORARY TABLE offset_range ()",
    ):
        with (
            psycopg.connect(ledger_server.dsn(open_house)) as hand,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            hand.execute(refused.encode())


def test_what_the_owner_may_not_take_is_told_with_the_statement_for_who_may(
    ledger_server: LedgerServer, open_house: str, caplog: pytest.LogCaptureFixture
) -> None:
    ledger_server.execute(open_house, "ALTER SCHEMA public OWNER TO postgres")
    ledger_server.execute(open_house, f"GRANT CREATE ON SCHEMA public TO {OWNER_ROLE}")
    ledger_server.migrate(open_house)
    assert "should run: REVOKE CREATE ON SCHEMA public FROM PUBLIC" in caplog.text


def test_a_ledger_lives_in_another_schema_than_public(
    ledger_server: LedgerServer, tmp_path: Path
) -> None:
    database = ledger_server.fresh(template="template0")
    ledger_server.execute(database, f'CREATE SCHEMA "Odd one" AUTHORIZATION {OWNER_ROLE}')
    ledger_server.execute(database, f"ALTER DATABASE {database} SET search_path = 'Odd one'")
    owner = ledger_server.dsn(database, role=OWNER_ROLE)
    migrate(owner)
    grant(owner, RUNNER_ROLE, Purpose.RUN)
    live(ledger_server.dsn(database), tmp_path)
    with psycopg.connect(owner) as hand:
        assert hand.execute(WITHOUT_PATH.encode()).fetchall() == []
    ledger_server.drop(database)
