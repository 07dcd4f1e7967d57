"""How Spark's Kafka client reaches the cluster: public options apart from secret ones.

The plan, the argument list, the log and Spark's UI show options, so a secret is never one. An
option names a place instead, `${file:NAME:key}`, and Kafka's client looks it up in a properties
file when it connects (KIP-297). The file is shipped with the application, into the working
directory of whatever process runs, driver or executor; or it lies on every node, by an absolute
path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from tallystick.errors import ConfigurationError, SecretsExposed

SECRETS_FILE: Final = "tallystick-kafka.properties"
_PROVIDER: Final = "org.apache.kafka.common.config.provider.FileConfigProvider"
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# The other keys of the file are certificates, which anybody may read.
_SECRET_KEYS: Final = {"sasl.jaas.config", "ssl.keystore.key", "ssl.key.password"}
_PKCS8: Final = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")
_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----"
_ALIASES: Final = {"sasl.mechanisms": "sasl.mechanism"}


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """What goes into a landing plan, and what goes into the secrets file."""

    options: Mapping[str, str]
    """For the plan: options of Spark's Kafka source, without any secret."""
    secrets: Mapping[str, str] = field(repr=False)
    """For the secrets file: key to value; empty when the cluster asks for none."""


class KafkaReader(Protocol):
    """What reads Kafka for us, as far as its secrets go."""

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
        """True where the file must lie there already: what is shipped is for anybody to read, or
        nothing can be shipped.
        """
        ...


def access_from(place: KafkaReader, properties: Mapping[str, str], *, where: str) -> KafkaAccess:
    """The access of applications that run there; its secrets are what is shipped with each.

    `where` names the place in errors. Raises SecretsExposed where anybody could read what is
    shipped, and as `kafka_access` does.
    """
    if place.kafka_secrets:
        return replace(kafka_access(properties, place.kafka_secrets), secrets={})
    access = kafka_access(properties)
    if place.needs_placed_secrets and _SECRET_KEYS & access.secrets.keys():
        accepted = "the absolute path of a file on every node"
        raise SecretsExposed("extra kafka-secrets", place.master, accepted, where=where)
    return access


def kafka_access(properties: Mapping[str, str], secrets_file: str = SECRETS_FILE) -> KafkaAccess:
    """The same access for Spark, from a connection's properties under librdkafka's names.

    Certificates and keys are read here: the secrets file is the only one that Spark needs.
    Raises ConfigurationError for what Java's client cannot do; the error never holds a secret.
    """
    given = {_ALIASES.get(key, key): value for key, value in properties.items()}
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    options = {"kafka.bootstrap.servers": _needed(given, "bootstrap.servers")}
    secrets: dict[str, str] = {}
    if protocol != "PLAINTEXT":
        options["kafka.security.protocol"] = protocol
    if protocol.startswith("SASL"):
        mechanism = _needed(given, "sasl.mechanism").upper()
        options["kafka.sasl.mechanism"] = mechanism
        secrets["sasl.jaas.config"] = _login(
            mechanism, _needed(given, "sasl.username"), _needed(given, "sasl.password")
        )
    if protocol.endswith("SSL"):
        options |= _ssl_options(given)
        secrets |= _ssl_secrets(given)
    for key in secrets:
        options[f"kafka.{key}"] = f"${{file:{secrets_file}:{key}}}"
    if secrets:
        options["kafka.config.providers"] = "file"
        options["kafka.config.providers.file.class"] = _PROVIDER
    return KafkaAccess(options, secrets)


def secrets_text(secrets: Mapping[str, str]) -> str:
    """The secrets as a Java properties file in UTF-8."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in secrets.items())


def _needed(given: Mapping[str, str], key: str) -> str:
    if not given.get(key):
        raise ConfigurationError(key, None, "a value")
    return given[key]


def _login(mechanism: str, user: str, password: str) -> str:
    if mechanism not in _LOGIN_MODULES:
        raise ConfigurationError("sasl.mechanism", mechanism, ", ".join(_LOGIN_MODULES))
    login = f"username={_quoted(user)} password={_quoted(password)}"
    return f"{_LOGIN_MODULES[mechanism]} required {login};"


def _ssl_options(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.crl.location" in given:
        raise ConfigurationError(
            "ssl.crl.location",
            given["ssl.crl.location"],
            "nothing: Spark's client has no revocation list",
        )
    options = {}
    if given.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        options["kafka.ssl.endpoint.identification.algorithm"] = ""
    if "ssl.ca.location" in given:
        options["kafka.ssl.truststore.type"] = "PEM"
    if "ssl.certificate.location" in given:
        options["kafka.ssl.keystore.type"] = "PEM"
    return options


def _ssl_secrets(given: Mapping[str, str]) -> dict[str, str]:
    """Certificates travel with the keys: they are no secrets, but one file is simpler than two."""
    secrets = {}
    if "ssl.ca.location" in given:
        secrets["ssl.truststore.certificates"] = _pem(given, "ssl.ca.location", (_CERTIFICATE,))
    if ("ssl.certificate.location" in given) != ("ssl.key.location" in given):
        raise ConfigurationError(
            "ssl.key.location", None, "both, a certificate and its key, or neither"
        )
    if "ssl.certificate.location" in given:
        secrets["ssl.keystore.certificate.chain"] = _pem(
            given, "ssl.certificate.location", (_CERTIFICATE,)
        )
        secrets["ssl.keystore.key"] = _pem(given, "ssl.key.location", _PKCS8)
    if "ssl.key.password" in given:
        secrets["ssl.key.password"] = given["ssl.key.password"]
    return secrets


def _pem(given: Mapping[str, str], setting: str, markers: tuple[str, ...]) -> str:
    """The text of a PEM file; Java's client takes keys in PKCS #8 only."""
    accepted = f"a readable PEM file with {' or '.join(markers)}"
    try:
        text = Path(given[setting]).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(setting, given[setting], accepted) from error
    if not any(marker in text for marker in markers):
        raise ConfigurationError(setting, given[setting], accepted)
    return text


def _quoted(value: str) -> str:
    """The value as a string of a JAAS line, whose tokenizer knows backslashes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _escaped(value: str) -> str:
    """The value as java.util.Properties reads it back."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + escaped if escaped[:1] in (" ", "\t", "\f") else escaped
