"""A connection to the ledger's database is checked and typed here. Opens nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode

from tallystick.settings.connections import DSN_KEY, HIDDEN, Connection
from tallystick.settings.extras import hosts_of, require_type, text_of, with_known_extras

_DSN_URL: Final = re.compile(
    r"postgres(ql)?://((?P<login>[^:@/?]*)(:[^@/?]*)?(?P<at>@))?(?P<place>[^?@]*)(\?[^@]*)?"
)
# A part of a password that was taken for a port.
_NO_PORT: Final = re.compile(r":(?!\d*(,|/|$))")
# Connection parameters of libpq that an extra may carry. Others are refused: a mistyped sslmode
# would switch encryption off without a word.
_LIBPQ: Final = (
    "application_name", "channel_binding", "connect_timeout", "gssencmode", "keepalives",
    "keepalives_count", "keepalives_idle", "keepalives_interval", "options", "passfile",
    "require_auth", "ssl_min_protocol_version", "sslcert", "sslcertmode", "sslcrl", "sslkey",
    "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs",
    "tcp_user_timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerConnection:
    """The ledger's database."""

    dsn: str = field(repr=False)
    """A libpq URL; holds the password."""
    shown: str
    """The same without password and parameters."""

    @classmethod
    def of(cls, connection: Connection) -> LedgerConnection:
        """Reads host, port, login, password, schema (the database), libpq parameters as extra.

        Or from a `dsn` in the extra: any text that libpq takes, used as it is.
        """
        require_type(connection, "postgres")
        if DSN_KEY in connection.extra:
            return cls._of_dsn(connection, text_of(connection, DSN_KEY))
        if not connection.schema:
            raise connection.wrong("schema", None, "the database's name")
        extra = with_known_extras(connection, _LIBPQ).extra
        hosts = _ledger_hosts(connection)
        login = quote(connection.login or "", safe="")
        password = connection.password.get_secret_value() if connection.password else ""
        if password and not login:
            raise connection.wrong("login", None, "the role of this password")
        secret = f":{quote(password, safe='')}" if password else ""
        place = f"{hosts}/{quote(connection.schema, safe='')}"
        query = urlencode({key: text_of(connection, key) for key in extra}, quote_via=quote)
        return cls(
            dsn=f"postgresql://{login}{secret}{'@' if login else ''}{place}"
            + (f"?{query}" if query else ""),
            shown=f"postgresql://{login}{'@' if login else ''}{place}",
        )

    @classmethod
    def _of_dsn(cls, connection: Connection, dsn: str) -> LedgerConnection:
        match = _DSN_URL.fullmatch(dsn)
        if match and not _NO_PORT.search(re.sub(r"\[[^]]*]", "", match["place"].partition("/")[0])):
            return cls(
                dsn, f"postgresql://{match['login'] or ''}{match['at'] or ''}{match['place']}"
            )
        if "=" not in dsn or "://" in dsn:
            raise connection.wrong(
                "extra dsn", HIDDEN, "postgresql://login:password@host:port/name"
            )
        return cls(dsn, "the database that the dsn names")


def _ledger_hosts(connection: Connection) -> str:
    """Writes them as libpq's URL does: a directory with a socket, or hosts with their ports."""
    host = connection.host or ""
    if not host or "/" in host:
        return f"{quote(host, safe='')}:{connection.port or 5432}"
    return ",".join(f"{name}:{port}" for name, port in hosts_of(connection, host, 5432))
