"""One connection's properties for the two clients of this process: kafka-python and librdkafka.

The checked form bears librdkafka's names, and librdkafka takes it as it is. Its words for a token
that it could not get become those of a refused log-in.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from tallystick.settings.kafka_connection import (
    CLIENT_ID,
    CLIENT_SECRET,
    OAUTHBEARER,
    SCOPE,
    TOKEN_CA,
    TOKEN_URL,
    checked_properties,
)
from tallystick.settings.kafka_tls import CA, CERTIFICATE, KEY
from tallystick.sources.oauth_token import ClientCredentials

_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"
# The codes of RFC 6749; which HTTP status there was, the library seldom says.
_REFUSED: Final = re.compile(
    r"\bHTTP\D{0,20}(400|401|403)\b|\binvalid_(client|request|scope|grant)\b"
    r"|\bunauthorized_client\b|\bunsupported_grant_type\b"
)
TOKEN_PROVIDER: Final = "sasl_oauth_token_provider"
# librdkafka's name -> kafka-python's name.
TRANSLATED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "client.id": "client_id",
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
    }
)


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """Each client library is told these. The repr shows the servers and nothing else."""

    servers: str
    """For errors: the bootstrap servers, and which connection named them."""
    kafka_python: Mapping[str, object] = field(repr=False)
    librdkafka: Mapping[str, str] = field(repr=False)


def client_properties(
    properties: Mapping[str, str], connection: str | None = None
) -> ClientProperties:
    """The properties under both libraries' names; the connection's id is for errors.

    Raises ConfigurationError, as `checked_properties` does.
    """
    known = checked_properties(properties)
    servers = known["bootstrap.servers"]
    translated: dict[str, object] = {
        TRANSLATED[key]: value for key, value in known.items() if key in TRANSLATED
    }
    translated["bootstrap_servers"] = servers.split(",")
    if known["security.protocol"].endswith("SSL"):
        translated["ssl_context"] = _ssl_context(known)
    if known.get("sasl.mechanism") == OAUTHBEARER:
        translated[TOKEN_PROVIDER] = ClientCredentials(
            known[TOKEN_URL],
            known[CLIENT_ID],
            known[CLIENT_SECRET],
            scope=known.get(SCOPE, ""),
            ca=known.get(TOKEN_CA) or None,
        )
    shown = f"{servers} (connection {connection})" if connection else servers
    return ClientProperties(shown, MappingProxyType(translated), MappingProxyType(known))


def _ssl_context(known: Mapping[str, str]) -> ssl.SSLContext:
    """Makes of texts what kafka-python makes of files: whom to trust, and who we are."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = known["ssl.endpoint.identification.algorithm"] == "https"
    if CA in known:
        context.load_verify_locations(cadata=known[CA])
    else:
        context.load_default_certs()
    if CERTIFICATE in known:
        # OpenSSL takes a key from a file alone; this one has no name and lies on no disk.
        with os.fdopen(os.memfd_create("kafka-client"), "w") as file:
            file.write(known[CERTIFICATE] + known[KEY])
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


def token_trouble(words: str, properties: Mapping[str, str]) -> str | None:
    """Its words with the endpoint's address; None where they are about something else."""
    if not words.startswith(_NO_TOKEN):
        return None
    return f"token endpoint {properties.get(TOKEN_URL)}: {words}"


def is_refused_token(words: str) -> bool:
    """True where the endpoint has refused the client; else it may give a token later."""
    return bool(_REFUSED.search(words))
