"""What a role is granted is enough to run, or to read; and each single grant is needed.

That it is enough to run is also what all tests of the ledger show: they run as such a role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.report.news import Wish
from tallystick.domain.rules.waivers import WaiverWish
from tallystick.errors import (
    ConfigurationError,
    IngestionError,
    LedgerRefused,
    LedgerRightMissing,
)
from tallystick.ledger.exporting import exported
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.migrations import Purpose, grant, migrate
from tallystick.ledger.statements import statements
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tallystick.workflows.reconciling.scrubbing import scrub
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.telling import Recipient, tell
from tests.support.ledger_server import OWNER_ROLE, RUNNER_ROLE, LedgerServer
from tests.support.ledger_story import finding_of
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_feed
from tests.support.waivers import YEARS_LATER

READER, ANOTHER, STRANGE = "a_reading_role", "another_role", "a Strange role"
TO_RUN = [
    (kind, name, privilege)
    for kind, name, privileges in re.findall(
        r"\('(TABLE|SEQUENCE)',\s+'(\w+)',\s+'\{([A-Z,]+)\}'",
        statements()["grants_lacking"].query.decode(),
    )
    for privilege in privileges.split(",")
]
TO_READ = [name for _, name, privilege in TO_RUN if privilege == "SELECT"]


def live(dsn: str, directory: Path) -> None:
    """What a role that runs does to a ledger in its life; raises what goes wrong first."""
    broker = ScriptedBroker("orders")
    story = Story(dsn, directory, broker)
    for _ in range(2):
        for log in broker.logs.values():
            log.append(Kind.RECORD, 5)
            log.append(Kind.ABORTED, 2)
            log.append(Kind.CONTROL, 1)
        expect_none(land_feed(story.services(), None, Owner("one")).errors)
    next((directory / "landing" / FEED).rglob("*.parquet")).unlink()
    reconcile(story.services())
    expect_none(repair_feed(story.services(), story.named(), Owner("two")).errors)
    scrub(story.services())
    store_report(story.services(), report_of(story.services(), reconcile(story.services())))
    with closing(Ledger(dsn)) as ledger, closing(Ledger(dsn)) as turns:
        ledger.record_findings(FEED, [finding_of(0, 3)])
        expect_none(tell(a_feed(), turns, ledger, {"a" * 16: Recipient(lambda news: None, Wish())}))
        accept_at_the_second_try(ledger)
        ledger.fold(FEED)
        ledger.note_hours(FEED, {"/landing/orders/gen=1/dt=2026-11-01/hour=11": "1 7"})
        batch = ledger.directories(FEED)[-1]
        ledger.record_checksum(batch.batch_id, next(iter(batch.files)), "MD5:of the same bytes")
        ended = FeedName("ended")
        with ledger.planning(ended, "orders"):
            pass
        ledger.retire(ended, reason="sold", by="ada")
        ledger.record_move([batch.batch_id], batch.path.root, "/moved", Owner("two"))
    look(dsn)


def accept_at_the_second_try(ledger: Ledger) -> None:
    [stored] = ledger.findings(FEED)
    number = stored.finding_id
    wish = WaiverWish(
        finding_id=number,
        reason="known",
        asked_by="ada",
        expires_at=YEARS_LATER,
        digest=stored.digest,
    )
    [first] = ledger.ask_for_waivers([wish])
    ledger.withdraw_waiver_requests({number: first.number}, by="ada")
    [second] = ledger.ask_for_waivers([wish])
    ledger.approve_waivers({number: second.number}, by="grace")
    ledger.end_waivers([number], by="ada", reason="it matters after all")


def look(dsn: str) -> None:
    """What a role that reads does."""
    with closing(Ledger(dsn)) as ledger:
        ledger.feed_heads(most_runs=1)
        ledger.figures()
        ledger.accounts(FEED)
        ledger.files(FEED)
        for each in ledger.batches(FEED):
            ledger.committed_copies(each.status.plan.batch_id)
    for _ in exported(dsn, None):
        pass


def expect_none(errors: Sequence[IngestionError]) -> None:
    if errors:
        raise errors[0]


@pytest.mark.parametrize(("kind", "name", "privilege"), TO_RUN)
def test_without_a_single_grant_something_fails(
    ledger_server: LedgerServer,
    ledger_database: str,
    tmp_path: Path,
    kind: str,
    name: str,
    privilege: str,
) -> None:
    revoke(ledger_server, ledger_database, f"{privilege} ON {kind} {name}", RUNNER_ROLE)
    with pytest.raises(LedgerRightMissing, match=rf"permission denied for [a-z]+ {name}\."):
        live(ledger_server.dsn(ledger_database), tmp_path)


@pytest.fixture(scope="module")
def lived(ledger_server: LedgerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A ledger with a history, and a role that may read it."""
    database = ledger_server.fresh()
    live(ledger_server.dsn(database), tmp_path_factory.mktemp("lived"))
    make_role(ledger_server, READER)
    grant(ledger_server.dsn(database, role=OWNER_ROLE), READER, Purpose.READ)
    yield database
    ledger_server.drop(database)
    drop_role(ledger_server, READER)


def test_a_role_that_reads_sees_all_and_changes_nothing(
    ledger_server: LedgerServer, lived: str
) -> None:
    look(ledger_server.dsn(lived, role=READER))
    with (
        closing(Ledger(ledger_server.dsn(lived, role=READER))) as ledger,
        pytest.raises(LedgerRightMissing, match="--grant-to ROLE"),
    ):
        ledger.fold(FEED)


@pytest.mark.parametrize("name", TO_READ)
def test_without_a_single_grant_something_can_not_be_read(
    ledger_server: LedgerServer, lived: str, name: str
) -> None:
    revoke(ledger_server, lived, f"SELECT ON {name}", READER)
    with pytest.raises(LedgerRightMissing, match=rf"permission denied for [a-z]+ {name}\."):
        look(ledger_server.dsn(lived, role=READER))
    given = grant(ledger_server.dsn(lived, role=OWNER_ROLE), READER, Purpose.READ)
    assert given == (f"SELECT on table {name}",)


@pytest.fixture
def closed(ledger_server: LedgerServer) -> Iterator[str]:
    """A migrated ledger whose server gives nothing to everybody, and a role without any right."""
    database = ledger_server.fresh(template="template0")
    ledger_server.execute(database, f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
    ledger_server.execute(database, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
    migrate(ledger_server.dsn(database, role=OWNER_ROLE))
    make_role(ledger_server, STRANGE)
    yield database
    ledger_server.drop(database)
    drop_role(ledger_server, STRANGE)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_role_may_enter_where_nobody_else_may(
    ledger_server: LedgerServer, closed: str, tmp_path: Path, purpose: Purpose
) -> None:
    """And without one of these two grants it may not."""
    owner, role = ledger_server.dsn(closed, role=OWNER_ROLE), address(ledger_server, closed)
    given = grant(owner, STRANGE, purpose)
    rights = TO_RUN if purpose is Purpose.RUN else TO_READ
    assert len(given) == len(rights) + 2
    if purpose is Purpose.RUN:
        live(role, tmp_path)
    else:
        look(role)
    revoke(ledger_server, closed, "USAGE ON SCHEMA public", STRANGE)
    with pytest.raises(IngestionError):
        look(role)
    assert grant(owner, STRANGE, purpose) == ("USAGE on schema public",)
    revoke(ledger_server, closed, f"CONNECT ON DATABASE {closed}", STRANGE)
    with pytest.raises(IngestionError, match="permission denied for database"):
        look(role)
    assert grant(owner, STRANGE, purpose) == (f"CONNECT on database {closed}",)
    assert grant(owner, STRANGE, purpose) == (), "it has all that it needs"


FUNCTIONS = re.findall(
    r"'FUNCTION',\s+'((\w+)\([^']*\))'", statements()["grants_lacking"].query.decode()
)


@pytest.fixture
def hardened(ledger_server: LedgerServer) -> Iterator[str]:
    """A ledger whose owner gives nobody the use of new functions and types."""
    database = ledger_server.fresh(template="template0")
    for kind in ("EXECUTE ON FUNCTIONS", "USAGE ON TYPES"):
        ledger_server.execute(
            database, f"ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER_ROLE} REVOKE {kind} FROM PUBLIC"
        )
    ledger_server.migrate(database)
    yield database
    ledger_server.drop(database)


def test_functions_are_granted_where_they_are_not_everybodys(
    ledger_server: LedgerServer, hardened: str, tmp_path: Path
) -> None:
    """Types need no grant: what they would be refused for is only to make tables of them."""
    live(ledger_server.dsn(hardened), tmp_path)
    make_role(ledger_server, ANOTHER)
    given = grant(ledger_server.dsn(hardened, role=OWNER_ROLE), ANOTHER, Purpose.READ)
    look(ledger_server.dsn(hardened, role=ANOTHER))
    assert "EXECUTE on function numbers_in(int4multirange)" in given
    ledger_server.execute(hardened, f"DROP OWNED BY {ANOTHER}")
    drop_role(ledger_server, ANOTHER)


@pytest.mark.parametrize(("function", "name"), FUNCTIONS)
def test_without_a_single_function_something_fails(
    ledger_server: LedgerServer, hardened: str, tmp_path: Path, function: str, name: str
) -> None:
    revoke(ledger_server, hardened, f"EXECUTE ON FUNCTION {function}", RUNNER_ROLE)
    with pytest.raises(LedgerRightMissing, match=f"permission denied for function {name}"):
        live(ledger_server.dsn(hardened), tmp_path)


def test_only_the_owner_grants(ledger_server: LedgerServer, closed: str) -> None:
    owner, role = ledger_server.dsn(closed, role=OWNER_ROLE), address(ledger_server, closed)
    grant(owner, STRANGE, Purpose.READ)
    with pytest.raises(LedgerRefused, match="permission denied"):
        grant(role, RUNNER_ROLE, Purpose.RUN)
    with pytest.raises(ConfigurationError, match="CREATE ROLE"):
        grant(owner, "nobody's", Purpose.RUN)


def test_rights_for_what_a_migration_adds_are_given_by_the_next_grant(
    ledger_server: LedgerServer, ledger_database: str
) -> None:
    """As if the newest migration had made this table."""
    for right in ("SELECT", "INSERT", "DELETE"):
        revoke(ledger_server, ledger_database, f"{right} ON report", RUNNER_ROLE)
    given = grant(ledger_server.dsn(ledger_database, role=OWNER_ROLE), RUNNER_ROLE, Purpose.RUN)
    assert given == tuple(f"{each} on table report" for each in ("DELETE", "INSERT", "SELECT"))


def test_every_table_and_view_is_named_among_the_rights(
    ledger_server: LedgerServer, ledger_database: str
) -> None:
    with psycopg.connect(ledger_server.dsn(ledger_database)) as hand:
        found = hand.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'p')"
            " AND relnamespace = current_schema()::regnamespace ORDER BY relname"
        ).fetchall()
    assert [name for (name,) in found] == sorted(TO_READ)


def make_role(server: LedgerServer, role: str) -> None:
    server.execute("postgres", f"CREATE ROLE \"{role}\" LOGIN PASSWORD '{server.password}'")


def drop_role(server: LedgerServer, role: str) -> None:
    server.execute("postgres", f'DROP ROLE "{role}"')


def revoke(server: LedgerServer, database: str, right: str, role: str) -> None:
    server.execute(database, f'REVOKE {right} FROM "{role}"')


def address(server: LedgerServer, database: str) -> str:
    return server.dsn(database, role=quote(STRANGE))
