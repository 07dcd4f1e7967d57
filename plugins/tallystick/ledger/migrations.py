"""What the ledger's owner does: the schema's way from number to number, and what other roles may.

1. Each step of the schema and its record are one transaction.
2. The rights stand in `sql/grants.sql`, table by table. A role is given what it lacks, so a command
   that is run again, or after a migration, gives the rest.
"""

from __future__ import annotations

import logging
from contextlib import closing
from enum import Enum
from typing import Final

from tallystick.errors import ConfigurationError, LedgerRefused, LedgerRightMissing, SchemaOutOfDate
from tallystick.ledger.connection import LedgerConnection, Transaction, schema_found
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.statements import Migration, migrations

log = logging.getLogger(__name__)

_EXTENSION_HELP: Final = (
    "The ledger needs the extension btree_gist. Have an administrator run, in the ledger's"
    " database: CREATE EXTENSION btree_gist; (package postgresql-contrib), and migrate again."
)
_GRANT_HELP: Final = "the ledger's owner makes these grants, so connect as that role"
_OWNER_HELP: Final = "Only the ledger's owner migrates: connect as that role"


class Purpose(Enum):
    """What a role is for."""

    RUN = "run"
    """Land, reconcile, repair, accept: all that Tallystick does but migrations."""
    READ = "read"
    """Read everything, change nothing."""


def status(dsn: str) -> tuple[int, int]:
    """The schema's number as found (0 before the first migration), and the one this code needs."""
    with closing(_unchecked(dsn)) as connection, connection.reading() as transaction:
        return schema_found(transaction), len(migrations())


def migrate(dsn: str) -> tuple[str, ...]:
    """Names of the migrations that were applied just now, in order; none when all is up to date.

    Two migrators wait for one another. Raises SchemaOutOfDate for a schema newer than this code,
    LedgerRefused where a right is missing. Everybody loses what nobody needs: the rights to create
    in the schema, and temporary tables.
    """
    with closing(_unchecked(dsn)) as connection:
        applied: list[str] = []
        while name := _migrated(connection):
            applied.append(name)
        _take_from_everybody(connection)
        return tuple(applied)


def _unchecked(dsn: str) -> LedgerConnection:
    return LedgerConnection(ledger_address(dsn), checks_schema=False)


def _migrated(connection: LedgerConnection) -> str | None:
    try:
        with connection.writing() as transaction:
            return _step(transaction)
    except LedgerRightMissing as error:
        raise LedgerRightMissing("to make its schema", f"{error.reason}. {_OWNER_HELP}") from error


def _step(transaction: Transaction) -> str | None:
    transaction.row("lock_migrations")
    found, wanted = schema_found(transaction), len(migrations())
    if found > wanted:
        raise SchemaOutOfDate(found, wanted)
    if found == wanted:
        return None
    if found == 0:
        transaction.change("make_schema_version")
    step = migrations()[found]
    _apply(transaction, step)
    # No migration names the path in each of its functions, and none can forget it.
    for each in transaction.rows("paths_lacking"):
        transaction.script("paths_lacking", each.query.encode())
    transaction.change("record_migration", version=step.version, name=step.name)
    return step.name


def _apply(transaction: Transaction, step: Migration) -> None:
    try:
        transaction.script(step.name, step.script)
    except LedgerRefused as error:
        if "btree_gist" in error.describe():
            raise LedgerRefused(step.name, f"{error.reason}. {_EXTENSION_HELP}") from error
        raise


def _take_from_everybody(connection: LedgerConnection) -> None:
    """Where another role owns the schema or the database, only say what its owner should run."""
    with connection.writing() as transaction:
        transaction.row("lock_migrations")
        for each in transaction.rows("rights_of_everybody"):
            if each.may_take:
                transaction.script("rights_of_everybody", each.query.encode())
            else:
                log.warning("Everybody has %s; its owner should run: %s", each.given, each.query)


def grant(dsn: str, role: str, purpose: Purpose) -> tuple[str, ...]:
    """What the role was given just now, such as `INSERT on table batch`; nothing if it had all.

    Raises ConfigurationError for a role that is not there, LedgerRightMissing where this connection
    may not make the grants; nothing is granted then.
    """
    with (
        closing(LedgerConnection(ledger_address(dsn))) as connection,
        connection.writing() as transaction,
    ):
        transaction.row("lock_migrations")
        return _given(transaction, role, purpose)


def _given(transaction: Transaction, role: str, purpose: Purpose) -> tuple[str, ...]:
    if not transaction.one("role_exists", role=role).role_exists:
        raise ConfigurationError(
            "role", role, "a role that the server has: an administrator makes it by CREATE ROLE"
        )
    wanted = {"role": role, "to_run": purpose is Purpose.RUN}
    lacking = transaction.rows("grants_lacking", **wanted)
    for each in lacking:
        transaction.script("grant", each.query.encode())
    # PostgreSQL only warns where some right is there, and not the one to hand it on.
    left = transaction.rows("grants_lacking", **wanted)
    if left:
        raise LedgerRightMissing("grant", f"role {role} still lacks {left[0].given}; {_GRANT_HELP}")
    return tuple(each.given for each in lacking)
