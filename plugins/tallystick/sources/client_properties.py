"""One connection's properties: librdkafka's names, which connections bear, and kafka-python's.

What can't be translated is refused: a property that is silently left out could be the secure one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tallystick.errors import ConfigurationError

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
HOSTNAME_CHECKS: Final = ("https", "none")

# librdkafka's name -> kafka-python's name.
TRANSLATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bootstrap.servers": "bootstrap_servers",
        "client.id": "client_id",
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
        "ssl.ca.location": "ssl_cafile",
        "ssl.certificate.location": "ssl_certfile",
        "ssl.key.location": "ssl_keyfile",
        "ssl.key.password": "ssl_password",
        "ssl.crl.location": "ssl_crlfile",
        "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
    }
)
_ALIASES: Final = {"sasl.mechanisms": "sasl.mechanism"}
_CHOICES: Final = {
    "security.protocol": PROTOCOLS,
    "sasl.mechanism": MECHANISMS,
    "ssl.endpoint.identification.algorithm": HOSTNAME_CHECKS,
}
_SECRETS: Final = frozenset({"sasl.password", "ssl.key.password"})
_NEEDED_FOR_SASL: Final = ("sasl.mechanism", "sasl.username", "sasl.password")
_FILES: Final = frozenset(key for key in TRANSLATED if key.endswith(".location"))
_DEFAULTS: Final = {
    "client.id": "tallystick",
    "security.protocol": "PLAINTEXT",
    "ssl.endpoint.identification.algorithm": "https",
}


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """What each client library is told. The repr shows the servers and nothing else."""

    servers: str
    kafka_python: Mapping[str, object] = field(repr=False)
    librdkafka: Mapping[str, str] = field(repr=False)


def client_properties(properties: Mapping[str, str]) -> ClientProperties:
    """The properties under both libraries' names.

    Raises ConfigurationError for an unknown property, a value outside the accepted ones, a file
    that isn't there, or a missing property; the error never holds a secret.
    """
    known = _DEFAULTS | {_known_name(key): value for key, value in properties.items()}
    known = {key: _checked(key, value) for key, value in known.items()}
    servers = [each.strip() for each in known.get("bootstrap.servers", "").split(",")]
    if not all(servers):
        raise ConfigurationError(
            "bootstrap.servers", known.get("bootstrap.servers"), "host:port, more after commas"
        )
    if known["security.protocol"].startswith("SASL"):
        for key in _NEEDED_FOR_SASL:
            if not known.get(key):
                raise ConfigurationError(key, None, f"a value, for {known['security.protocol']}")
    translated: dict[str, object] = {TRANSLATED[key]: value for key, value in known.items()}
    translated["bootstrap_servers"] = servers
    translated["ssl_check_hostname"] = known["ssl.endpoint.identification.algorithm"] == "https"
    return ClientProperties(
        ",".join(servers), MappingProxyType(translated), MappingProxyType(known)
    )


def _known_name(key: str) -> str:
    name = _ALIASES.get(key, key)
    if name not in TRANSLATED:
        raise ConfigurationError(key, "(not shown)", f"only these: {', '.join(sorted(TRANSLATED))}")
    return name


def _checked(key: str, value: object) -> str:
    """The value as kafka-python spells it."""
    if not isinstance(value, str):
        shown = "(not shown)" if key in _SECRETS else value
        raise ConfigurationError(key, shown, "a text")
    if key in _FILES and not Path(value).is_file():
        raise ConfigurationError(key, value, "the path of a PEM file that exists")
    choices = _CHOICES.get(key)
    if choices is None:
        return value
    for choice in choices:
        if value.upper() == choice.upper():
            return choice
    raise ConfigurationError(key, value, ", ".join(choices))
