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

    def session_url(self, session_id: str) -> str:
        """Returns PySpark's address of this session; the user is `tallystick` if it has none.

        It is what the provider's hook makes of the connection, which takes seconds to import; but
        PySpark takes a slash in a token for a path, and the hook leaves it as it is.
        """
        token = self.token.get_secret_value() if self.token else ""
        told = {
            "user_id": self.user or "tallystick",
            "token": token,
            "use_ssl": "true" if self.use_ssl else "",
            "session_id": session_id,
        }
        parameters = [f"{key}={quote(value, safe='')}" for key, value in told.items() if value]
        return f"{self.address}/;{';'.join(parameters)}"

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
