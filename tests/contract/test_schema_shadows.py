"""Guards ask the ledger's own tables, whatever tables, operators or paths their caller brings."""

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


@pytest.fixture(scope="module")
def lived(ledger_server: LedgerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ledger with a history, in a database where everybody may still make temporary tables."""
    database = ledger_server.fresh()
    live(ledger_server.dsn(database), tmp_path_factory.mktemp("lived"))
    yield database
    ledger_server.drop(database)


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
