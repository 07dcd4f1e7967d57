"""Connections of all kinds have their parts read here.

A part that is wrong is a ConfigurationError that names the connection and the part, never a secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from tallystick.settings.connections import HIDDEN, Connection

_HOST_PORT: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(:(?P<port>\d{1,5}))?")
_NODE_FILE: Final = re.compile(r"/[^\s:{}$]+")
# One short line each. A key or a store in the wrong field is longer, or begins in another way.
_PATH: Final = re.compile(r"(?!.*-----)/[^\x00-\x1f\x7f=]{0,254}")
_WORD: Final = re.compile(r"[^\x00-\x1f\x7f@;=]{1,255}")


def shown_path(value: str) -> str:
    """The value where it can only be a path; else HIDDEN, as people put secrets into such fields.

    >>> shown_path("/etc/ca.pem"), shown_path("MIIJqQIBAz")
    ('/etc/ca.pem', '(not shown)')
    """
    return value if _PATH.fullmatch(value) else HIDDEN


def shown_word(value: str) -> str:
    """The same for a host, a mode, a name: nothing with a login, a parameter or a second line.

    >>> shown_word("kafka:9092"), shown_word("vera:pa55-word@kafka:9092")
    ('kafka:9092', '(not shown)')
    """
    return value if _WORD.fullmatch(value) else HIDDEN


def only_these(name: str, known: Collection[str]) -> str:
    """Says what is accepted in place of a name that is not known.

    >>> only_these("ssl_mode", ["host", "sslmode"])
    'nearest known: sslmode; only these: host, sslmode'
    """
    near = [f"nearest known: {each}" for each in get_close_matches(name, known, n=1)]
    return "; ".join([*near, f"only these: {', '.join(known)}"])


def require_type(connection: Connection, *accepted: str) -> None:
    """Return when the connection is of the first of these types."""
    if connection.conn_type != accepted[0]:
        raise connection.wrong("conn_type", connection.conn_type, ", or ".join(accepted))


def with_known_extras(connection: Connection, known: Collection[str]) -> Connection:
    """The connection without the extras that its form has left empty.

    Raises ConfigurationError for one that is unknown: it could be the secure one.
    """
    filled = {key: value for key, value in connection.extra.items() if value not in (None, "")}
    for key in filled:
        if key not in known:
            raise connection.wrong(f"extra {key}", HIDDEN, only_these(key, known))
    return replace(connection, extra=filled)


def hosts_of(connection: Connection, text: str, default_port: int) -> list[tuple[str, int]]:
    """Hosts with their ports: their own, else the connection's, else the usual one."""
    found: list[tuple[str, int]] = []
    for each in re.split(r"[,;]", text):
        address = host_port(each.strip().rstrip("/"))
        if address is None:
            raise connection.wrong("host", shown_word(text), "host or host:port, more after commas")
        host, port = address
        found.append((host, port or connection.port or default_port))
    return found


def host_port(text: str) -> tuple[str, int | None] | None:
    """One host, and its port if there is one; None for anything else.

    >>> host_port("kafka:9092"), host_port("[::1]"), host_port("kafka:99999")
    (('kafka', 9092), ('[::1]', None), None)
    """
    match = _HOST_PORT.fullmatch(text)
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else None
    return (match["host"], port) if port is None or 0 < port < 65536 else None


def text_of(connection: Connection, key: str) -> str:
    """A value of the extra as text; numbers and truth values in the way of properties files."""
    value = connection.extra[key]
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise connection.wrong(f"extra {key}", HIDDEN, "a text or a number")
    return str(value)


def optional_text(connection: Connection, key: str) -> str | None:
    """The same; None where the extra has no such value, or an empty one."""
    return text_of(connection, key) or None if key in connection.extra else None


def flag(connection: Connection, key: str) -> bool:
    """A truth value of the extra, false where it has none."""
    value = str(connection.extra.get(key, False)).lower()
    if value not in ("true", "false"):
        raise connection.wrong(f"extra {key}", shown_word(value), "true or false")
    return value == "true"


def list_of(connection: Connection, key: str) -> tuple[str, ...]:
    """A value of the extra that names several things, after commas or as a list."""
    value = connection.extra.get(key) or ""
    parts = value if isinstance(value, list) else str(value).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def absolute_path(connection: Connection, key: str) -> str | None:
    """A path on this machine; None where the extra has none."""
    path = optional_text(connection, key)
    if path is not None and not path.startswith("/"):
        raise connection.wrong(f"extra {key}", shown_path(path), "an absolute path")
    return path


def node_file(connection: Connection, key: str) -> str | None:
    """A path that Kafka's client can read from `${file:PATH:key}`."""
    path = optional_text(connection, key)
    if path is not None and not _NODE_FILE.fullmatch(path):
        accepted = "an absolute path without colon, brace, space"
        raise connection.wrong(f"extra {key}", shown_path(path), accepted)
    return path


def kerberos_login(connection: Connection) -> tuple[str | None, str | None]:
    """The extras `principal` and `keytab`, as they are: both, or none."""
    principal, keytab = optional_text(connection, "principal"), optional_text(connection, "keytab")
    for key, value, other in (("principal", principal, keytab), ("keytab", keytab, principal)):
        if other and not value:
            raise connection.wrong(f"extra {key}", None, "principal and keytab, or neither")
    return principal, keytab
