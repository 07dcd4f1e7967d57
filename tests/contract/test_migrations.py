"""Migrations and statements, numbered and applied once; the schema that people read; its codes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from tallystick import ledger
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.planning.log_changes import LogChanges
from tallystick.domain.rules.findings import Level
from tallystick.domain.rules.registry import codes_with
from tallystick.domain.rules.rule import Trait
from tallystick.errors import LedgerRefused, SchemaOutOfDate
from tallystick.ledger.exporting import TABLES
from tallystick.ledger.migrations import migrate, status
from tallystick.ledger.statements import migrations, statements
from tests.support.ledger_server import OWNER_ROLE, LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of
from tests.support.schema_dump import SCHEMA, schema_text

WANTED = len(migrations())


@pytest.fixture
def empty(ledger_server: LedgerServer) -> Iterator[str]:
    """A database without a ledger."""
    database = ledger_server.fresh(template="template0")
    yield database
    ledger_server.drop(database)


def test_a_new_database_is_migrated_once(ledger_server: LedgerServer, empty: str) -> None:
    dsn = ledger_server.dsn(empty, role=OWNER_ROLE)
    assert status(dsn) == (0, WANTED)
    assert migrate(dsn) == tuple(each.name for each in migrations())
    assert status(dsn) == (WANTED, WANTED)
    assert migrate(dsn) == ()
    story = LedgerStory(dsn)
    story.open({0: (0, 10)})
    story.committed((0, 0, 10))
    story.ledger.close()


def test_two_migrators_do_the_work_once(ledger_server: LedgerServer, empty: str) -> None:
    applied: list[str] = []
    gate = threading.Barrier(3)

    def run() -> None:
        gate.wait(20)
        applied.extend(migrate(ledger_server.dsn(empty, role=OWNER_ROLE)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    # Each once; they may share the work, and the one that began may be the last to say so.
    assert sorted(applied) == [each.name for each in migrations()]


def test_a_newer_schema_is_left_alone(story: LedgerStory) -> None:
    with story.raw() as hand:
        hand.execute("INSERT INTO schema_version (version, name) VALUES (99, 'from the future')")
    assert status(story.dsn) == (99, WANTED)
    with pytest.raises(SchemaOutOfDate, match="has schema 99"):
        migrate(story.dsn)


def test_a_migration_that_fails_leaves_nothing(ledger_server: LedgerServer, empty: str) -> None:
    ledger_server.execute(empty, "CREATE TABLE finding (in_the_way integer)")
    with pytest.raises(LedgerRefused, match="finding"):
        migrate(ledger_server.dsn(empty, role=OWNER_ROLE))
    assert status(ledger_server.dsn(empty, role=OWNER_ROLE)) == (0, WANTED)
    ledger_server.execute(empty, "DROP TABLE finding")
    assert migrate(ledger_server.dsn(empty, role=OWNER_ROLE))


def test_a_role_without_the_right_is_told_what_an_administrator_does(
    ledger_server: LedgerServer, empty: str
) -> None:
    ledger_server.execute(empty, f"REVOKE CREATE ON DATABASE {empty} FROM {OWNER_ROLE}")
    ledger_server.execute("postgres", f"ALTER DATABASE {empty} OWNER TO postgres")
    ledger_server.execute(empty, f"GRANT ALL ON SCHEMA public TO {OWNER_ROLE}")
    with pytest.raises(LedgerRefused, match="CREATE EXTENSION btree_gist"):
        migrate(ledger_server.dsn(empty, role=OWNER_ROLE))
    ledger_server.execute(empty, "CREATE EXTENSION btree_gist")
    assert migrate(ledger_server.dsn(empty, role=OWNER_ROLE))


# Statements ---------------------------------------------------------------------------------------


def test_every_statement_has_a_sentence_and_is_used() -> None:
    folder = Path(str(ledger.__file__)).parent
    code = "".join(each.read_text() for each in sorted(folder.glob("*.py")))
    exported = {f"export_{table}" for table in TABLES}
    assert len(statements()) > 50
    for each in statements().values():
        assert each.sentence.endswith("."), each.name
        is_named = f'"{each.name}"' in code or each.name in exported
        assert is_named, f"{each.name} is used nowhere"


def test_no_statement_is_written_in_python() -> None:
    folder = Path(str(ledger.__file__)).parent
    for module in sorted(folder.glob("*.py")):
        assert not re.search(r'"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|ALTER) ', module.read_text())


def test_every_migration_is_numbered_and_named() -> None:
    assert [each.version for each in migrations()] == list(range(1, WANTED + 1))
    assert migrations()[0].name == "0001_first_schema"


def test_findings_levels_fit_the_schema(story: LedgerStory) -> None:
    story.change(LogChanges(), findings=[finding_of(partition=n) for n, _ in enumerate(Level)])
    assert len(story.ledger.findings(FEED)) == len(Level)


def test_schema_sql_is_todays_schema(story: LedgerStory) -> None:
    assert SCHEMA.read_text() == schema_text(story.dsn), (
        "write it anew: python -m tests.support.schema_dump"
    )


CODES = set(FindingCode)


def codes_in(text: str) -> list[str]:
    """The finding codes that stand between quotes."""
    return [each for each in re.findall(r"'(\w+)'", text) if each in CODES]


def test_the_schema_knows_a_cut_log_and_a_rebuilt_one_by_the_codes_of_the_rules() -> None:
    schema = SCHEMA.read_text()
    ended = codes_in(" ".join(re.findall(r"ending_code (?:=|IS DISTINCT FROM) '\w+'", schema)))
    told = codes_in(" ".join(re.findall(r"f\.code = '\w+'", schema)))

    assert ended == [FindingCode.LEDGER_BEHIND, FindingCode.LEDGER_BEHIND, *codes_with(Trait.CUT)]
    assert told == codes_with(Trait.CUT)
    assert sorted(codes_in(schema)) == sorted([*ended, *told])


def test_no_statement_names_a_code() -> None:
    directory = files("tallystick.ledger") / "sql"
    statements = {
        each.name: each.read_text() for each in directory.iterdir() if each.name.endswith(".sql")
    }

    assert "reading.sql" in statements
    assert {name: codes_in(text) for name, text in statements.items() if codes_in(text)} == {}
