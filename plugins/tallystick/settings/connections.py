"""Connections as Airflow writes them into the environment: one value, from JSON or a URI.

Pure parsing, the same with Airflow and without. What a connection holds beyond its address may be a
secret, so no error and no repr shows any of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import SecretStr

from tallystick.errors import ConfigurationError, ConnectionMissing

VARIABLE_PREFIX: Final = "AIRFLOW_CONN_"
HIDDEN: Final = "(not shown)"
DSN_KEY: Final = "dsn"
_EXTRA_KEY: Final = "__extra__"
_KEYS: Final = ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")


@dataclass(frozen=True, slots=True)
class Connection:
    """An address and what it takes to be let in, under the names that Airflow uses."""

    conn_id: str
    conn_type: str
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: SecretStr | None = None
    schema: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)

    def wrong(self, part: str, value: object, accepted: str) -> ConfigurationError:
        """The error that names this connection and a part of it; give no secret as the value."""
        return ConfigurationError(part, value, accepted, where=f"connection {self.conn_id}")


def variable_of(conn_id: str) -> str:
    """Name of the environment variable that holds the connection."""
    return VARIABLE_PREFIX + conn_id.upper()


def connection_in(environ: Mapping[str, str], conn_id: str) -> Connection:
    """The connection that the environment holds.

    The usual ids are also read from the variables that `./tallystick sandbox env` prints, where no
    AIRFLOW_CONN_ variable speaks. Raises ConnectionMissing, or ConfigurationError for a broken one.
    """
    variable = variable_of(conn_id)
    text = environ.get(variable, "").strip()
    if text:
        return parse_connection(conn_id, text)
    fallback = _FALLBACKS.get(conn_id)
    if fallback is None:
        raise ConnectionMissing(conn_id, None, variable)
    names, build = fallback
    values = [environ.get(name, "").strip() for name in names]
    if not all(values):
        raise ConnectionMissing(conn_id, None, f"{variable}, or {' and '.join(names)}")
    return build(conn_id, *values)


def parse_connection(conn_id: str, text: str) -> Connection:
    """The connection that the text describes, by the rules of Airflow's own variables."""
    text = text.strip()
    return _from_json(conn_id, text) if text.startswith("{") else _from_uri(conn_id, text)


def connection_of(
    conn_id: str,
    *,
    conn_type: str | None,
    host: str | None = None,
    port: object = None,
    login: str | None = None,
    password: str | None = None,
    schema: str | None = None,
    extra: object = None,
) -> Connection:
    """The connection made of Airflow's parts; an empty part counts as none.

    Raises ConfigurationError for a port that is no number, or an extra that is no JSON object.
    """
    blank = Connection(conn_id, "")
    if not conn_type:
        raise blank.wrong("conn_type", conn_type, "a connection type such as kafka")
    return Connection(
        conn_id=conn_id,
        conn_type=_normal_type(conn_type),
        host=host or None,
        port=_port(blank, port),
        login=login or None,
        password=SecretStr(password) if password else None,
        schema=schema or None,
        extra=_extra(blank, extra),
    )


def connection_like(conn_id: str, found: Any) -> Connection:
    """The connection that one of Airflow's stands for, whichever of its classes it is."""
    return connection_of(
        conn_id,
        conn_type=found.conn_type,
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        schema=found.schema,
        extra=found.extra,
    )


def _from_json(conn_id: str, text: str) -> Connection:
    blank = Connection(conn_id, "")
    try:
        found = json.loads(text)
    except ValueError:
        raise blank.wrong(variable_of(conn_id), HIDDEN, "a JSON object, or a URI") from None
    unknown = [key for key in found if key not in _KEYS]
    if unknown:
        raise blank.wrong(unknown[0], HIDDEN, f"these keys only: {', '.join(_KEYS)}")
    found.pop("description", None)
    for key in ("conn_type", "host", "login", "password", "schema"):
        if not isinstance(found.get(key), str | None):
            raise blank.wrong(key, HIDDEN, "a text")
    return connection_of(conn_id, **{"conn_type": None, **found})


def _from_uri(conn_id: str, text: str) -> Connection:
    """Reads a URI by Airflow's rules: parts are percent-encoded, a second scheme is the host's."""
    wrong = Connection(conn_id, "").wrong(variable_of(conn_id), HIDDEN, _URI_FORM)
    conn_type, *schemes, rest = ("", text) if "://" not in text else text.split("://")
    protocol = f"{schemes[0]}://" if schemes else ""
    if not conn_type or len(schemes) > 1 or set(protocol[:-3]) & set("@:/?"):
        raise wrong
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port
    except ValueError:
        raise wrong from None
    host = unquote(parts.netloc.rpartition("@")[2].removesuffix(f":{port}"))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return connection_of(
        conn_id,
        conn_type=conn_type,
        host=protocol + host if host else None,
        port=port,
        login=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        schema=unquote(parts.path[1:]),
        extra=query.get(_EXTRA_KEY, query),
    )


_URI_FORM: Final = "type://login:password@host:port/schema?key=value, every part percent-encoded"


def _normal_type(conn_type: str) -> str:
    return "postgres" if conn_type == "postgresql" else conn_type.replace("-", "_")


def _port(blank: Connection, port: object) -> int | None:
    if port in (None, "", 0):
        return None
    if isinstance(port, str | int) and str(port).isdecimal() and 0 < int(port) < 65536:
        return int(port)
    raise blank.wrong("port", port, "a whole number from 1 to 65535")


def _extra(blank: Connection, extra: object) -> Mapping[str, object]:
    if isinstance(extra, str) and extra:
        try:
            extra = json.loads(extra)
        except ValueError:
            extra = HIDDEN
    if not extra:
        return {}
    if not isinstance(extra, Mapping):
        raise blank.wrong("extra", HIDDEN, "a JSON object")
    return MappingProxyType({str(key): value for key, value in extra.items()})


def _kafka(conn_id: str, servers: str) -> Connection:
    return connection_of(conn_id, conn_type="kafka", extra={"bootstrap.servers": servers})


def _webhdfs(conn_id: str, web_url: str, fs: str) -> Connection:
    return connection_of(conn_id, conn_type="webhdfs", host=web_url, extra={"fs": fs})


def _spark(conn_id: str, master: str) -> Connection:
    return connection_of(conn_id, conn_type="spark", host=master)


def _ledger(conn_id: str, dsn: str) -> Connection:
    return connection_of(conn_id, conn_type="postgres", extra={DSN_KEY: dsn})


# Default id -> the variables that stand for it, and the connection they make.
_FALLBACKS: Final[Mapping[str, tuple[tuple[str, ...], Callable[..., Connection]]]] = {
    "kafka_default": (("KAFKA_BOOTSTRAP_SERVERS",), _kafka),
    "webhdfs_default": (("WEBHDFS_URL", "HDFS_URL"), _webhdfs),
    "spark_default": (("SPARK_MASTER",), _spark),
    "ledger_default": (("LEDGER_DSN",), _ledger),
}
