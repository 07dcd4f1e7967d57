"""What roles other than the owner's may do in the ledger: which grants, and that they hold.

The rights stand in `sql/grants.sql`, table by table. A role is given what it lacks, so a command
that is run again, or after a migration, gives the rest.
"""

from __future__ import annotations

from contextlib import closing
from enum import Enum
from typing import Final

from tallystick.errors import ConfigurationError, LedgerRightMissing
from tallystick.ledger.connection import LedgerConnection, Transaction
from tallystick.ledger.dsn import ledger_address


class Purpose(Enum):
    """What a role is for."""

    RUN = "run"
    """Land, reconcile, repair, accept: all that Tallystick does but migrations."""
    READ = "read"
    """Read everything, change nothing."""


_OWNER_HELP: Final = "the ledger's owner makes these grants, so connect as that role"


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
        raise LedgerRightMissing("grant", f"role {role} still lacks {left[0].given}; {_OWNER_HELP}")
    return tuple(each.given for each in lacking)
