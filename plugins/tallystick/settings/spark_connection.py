"""Connections to Spark are checked and typed here. Opens nothing.

The fields are those of Airflow's Spark provider, and ours: a connection for its SparkSubmitHook or
SparkConnectHook names the same place. An extra that nobody knows, or that would have no effect
with this master, is refused: who has written it believes that it has one.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import quote

from pydantic import SecretBytes, SecretStr

from tallystick.settings.connections import HIDDEN, Connection
from tallystick.settings.extras import (
    absolute_path,
    flag,
    kerberos_login,
    list_of,
    node_file,
    optional_text,
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


_MASTER: Final = re.compile(r"local(\[[^\]\s]+\])?|yarn|(spark|k8s|mesos)://[^\s@]+")
_MASTERS: Final = "a Spark master: local[2,4], yarn, spark://host:7077 or k8s://https://host:443"
_DEPLOY_MODES: Final = ("client", "cluster")
_BINARIES: Final = ("spark-submit", "spark2-submit", "spark3-submit")
"""Programs that the provider accepts. No path: who may write connections could run anything."""
_ANY: Final = ("",)
# Where Spark logs in to Kerberos itself, and hands executors what they need.
_LOG_IN: Final = ("yarn", "k8s", "local")
# Extra -> the beginning of the masters that it is for.
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "deploy-mode": _ANY,
    "hadoop-conf-dir": _ANY,
    "jars": _ANY,
    "kafka-secrets": _ANY,
    "keytab": _LOG_IN,
    "namespace": ("k8s",),
    "principal": _LOG_IN,
    "queue": ("yarn",),
    "spark-binary": _ANY,
    # By these the provider polls a driver whose spark-submit has left it. Ours stays, so that a
    # connection that other DAGs share may have them, and none is asked for.
    "rest-port": _ANY,
    "rest-scheme": _ANY,
    "yarn_resourcemanager_webapp_address": _ANY,
}
_CONF: Final = {"queue": "spark.yarn.queue", "namespace": "spark.kubernetes.namespace"}
_KEYS: Final = "an absolute path where spark-submit runs, or the keys themselves in base64"


@dataclass(frozen=True, slots=True)
class SparkConnection:
    """Spark applications run here."""

    master: str
    deploy_mode: str = _DEPLOY_MODES[0]
    jars: tuple[str, ...] = ()
    """Kafka's connector and what it needs, unless the cluster has it."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """The queue or the namespace of driver and executors; else Spark's own settings have them."""
    kafka_secrets: str | None = None
    """Absolute path, on every node, of the file with what Kafka's client must not show; None: there
    is none, so it is shipped with each application."""
    spark_submit: str = _BINARIES[0]
    """The program's name, looked for on PATH."""
    hadoop_conf: str | None = None
    """Absolute path, on this machine, of the directory with the cluster's core-site.xml and
    yarn-site.xml; None: the environment's HADOOP_CONF_DIR and YARN_CONF_DIR."""
    principal: str | None = None
    """As whom Spark logs in to Kerberos; None: by the ticket cache, if the cluster wants one."""
    keytab: str | None = None
    """Absolute path, on this machine, of the principal's keys."""
    keys: SecretBytes | None = None
    """The principal's keys themselves, in place of a path: what the provider's form asks for."""

    @classmethod
    def of(cls, connection: Connection) -> Self:
        """Follows Airflow's Spark provider: a connection made for it names the same master.

        A host with a scheme, or without a port, is the master as it is; host and port are a
        standalone master. Nothing ever becomes `yarn` by default.
        """
        require_type(connection, "spark", "spark_connect")
        host = connection.host
        if not host:
            raise connection.wrong("host", None, _MASTERS)
        is_whole = "://" in host or not connection.port
        master = host if is_whole else f"spark://{host}"
        master += f":{connection.port}" if connection.port else ""
        if not _MASTER.fullmatch(master):
            raise connection.wrong("host", shown_word(host), _MASTERS)
        connection = _with_extras_for(connection, master)
        mode = optional_text(connection, "deploy-mode") or _DEPLOY_MODES[0]
        possible = _deploy_modes_of(master)
        if mode not in possible:
            accepted = f"{', '.join(possible)} (with master {master})"
            raise connection.wrong("extra deploy-mode", shown_word(mode), accepted)
        binary = optional_text(connection, "spark-binary") or _BINARIES[0]
        if binary not in _BINARIES:
            accepted = f"on PATH: {', '.join(_BINARIES)}"
            raise connection.wrong("extra spark-binary", shown_word(binary), accepted)
        principal, keytab, keys = _kerberos_login(connection)
        return cls(
            master=master,
            deploy_mode=mode,
            jars=list_of(connection, "jars"),
            conf={
                key: value
                for extra, key in _CONF.items()
                if (value := optional_text(connection, extra))
            },
            kafka_secrets=node_file(connection, "kafka-secrets"),
            spark_submit=binary,
            hadoop_conf=absolute_path(connection, "hadoop-conf-dir"),
            principal=principal,
            keytab=keytab,
            keys=keys,
        )


def _kerberos_login(
    connection: Connection,
) -> tuple[str | None, str | None, SecretBytes | None]:
    """Principal, path of the keytab, its content: the first and one of the others, or none."""
    principal, given = kerberos_login(connection)
    if given is None or given.startswith("/"):
        return principal, given, None
    try:
        keys = base64.b64decode(given, validate=True)
    except binascii.Error:
        raise connection.wrong("extra keytab", HIDDEN, _KEYS) from None
    return principal, None, SecretBytes(keys)


def _with_extras_for(connection: Connection, master: str) -> Connection:
    """The connection with what its extra says; raises for what this master knows nothing of."""
    found = with_known_extras(connection, _KNOWN)
    for key in found.extra:
        if not master.startswith(_KNOWN[key]):
            masters = ", ".join(_KNOWN[key])
            accepted = f"nothing with master {master}: it is for {masters} alone"
            raise connection.wrong(f"extra {key}", HIDDEN, accepted)
    return found


def _deploy_modes_of(master: str) -> Sequence[str]:
    """Python applications have no cluster mode on a standalone master, nor on this machine."""
    return _DEPLOY_MODES if master == "yarn" or master.startswith("k8s") else ("client",)
