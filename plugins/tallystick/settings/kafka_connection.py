"""A Kafka connection is checked once for all clients that use it, and put into one form.

The names are librdkafka's, with Java's names of stores beside them. Three clients read the answer:
kafka-python, librdkafka, and Java's in Spark. So what one of them cannot do is refused here, before
anything is asked. In the answer certificates and keys are PEM text under librdkafka's `ssl.*.pem`,
so a check of the answer gives the answer again. No error holds a secret. Opens nothing but
certificates and keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import HIDDEN, Connection
from tallystick.settings.extras import (
    host_port,
    hosts_of,
    only_these,
    require_type,
    shown_word,
    text_of,
)
from tallystick.settings.kafka_tls import (
    CA,
    CERTIFICATE,
    KEY,
    SOURCES,
    Wrong,
    authorities_in,
    tls_texts,
)

DEFAULT_CLIENT: Final = "tallystick"
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER: Final = "OAUTHBEARER"
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)
HOSTNAME_CHECKS: Final = ("https", "none")
USER, PASSWORD = "sasl.username", "sasl.password"
CLIENT_ID: Final = "sasl.oauthbearer.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.secret"
SCOPE: Final = "sasl.oauthbearer.scope"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
TOKEN_CA: Final = "https.ca.location"
_HOSTNAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_OAUTH: Final = ("sasl.oauthbearer.method", CLIENT_ID, CLIENT_SECRET, SCOPE, TOKEN_URL, TOKEN_CA)
_SASL: Final = ("sasl.mechanism", USER, PASSWORD, *_OAUTH)
_TLS: Final = (*SOURCES, _HOSTNAME_CHECK)
KNOWN: Final = ("bootstrap.servers", "client.id", "security.protocol", *_SASL, *_TLS)
_ALIASES: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.truststore.certificates": CA,
    "ssl.keystore.certificate.chain": CERTIFICATE,
    "ssl.keystore.key": KEY,
}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "security.protocol": PROTOCOLS,
    "sasl.mechanism": MECHANISMS,
    "sasl.oauthbearer.method": ("oidc",),
    _HOSTNAME_CHECK: HOSTNAME_CHECKS,
}
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_REASONS: Final = {
    "GSSAPI": " (librdkafka as PyPI serves it can't do Kerberos)",
    "AWS_MSK_IAM": " (only one of the three clients can do it)",
}


def checked_properties(
    properties: Mapping[str, object], wrong: Wrong = ConfigurationError
) -> dict[str, str]:
    """The same properties in the one form; raises what `wrong` makes of the first bad one."""
    found = {"client.id": DEFAULT_CLIENT, "security.protocol": "PLAINTEXT"}
    found |= _known(properties, wrong)
    found["bootstrap.servers"] = _servers(found.get("bootstrap.servers", ""), wrong)
    protocol = found["security.protocol"]
    _require_use(found, protocol, wrong)
    if protocol.startswith("SASL"):
        _check_login(found, wrong)
    if protocol.endswith("SSL"):
        found.setdefault(_HOSTNAME_CHECK, "https")
        found = {key: each for key, each in found.items() if key not in SOURCES} | tls_texts(
            found, wrong
        )
    return found


def _known(properties: Mapping[str, object], wrong: Wrong) -> dict[str, str]:
    """Each property under its one name; an alias may repeat what its name says, and no more."""
    found: dict[str, str] = {}
    for key, value in properties.items():
        name = _known_name(key, wrong)
        text = _checked(name, value, wrong)
        if text and found.get(name, text) != text:
            other = f"{name}, which {', '.join(_aliases_of(name))} is another name of"
            raise wrong(key, HIDDEN, f"one value for {other}")
        found[name] = text or found.get(name, "")
    return found


def _aliases_of(name: str) -> list[str]:
    return [alias for alias, known in _ALIASES.items() if known == name]


def _servers(given: str, wrong: Wrong) -> str:
    """The brokers without blanks; what Java's client would refuse is refused here."""
    servers = [each.strip() for each in given.split(",")]
    for each in servers:
        address = host_port(each)
        if address is None or address[1] is None:
            shown = shown_word(given) if given else None
            raise wrong("bootstrap.servers", shown, "host:port, more after commas")
    return ",".join(servers)


def _known_name(key: str, wrong: Wrong) -> str:
    name = _ALIASES.get(key, key)
    if name not in KNOWN:
        if name == "ssl.crl.location":
            raise wrong(key, HIDDEN, "nothing: Spark's client has no revocation list")
        raise wrong(key, HIDDEN, only_these(key, sorted(KNOWN)))
    return name


def _checked(key: str, value: object, wrong: Wrong) -> str:
    """The value, or the choice that it means."""
    if not isinstance(value, str):
        raise wrong(key, HIDDEN, "a text")
    if _SURROGATE.search(value):
        raise wrong(key, HIDDEN, "a text of whole characters: half of a surrogate pair is in it")
    choices = _CHOICES.get(key)
    if choices is None:
        return value
    for choice in choices:
        if value.upper() == choice.upper():
            return choice
    reason = _REASONS.get(value.upper(), "") if key == "sasl.mechanism" else ""
    raise wrong(key, shown_word(value), f"{', '.join(choices)}{reason}")


def _require_use(found: Mapping[str, str], protocol: str, wrong: Wrong) -> None:
    """Raise where a login or certificates are given that this protocol never looks at.

    Who gave them believes that the connection is guarded.
    """
    for keys, mark in ((_SASL, "SASL"), (_TLS, "SSL")):
        unused = next((key for key in keys if found.get(key)), None)
        accepted = ", ".join(each for each in PROTOCOLS if mark in each)
        if unused is not None and mark not in protocol:
            raise wrong("security.protocol", protocol, f"{accepted}, because {unused} is given")


def _check_login(found: dict[str, str], wrong: Wrong) -> None:
    """Looks at the mechanism first: what is needed depends on it."""
    protocol = found["security.protocol"]
    mechanism = found.get("sasl.mechanism")
    if not mechanism:
        raise wrong("sasl.mechanism", None, f"{', '.join(MECHANISMS)}, for {protocol}")
    has_token = mechanism == OAUTHBEARER
    user, secret = (CLIENT_ID, CLIENT_SECRET) if has_token else (USER, PASSWORD)
    unused: tuple[str, ...] = (USER, PASSWORD) if has_token else _OAUTH
    for key in unused:
        if found.get(key):
            raise wrong(key, HIDDEN, f"nothing, with {mechanism}")
    for key, part in ((user, "login"), (secret, "password")):
        if not found.get(key):
            raise wrong(key, None, f"a value, or the connection's {part}, for {mechanism}")
    if mechanism.startswith("SCRAM") and set(found[USER]) & {",", "="}:
        reason = f"a name without comma and =, with {mechanism} (kafka-python does not escape them)"
        raise wrong(USER, HIDDEN, reason)
    if has_token:
        _check_token_source(found, wrong)


def _check_token_source(found: dict[str, str], wrong: Wrong) -> None:
    found["sasl.oauthbearer.method"] = "oidc"
    url = found.get(TOKEN_URL, "")
    if not _is_guarded(url):
        accepted = "a URL such as https://login.example.com/token"
        raise wrong(TOKEN_URL, HIDDEN if url else None, accepted)
    if found.get(TOKEN_CA):
        authorities_in(found, TOKEN_CA, wrong)


def _is_guarded(url: str) -> bool:
    """True where nobody between us and the endpoint reads the client's secret."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        is_port = parts.port != 0  # ValueError for one that is none
    except ValueError:
        return False
    if not host or not is_port or "@" in parts.netloc:
        return False
    # Not by http to this machine either: a proxy of the environment would be told the secret.
    return parts.scheme == "https"


UNUSED: Final = (
    "auto.commit.interval.ms", "auto.offset.reset", "enable.auto.commit", "group.id",
    "enable.auto.offset.store", "enable.partition.eof", "fetch.max.bytes", "fetch.min.bytes",
    "group.instance.id", "heartbeat.interval.ms", "isolation.level", "max.partition.fetch.bytes",
    "max.poll.interval.ms", "max.poll.records", "partition.assignment.strategy",
    "session.timeout.ms",
)  # fmt: skip
"""What consumers of a connection that is shared may say, and no client of ours goes by: each range
is read by its offsets, in no group, as the feed's file says.
"""


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A cluster, under librdkafka's property names."""

    servers: str
    properties: Mapping[str, str] = field(repr=False)
    """All properties, checked, secrets among them, in the form of `checked_properties`."""
    unused: tuple[str, ...] = field(default=(), repr=False)
    """Names of the extra's consumer settings, which have no effect here."""

    @classmethod
    def of(cls, connection: Connection) -> KafkaConnection:
        """Reads the extra's properties; host, port, login and password fill what they leave open.

        Certificates and keys are read here. Raises ConfigurationError, with the connection and the
        property that can't be used.
        """
        require_type(connection, "kafka")
        properties = {
            key: text_of(connection, key) for key in connection.extra if key not in UNUSED
        }
        if connection.host and "bootstrap.servers" not in properties:
            properties["bootstrap.servers"] = ",".join(
                f"{host}:{port}" for host, port in hosts_of(connection, connection.host, 9092)
            )
        mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms", "")
        has_token = mechanism.upper() == OAUTHBEARER
        if connection.login:
            properties.setdefault(CLIENT_ID if has_token else USER, connection.login)
        if connection.password is not None:
            secret = connection.password.get_secret_value()
            properties.setdefault(CLIENT_SECRET if has_token else PASSWORD, secret)
        checked = checked_properties(
            properties,
            lambda key, value, accepted: connection.wrong(f"extra {key}", value, accepted),
        )
        unused = tuple(key for key in connection.extra if key in UNUSED)
        return cls(checked["bootstrap.servers"], checked, unused)
