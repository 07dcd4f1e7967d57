from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from sandbox.clusters.authority import Authority
from tallystick.errors import ConfigurationError
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.sources.client_properties import TRANSLATED, client_properties

SERVERS = {"bootstrap.servers": "one:9092, two:9092"}
SASL = SERVERS | {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanisms": "scram-sha-256",
    "sasl.username": "reader",
    "sasl.password": "open sesame",
}
OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.id": "reader",
    "sasl.oauthbearer.client.secret": "open sesame",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
}


def test_servers_alone() -> None:
    found = client_properties(SERVERS)
    assert found.servers == "one:9092,two:9092"
    assert found.kafka_python == {
        "bootstrap_servers": ["one:9092", "two:9092"],
        "client_id": "tallystick",
        "security_protocol": "PLAINTEXT",
    }


def test_sasl_is_translated() -> None:
    found = client_properties(SASL)
    assert found.kafka_python["security_protocol"] == "SASL_PLAINTEXT"
    assert found.kafka_python["sasl_mechanism"] == "SCRAM-SHA-256"
    assert found.kafka_python["sasl_plain_username"] == "reader"
    assert found.kafka_python["sasl_plain_password"] == "open sesame"


def test_a_name_and_its_alias_may_say_the_same() -> None:
    known = client_properties(SASL | {"sasl.mechanism": "Scram-SHA-256"}).librdkafka
    assert known["sasl.mechanism"] == "SCRAM-SHA-256"
    assert "sasl.mechanisms" not in known


def test_addresses_of_ipv6_are_known() -> None:
    assert client_properties({"bootstrap.servers": "[::1]:9092"}).servers == "[::1]:9092"


def test_tls_is_translated(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    given = SERVERS | {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.ca),
        "ssl.endpoint.identification.algorithm": "none",
    }
    found = client_properties(given)
    context = found.kafka_python["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    [trusted] = context.get_ca_certs()
    assert trusted["subject"] == ((("commonName", "Tallystick sandbox"),),)
    assert found.librdkafka["ssl.ca.pem"] == authority.ca.read_text()


def test_a_token_is_fetched_for_kafka_python_alone() -> None:
    given = SERVERS | OAUTH
    found = client_properties(given)
    assert repr(found.kafka_python["sasl_oauth_token_provider"]) == (
        "ClientCredentials('https://login.example.com/token')"
    )
    assert found.librdkafka["sasl.oauthbearer.method"] == "oidc"
    assert found.librdkafka["sasl.oauthbearer.client.secret"] == "open sesame"


def test_errors_name_the_connection() -> None:
    assert client_properties(SERVERS, "kafka_orders").servers == (
        "one:9092,two:9092 (connection kafka_orders)"
    )


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "a:1,,b:2"}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "kafka"}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "a:1,kafka:99999"}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "kafka:9092/"}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "SASL_SSL://kafka:9093"}, "bootstrap.servers", "host:port"),
        ({"bootstrap.servers": "::1"}, "bootstrap.servers", "host:port"),
        (
            SASL | {"sasl.mechanism": "PLAIN"},
            "sasl.mechanism",
            "one value for sasl.mechanism, which sasl.mechanisms is another name of",
        ),
        (SASL | {"sasl.username": "CN=x,O=y"}, "sasl.username", "a name without comma and ="),
        (SERVERS | {"group.id": "mine"}, "group.id", "only these: bootstrap.servers"),
        (SERVERS | {"auto.offset.reset": "latest"}, "auto.offset.reset", "only these"),
        (SERVERS | {"debug": "all"}, "debug", "only these"),
        (SERVERS | {"security.protocol": "TLS"}, "security.protocol", "PLAINTEXT, SSL, SASL_"),
        (
            SASL | {"sasl.mechanisms": "GSSAPI"},
            "sasl.mechanism",
            "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER (librdkafka",
        ),
        (SASL | {"sasl.password": ""}, "sasl.password", "a value, or the connection's password"),
        (SASL | {"sasl.password": 17}, "sasl.password", "a text"),
        (
            SERVERS | {"security.protocol": "SSL", "ssl.ca.location": "/no/such.pem"},
            "ssl.ca.location",
            "a file that this user may read (No such file",
        ),
        (
            SERVERS | {"ssl.endpoint.identification.algorithm": "HTTP"},
            "ssl.endpoint.identification.algorithm",
            "https, none",
        ),
    ],
)
def test_what_cannot_be_used_is_named(given: dict[str, str], key: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        KafkaBrokerView(given, now=lambda: NotImplemented)
    assert caught.value.setting == key
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        SASL | {"sasl.passwort": "open sesame"},
        SASL | {"sasl.mechanisms": "NTLM"},
        SASL | {"sasl.username": ""},
        SASL | {"ssl.key.password": ["open sesame"]},
        SASL | {"sasl.password": "open sesame\ud800"},
        SASL | {"bootstrap.servers": "vera:open sesame@k:1"},
        SASL | {"security.protocol": "none"},
    ],
)
def test_no_error_shows_a_secret(given: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        client_properties(given)
    assert "open sesame" not in f"{caught.value!s} {caught.value!r}"


def test_no_repr_shows_a_secret() -> None:
    view = KafkaBrokerView(SASL, now=lambda: NotImplemented)
    shown = f"{view!r} {client_properties(SASL)!r} {view!s}"
    assert "open sesame" not in shown
    assert "reader" not in shown
    assert "one:9092,two:9092" in shown


def test_kafka_python_knows_every_translated_name() -> None:
    from kafka.net.manager import KafkaConnectionManager

    given = client_properties(SERVERS | OAUTH | {"security.protocol": "SASL_SSL"}).kafka_python
    named = {*TRANSLATED.values(), *given}
    assert named <= set(KafkaConnectionManager.DEFAULT_CONFIG)


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://login.example.com/token", True),
        ("HTTPS://login.example.com:8443/token", True),
        ("http://localhost:8080/token", False),
        ("http://127.0.0.1:8080/token", False),
        ("http://[::1]:8080/token", False),
        ("http://login.example.com/token", False),
        ("http://localhost.example.com/token", False),
        ("http://127.0.0.1.example.com/token", False),
        ("https://vera:open@login.example.com/token", False),
        ("https://", False),
        ("https://login.example.com:x/token", False),
        ("login.example.com/token", False),
    ],
)
def test_a_clients_secret_leaves_this_machine_by_https_alone(url: str, is_taken: bool) -> None:
    given = SERVERS | OAUTH | {TOKEN_URL: url}
    if is_taken:
        assert client_properties(given).librdkafka[TOKEN_URL] == url
        return
    with pytest.raises(ConfigurationError, match="a URL such as https:") as caught:
        client_properties(given)
    assert caught.value.setting == TOKEN_URL
    assert "open" not in str(caught.value)
