"""Spark's Kafka client reaches the cluster by public options, and apart from them secret ones.

The plan, the argument list, the log and Spark's UI show options, so a secret is never one. An
option names a place instead, `${file:NAME:key}`, and Kafka's client looks it up in a properties
file when it connects (KIP-297). The file is shipped with the application, into the working
directory of whatever process runs, driver or executor; or it lies on every node, by an absolute
path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from tallystick.errors import ConfigurationError, SecretsExposed
from tallystick.settings.kafka_connection import (
    CLIENT_ID,
    CLIENT_SECRET,
    DEFAULT_CLIENT,
    OAUTHBEARER,
    PASSWORD,
    SCOPE,
    TOKEN_CA,
    TOKEN_URL,
    USER,
    checked_properties,
)
from tallystick.settings.kafka_tls import CA, CERTIFICATE, KEY, authorities_in

SECRETS_FILE: Final = "tallystick-kafka.properties"
_PROVIDER: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_FETCHER: Final = (
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
)
# Certificates travel with the keys: they are no secrets, but one file is simpler than two.
_JAVA_NAMES: Final = {
    CA: "ssl.truststore.certificates",
    CERTIFICATE: "ssl.keystore.certificate.chain",
    KEY: "ssl.keystore.key",
}
_SECRET_KEYS: Final = {"sasl.jaas.config", "ssl.keystore.key"}


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """Some options go into a landing plan, others into the secrets file."""

    options: Mapping[str, str]
    """For the plan: options of Spark's Kafka source, without any secret."""
    secrets: Mapping[str, str] = field(repr=False)
    """For the secrets file: key to value; empty when the cluster asks for none."""


class KafkaReader(Protocol):
    """A machine reads Kafka for us with these secrets."""

    @property
    def master(self) -> str:
        """Its address, for errors."""
        ...

    @property
    def kafka_secrets(self) -> str | None:
        """Absolute path of the file with the secrets where it runs; None: there is none."""
        ...

    @property
    def needs_placed_secrets(self) -> bool:
        """True where the file must lie there already, as anybody could read what is shipped."""
        ...

    @property
    def ships_files(self) -> bool:
        """False where it runs already: the file must lie there, whatever it holds."""
        ...


def access_from(place: KafkaReader, properties: Mapping[str, str], *, where: str) -> KafkaAccess:
    """The access of applications that run there; its secrets are what is shipped with each.

    `where` names the place in errors. Raises SecretsExposed where anybody could read what is
    shipped, or nothing can be; and as `kafka_access` does.
    """
    if place.kafka_secrets:
        return replace(kafka_access(properties, place.kafka_secrets), secrets={})
    access = kafka_access(properties)
    is_exposed = place.needs_placed_secrets and _SECRET_KEYS & access.secrets.keys()
    if is_exposed or (access.secrets and not place.ships_files):
        accepted = "the absolute path of a file on every node"
        raise SecretsExposed("extra kafka-secrets", place.master, accepted, where=where)
    return access


def kafka_access(properties: Mapping[str, str], secrets_file: str = SECRETS_FILE) -> KafkaAccess:
    """The same access for Spark, from a connection's properties under librdkafka's names.

    Certificates and keys are texts by then: the secrets file is the only one that Spark needs.
    Raises ConfigurationError, as `checked_properties` does.
    """
    known = checked_properties(properties)
    protocol = known["security.protocol"]
    options = {"kafka.bootstrap.servers": known["bootstrap.servers"]}
    secrets: dict[str, str] = {}
    if known["client.id"] != DEFAULT_CLIENT:
        # Two consumers of one name in a JVM cost a warning each: for quotas it is worth them.
        options["kafka.client.id"] = known["client.id"]
    if protocol != "PLAINTEXT":
        options["kafka.security.protocol"] = protocol
    if protocol.startswith("SASL"):
        options |= _sasl_options(known)
        secrets["sasl.jaas.config"] = _login(known)
    if protocol.endswith("SSL"):
        options |= _ssl_options(known)
        secrets |= {java: known[key] for key, java in _JAVA_NAMES.items() if key in known}
    for key in secrets:
        options[f"kafka.{key}"] = f"${{file:{secrets_file}:{key}}}"
    if secrets:
        options["kafka.config.providers"] = "file"
        options["kafka.config.providers.file.class"] = _PROVIDER
    return KafkaAccess(options, secrets)


def secrets_text(secrets: Mapping[str, str]) -> str:
    """The secrets as a Java properties file: ASCII, and so the same in every encoding."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in secrets.items())


def _sasl_options(known: Mapping[str, str]) -> dict[str, str]:
    options = {"kafka.sasl.mechanism": known["sasl.mechanism"]}
    if known["sasl.mechanism"] == OAUTHBEARER:
        options["kafka.sasl.login.callback.handler.class"] = _TOKEN_FETCHER
        options[f"kafka.{TOKEN_URL}"] = known[TOKEN_URL]
    return options


def _login(known: Mapping[str, str]) -> str:
    """The line of JAAS, with the password or the client's secret in it."""
    mechanism = known["sasl.mechanism"]
    told = {"username": known.get(USER), "password": known.get(PASSWORD)}
    if mechanism == OAUTHBEARER:
        told = {
            "clientId": known[CLIENT_ID],
            "clientSecret": known[CLIENT_SECRET],
            "scope": known.get(SCOPE),
        }
        if known.get(TOKEN_CA):
            told["ssl.truststore.type"] = "PEM"
            told["ssl.truststore.certificates"] = authorities_in(
                known, TOKEN_CA, ConfigurationError
            )
    pairs = " ".join(f"{name}={_quoted(value)}" for name, value in told.items() if value)
    return f"{_LOGIN_MODULES[mechanism]} required {pairs};"


def _ssl_options(known: Mapping[str, str]) -> dict[str, str]:
    options = {}
    if known["ssl.endpoint.identification.algorithm"] == "none":
        options["kafka.ssl.endpoint.identification.algorithm"] = ""
    if CA in known:
        options["kafka.ssl.truststore.type"] = "PEM"
    if CERTIFICATE in known:
        options["kafka.ssl.keystore.type"] = "PEM"
    return options


def _quoted(value: str) -> str:
    """The value as a string of a JAAS line, whose tokenizer knows backslashes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _escaped(value: str) -> str:
    """The value as java.util.Properties reads it back."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    escaped = "".join(each if each.isascii() else _by_number(each) for each in escaped)
    return "\\" + escaped if escaped[:1] in (" ", "\t", "\f") else escaped


def _by_number(character: str) -> str:
    """Writes it as Java does: one number, or the two of a surrogate pair."""
    pairs = character.encode("utf-16-be").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))
