"""What each kind of connection means: Kafka, WebHDFS, Spark and the ledger, each checked and typed.

Reads a `Connection` and nothing else; opens nothing. A part that is missing or wrong is a
ConfigurationError that names the connection and the part, never a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, urlencode

from pydantic import SecretStr

from tallystick.settings.connections import DSN_KEY, HIDDEN, Connection

_HOST_PORT: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(:(?P<port>\d{1,5}))?")
_FILE_SYSTEM: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@]+")
_WEBHDFS_PORTS: Final = {"http": 9870, "https": 9871}
_MASTER: Final = re.compile(r"local(\[[^\]\s]+\])?|yarn|(spark|k8s|mesos)://\S+")
_DSN_URL: Final = re.compile(
    r"postgres(ql)?://((?P<login>[^:@/?]*)(:[^@/?]*)?(?P<at>@))?(?P<place>[^?@]*)(\?.*)?"
)
_NODE_FILE: Final = re.compile(r"/[^\s:{}$]+")
_DEPLOY_MODES: Final = ("client", "cluster")
# Connection parameters of libpq that an extra may carry. Others are refused: a mistyped sslmode
# would switch encryption off without a word.
_LIBPQ: Final = (
    "application_name", "channel_binding", "connect_timeout", "gssencmode", "keepalives",
    "keepalives_count", "keepalives_idle", "keepalives_interval", "options", "sslcert", "sslkey",
    "sslmode", "sslrootcert", "target_session_attrs", "tcp_user_timeout",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A cluster, under librdkafka's property names."""

    servers: str
    properties: Mapping[str, str] = field(repr=False)
    """All properties, `bootstrap.servers` and secrets among them."""

    @classmethod
    def of(cls, connection: Connection) -> KafkaConnection:
        """From the extra's properties; host, port, login and password fill what they leave open."""
        _require_type(connection, "kafka")
        properties = {key: _text(connection, key) for key in connection.extra}
        if connection.host and "bootstrap.servers" not in properties:
            properties["bootstrap.servers"] = ",".join(
                f"{host}:{port}" for host, port in _hosts(connection, connection.host, 9092)
            )
        if connection.login:
            properties.setdefault("sasl.username", connection.login)
        if connection.password is not None:
            properties.setdefault("sasl.password", connection.password.get_secret_value())
        servers = properties.get("bootstrap.servers", "")
        if not servers.strip():
            raise connection.wrong(
                "extra bootstrap.servers", servers or None, "host:port, more after commas"
            )
        return cls(servers, properties)


@dataclass(frozen=True, slots=True)
class WebHdfsConnection:
    """A file system: its NameNodes' web addresses, and its own name."""

    urls: tuple[str, ...]
    """One for each NameNode, tried in this order; no slash at the end."""
    user: str | None
    """None: the user that this process runs as."""
    fs: str
    """The file system as Spark must be given it, such as hdfs://host:8020; no slash at the end."""
    password: SecretStr | None = None

    @classmethod
    def of(cls, connection: Connection) -> WebHdfsConnection:
        """From host (more after commas or semicolons), port, login, the extra's `fs`, `use_ssl`."""
        _require_type(connection, "webhdfs")
        if not connection.host:
            raise connection.wrong("host", None, "the NameNode's host, more after commas")
        use_ssl = connection.extra.get("use_ssl", False)
        is_https = connection.host.startswith("https://") or str(use_ssl).lower() == "true"
        scheme = "https" if is_https else "http"
        bare = re.sub(r"https?://", "", connection.host)
        hosts = _hosts(connection, bare, _WEBHDFS_PORTS[scheme])
        prefix = f"/{connection.schema.strip('/')}" if connection.schema else ""
        fs = _text(connection, "fs").rstrip("/") if "fs" in connection.extra else ""
        if not _FILE_SYSTEM.fullmatch(fs):
            raise connection.wrong("extra fs", fs or None, "a file system such as hdfs://host:8020")
        return cls(
            urls=tuple(f"{scheme}://{host}:{port}{prefix}" for host, port in hosts),
            user=connection.login,
            fs=fs,
            password=connection.password,
        )


@dataclass(frozen=True, slots=True)
class SparkConnection:
    """Where Spark applications run."""

    master: str
    deploy_mode: str
    jars: tuple[str, ...]
    queue: str | None
    kafka_secrets: str | None = None
    """Absolute path, on every node, of the file with what Kafka's client must not show."""

    @classmethod
    def of(cls, connection: Connection) -> SparkConnection:
        """By the rules of Airflow's Spark provider: a connection made for it names the same master.

        A host with a scheme, or without a port, is the master as it is; host and port are a
        standalone master. Nothing ever becomes `yarn` by default.
        """
        if connection.conn_type != "spark":
            raise connection.wrong("conn_type", connection.conn_type, "spark, or spark_connect")
        host = connection.host
        if not host:
            raise connection.wrong("host", None, _MASTERS)
        is_whole = "://" in host or not connection.port
        master = host if is_whole else f"spark://{host}"
        master += f":{connection.port}" if connection.port else ""
        if not _MASTER.fullmatch(master):
            raise connection.wrong("host", host, _MASTERS)
        mode = _optional_text(connection, "deploy-mode") or "client"
        possible = _deploy_modes_of(master)
        if mode not in possible:
            accepted = f"{', '.join(possible)} (with master {master})"
            raise connection.wrong("extra deploy-mode", mode, accepted)
        return cls(
            master=master,
            deploy_mode=mode,
            jars=_list(connection, "jars"),
            queue=_optional_text(connection, "queue"),
            kafka_secrets=node_file(connection, "kafka-secrets"),
        )


_MASTERS: Final = "a Spark master: local[2,4], yarn, spark://host:7077 or k8s://https://host:443"


@dataclass(frozen=True, slots=True)
class LedgerConnection:
    """The ledger's database."""

    dsn: str = field(repr=False)
    """A libpq URL; holds the password."""
    shown: str
    """The same without password and parameters."""

    @classmethod
    def of(cls, connection: Connection) -> LedgerConnection:
        """From host, port, login, password, schema (the database), libpq parameters as extra.

        Or from a `dsn` in the extra: any text that libpq takes, used as it is.
        """
        _require_type(connection, "postgres")
        if DSN_KEY in connection.extra:
            return cls._of_dsn(connection, _text(connection, DSN_KEY))
        if not connection.schema:
            raise connection.wrong("schema", None, "the database's name")
        unknown = next((key for key in connection.extra if key not in _LIBPQ), None)
        if unknown is not None:
            raise connection.wrong(f"extra {unknown}", HIDDEN, f"only these: {', '.join(_LIBPQ)}")
        port = connection.port or 5432
        hosts = ",".join(
            f"{quote(each.strip(), safe='[]:')}:{port}"
            for each in (connection.host or "").split(",")
        )
        login = quote(connection.login or "", safe="")
        password = connection.password.get_secret_value() if connection.password else ""
        secret = f":{quote(password, safe='')}" if password else ""
        place = f"{hosts}/{quote(connection.schema, safe='')}"
        query = urlencode(
            {key: _text(connection, key) for key in connection.extra}, quote_via=quote
        )
        return cls(
            dsn=f"postgresql://{login}{secret}{'@' if login else ''}{place}"
            + (f"?{query}" if query else ""),
            shown=f"postgresql://{login}{'@' if login else ''}{place}",
        )

    @classmethod
    def _of_dsn(cls, connection: Connection, dsn: str) -> LedgerConnection:
        match = _DSN_URL.fullmatch(dsn)
        if match:
            return cls(
                dsn, f"postgresql://{match['login'] or ''}{match['at'] or ''}{match['place']}"
            )
        if "=" not in dsn or "://" in dsn:
            raise connection.wrong(
                "extra dsn", HIDDEN, "postgresql://login:password@host:port/name"
            )
        return cls(dsn, "the database that the dsn names")


def _require_type(connection: Connection, conn_type: str) -> None:
    if connection.conn_type != conn_type:
        raise connection.wrong("conn_type", connection.conn_type, conn_type)


def _deploy_modes_of(master: str) -> Sequence[str]:
    """Python applications have no cluster mode on a standalone master, nor on this machine."""
    return _DEPLOY_MODES if master == "yarn" or master.startswith("k8s") else ("client",)


def _hosts(connection: Connection, text: str, default_port: int) -> list[tuple[str, int]]:
    """Hosts with their ports: their own, else the connection's, else the usual one."""
    found: list[tuple[str, int]] = []
    for each in re.split(r"[,;]", text):
        match = _HOST_PORT.fullmatch(each.strip().rstrip("/"))
        if not match:
            raise connection.wrong("host", text, "host or host:port, more after commas")
        found.append((match["host"], int(match["port"] or connection.port or default_port)))
    return found


def _text(connection: Connection, key: str) -> str:
    """A value of the extra as text; numbers and truth values in the way of properties files."""
    value = connection.extra[key]
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise connection.wrong(f"extra {key}", HIDDEN, "a text or a number")
    return str(value)


def _optional_text(connection: Connection, key: str) -> str | None:
    return _text(connection, key) or None if key in connection.extra else None


def node_file(connection: Connection, key: str) -> str | None:
    """A path that Kafka's client can read from `${file:PATH:key}`."""
    path = _optional_text(connection, key)
    if path is not None and not _NODE_FILE.fullmatch(path):
        raise connection.wrong(f"extra {key}", path, "an absolute path without colon, brace, space")
    return path


def _list(connection: Connection, key: str) -> tuple[str, ...]:
    """A value of the extra that names several things, after commas or as a list."""
    value = connection.extra.get(key) or ""
    parts = value if isinstance(value, list) else str(value).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())
