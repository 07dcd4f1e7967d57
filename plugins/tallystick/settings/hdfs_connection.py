"""A connection to HDFS is checked and typed here. Opens nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from tallystick.settings.connections import HIDDEN, Connection
from tallystick.settings.extras import (
    absolute_path,
    flag,
    hosts_of,
    kerberos_login,
    optional_text,
    require_type,
    shown_word,
    text_of,
    with_known_extras,
)

_FILE_SYSTEM: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@]+")
_PORTS: Final = {"http": 9870, "https": 9871}
_WITH_SCHEME: Final = re.compile(r"((?P<scheme>https?)://)?(?P<host>.*)", re.IGNORECASE | re.DOTALL)
_FOR_TLS: Final = ("verify", "cert", "key")
_FOR_KERBEROS: Final = ("principal", "keytab")
# Of Airflow's own WebHDFS connection: use_ssl, verify, cert, key. Ours are the others.
_EXTRAS: Final = ("fs", "use_ssl", *_FOR_TLS, "kerberos", *_FOR_KERBEROS, "token")


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
    verify: bool | str = True
    """Who may sign the servers' certificates: a PEM file here, or True for the usual ones."""
    cert: tuple[str, str] | None = None
    """Our own certificate and its key, PEM files here."""
    kerberos: bool = False
    principal: str | None = None
    """As whom Python logs in, by its keytab; None: by the process's ticket cache."""
    keytab: str | None = None
    token: SecretStr | None = None
    """A delegation token of HDFS, in the URL-safe form that WebHDFS gives."""

    @classmethod
    def of(cls, connection: Connection) -> WebHdfsConnection:
        """Reads host (more after commas or semicolons), port, login, password, the extra.

        One way to log in at most: an unused one would look as if it counted. The names that
        Airflow's WebHDFS connection knows mean here what they mean there, but `verify` can't be
        switched off.
        """
        require_type(connection, "webhdfs")
        connection = with_known_extras(connection, _EXTRAS)
        if not connection.host:
            raise connection.wrong("host", None, "the NameNode's host, more after commas")
        scheme, bare = _scheme_of(connection, connection.host)
        hosts = hosts_of(connection, bare, _PORTS[scheme])
        prefix = f"/{connection.schema.strip('/')}" if connection.schema else ""
        fs = text_of(connection, "fs").rstrip("/") if "fs" in connection.extra else ""
        if not _FILE_SYSTEM.fullmatch(fs):
            accepted = "a file system such as hdfs://host:8020"
            raise connection.wrong("extra fs", shown_word(fs) if fs else None, accepted)
        _require(connection, _FOR_TLS, scheme == "https", "extra use_ssl")
        kerberos = flag(connection, "kerberos")
        _require(connection, _FOR_KERBEROS, kerberos, "extra kerberos")
        principal, _ = kerberos_login(connection)
        token = optional_text(connection, "token")
        _require_one_login(connection, kerberos=kerberos, has_token=token is not None)
        return cls(
            urls=tuple(f"{scheme}://{host}:{port}{prefix}" for host, port in hosts),
            user=connection.login,
            fs=fs,
            password=connection.password,
            verify=_verify(connection),
            cert=_certificate(connection),
            kerberos=kerberos,
            principal=principal,
            keytab=absolute_path(connection, "keytab"),
            token=SecretStr(token) if token else None,
        )


def _scheme_of(connection: Connection, text: str) -> tuple[str, str]:
    """The one scheme of all hosts, and the hosts without it.

    Each host is looked at: where one says https and the others were taken for http, all secrets
    would go in clear.
    """
    if "@" in text:
        raise connection.wrong("host", HIDDEN, "hosts alone: login and password have their places")
    parts = [_WITH_SCHEME.fullmatch(each.strip()) for each in re.split(r"[,;]", text)]
    found = [((match["scheme"] or "").lower(), match["host"]) for match in parts if match]
    said = {scheme for scheme, _ in found if scheme}
    if "use_ssl" in connection.extra:
        said.add("https" if flag(connection, "use_ssl") else "http")
    elif not all(scheme for scheme, _ in found):
        said.add("" if said else "http")
    if len(said) > 1:
        accepted = "https:// or http:// before every host, or before none, as extra use_ssl has it"
        # A semicolon stands between hosts here, not before a parameter.
        shown = text if shown_word(text.replace(";", ",")) != HIDDEN else HIDDEN
        raise connection.wrong("host", shown, accepted)
    return said.pop(), ",".join(host for _, host in found)


def _require(connection: Connection, keys: Sequence[str], there: bool, what: str) -> None:
    """Raises ConfigurationError for an extra that has no effect without another one."""
    found = next((key for key in keys if key in connection.extra), None)
    if found is not None and not there:
        raise connection.wrong(f"extra {found}", HIDDEN, f"nothing without {what}: true")


def _require_one_login(connection: Connection, *, kerberos: bool, has_token: bool) -> None:
    said = {"extra kerberos": kerberos, "extra token": has_token, "login": connection.login}
    ways = [way for way, is_there in said.items() if is_there]
    if len(ways) > 1:
        raise connection.wrong(ways[-1], HIDDEN, f"nothing beside {ways[0]}, which says who we are")
    password = connection.password.get_secret_value() if connection.password else ""
    if password and not connection.login:
        beside = f"beside {ways[0]}, which says who we are" if ways else "without a login"
        raise connection.wrong("password", HIDDEN, f"nothing {beside}")


def _verify(connection: Connection) -> bool | str:
    value = optional_text(connection, "verify") or "true"
    if value.lower() == "true":
        return True
    if not value.startswith("/"):
        accepted = "the absolute path of a PEM file with the authority's certificate, or true"
        raise connection.wrong("extra verify", shown_word(value), accepted)
    return value


def _certificate(connection: Connection) -> tuple[str, str] | None:
    """A file may hold both certificate and key."""
    cert, key = absolute_path(connection, "cert"), absolute_path(connection, "key")
    if key and not cert:
        raise connection.wrong("extra cert", None, "the certificate of extra key")
    return (cert, key or cert) if cert else None
