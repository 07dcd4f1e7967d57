"""A connection to a Spark Connect server is checked and typed here. Opens nothing.

By the rules of Airflow's Spark provider (SparkConnectHook): a connection made for it names the same
server: host, port, login (the user's id), password (the token), the extra's `use_ssl`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from pydantic import SecretStr

from tallystick.settings.connections import HIDDEN, Connection
from tallystick.settings.extras import (
    flag,
    node_file,
    require_type,
    shown_word,
    with_known_extras,
)

CONN_TYPE: Final = "spark_connect"
_DEFAULT_PORT: Final = 15002
# PySpark takes no IPv6 address.
_HOST: Final = re.compile(r"(sc://)?(?P<host>[^\s:/;@\[\]]+)(:(?P<port>\d{1,5}))?")
_EXTRAS: Final = ("use_ssl", "kafka-secrets")
# What a header of HTTP/2 can carry.
_TOKEN: Final = re.compile(r"[!-~]+")
_SERVER: Final = "the server's host, such as spark.example.com"


def session_url(url: str, session_id: str) -> str:
    """Returns PySpark's address of this session; the user is `tallystick` if it has none.

    PySpark takes a slash in a token for a path, and the provider's hook leaves it as it is.
    """
    server, _, parameters = url.partition("/;")
    told = parameters.replace("/", "%2F") if parameters else ""
    user = "" if ";user_id=" in url else ";user_id=tallystick"
    return f"{server.rstrip('/')}/{';' * bool(told)}{told}{user};session_id={session_id}"


@dataclass(frozen=True, slots=True)
class SparkConnectConnection:
    """A Spark Connect server, and as whom sessions are opened there."""

    host: str
    port: int
    user: str | None
    token: SecretStr | None
    use_ssl: bool
    kafka_secrets: str | None = None
    """Absolute path, on the server's machines, of the file with Kafka's secrets."""

    @property
    def address(self) -> str:
        """The server, without anything that is secret."""
        return f"sc://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Returns what the provider's hook makes of this connection; it holds the token.

        Only who works without Airflow needs it: the hook takes seconds to import.
        """
        parameters = {"user_id": self.user, "token": self.token and self.token.get_secret_value()}
        if self.use_ssl:
            parameters["use_ssl"] = "true"
        told = [f"{key}={quote(value)}" for key, value in parameters.items() if value]
        return f"{self.address}/{';' * bool(told)}{';'.join(told)}"

    @classmethod
    def of(cls, connection: Connection) -> SparkConnectConnection:
        """Raises ConfigurationError, with the connection and the part that is wrong.

        PySpark sends a token by TLS only, whether `use_ssl` says so or not; to `localhost`, not.
        """
        require_type(connection, CONN_TYPE)
        found = _HOST.fullmatch(connection.host or "")
        if not found:
            raise connection.wrong("host", connection.host and shown_word(connection.host), _SERVER)
        connection = with_known_extras(connection, _EXTRAS)
        token = connection.password
        if token is not None and not _TOKEN.fullmatch(token.get_secret_value()):
            raise connection.wrong("password", HIDDEN, "a token of ASCII, without blanks")
        return cls(
            host=found["host"],
            port=int(found["port"] or connection.port or _DEFAULT_PORT),
            user=connection.login,
            token=token,
            use_ssl=flag(connection, "use_ssl"),
            kafka_secrets=node_file(connection, "kafka-secrets"),
        )
