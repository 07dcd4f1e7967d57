"""A connection string that is safe to use: understood, with its password kept out of every text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tallystick.errors import ConfigurationError

_ACCEPTED: Final = (
    "postgresql://user:password@host:port/database, special characters as %XX,"
    " or host=... port=... dbname=... user=... password=..."
)
# What libpq is told where the connection string is silent: no endless wait, no dead peer for hours.
_DEFAULTS: Final = {
    "application_name": "tallystick",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "client_encoding": "UTF8",
}


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """Where the ledger is; its text and repr never show the password."""

    parameters: dict[str, str] = field(repr=False)

    def __str__(self) -> str:
        host = self.parameters.get("host") or self.parameters.get("hostaddr") or "local socket"
        user, port = self.parameters.get("user", ""), self.parameters.get("port", "5432")
        return f"{user}@{host}:{port}/{self.parameters.get('dbname', user)}"

    def __repr__(self) -> str:
        return f"LedgerAddress({self})"

    def without_secrets(self, text: str) -> str:
        """The text with the password and its like blotted out."""
        for name in ("password", "sslpassword"):
            secret = self.parameters.get(name)
            if secret:
                text = text.replace(secret, "***")
        return text


def ledger_address(dsn: str, patience: timedelta | None = None) -> LedgerAddress:
    """The address that a connection string names; raises ConfigurationError.

    With `patience` no try to connect waits longer, nor for what was sent to be received.

    A misread string would hand parts of its password to the host or the port, and from there to an
    error text. So these are looked at before anything is tried, and the string is never shown.
    """
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except psycopg.Error:
        raise _not_understood() from None  # its text quotes the string
    ports = found.get("port", "")
    # An @ behind the parameters' question mark: that stands in a password, and was to be %3F.
    is_misread = "://" in dsn and "@" in dsn.partition("?")[2]
    if is_misread or "@" in found.get("host", "") or not re.fullmatch(r"[0-9,]*", ports):
        raise _not_understood()
    hurry = {} if patience is None else _hurried(patience)
    # Of several hosts one is to be written to; libpq would take the first that answers.
    hosts = found.get("host", "") + found.get("hostaddr", "")
    several = {"target_session_attrs": "read-write"} if "," in hosts else {}
    return LedgerAddress(_DEFAULTS | several | found | hurry)


def _hurried(patience: timedelta) -> dict[str, str]:
    seconds = max(1, int(patience.total_seconds()))
    return {"connect_timeout": str(seconds), "tcp_user_timeout": str(1000 * seconds)}


def _not_understood() -> ConfigurationError:
    return ConfigurationError("the ledger's connection string", "(not shown)", _ACCEPTED)
