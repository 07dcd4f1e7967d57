"""Secrets apart from options, and where they may be shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.clusters.authority import Authority
from tallystick.errors import ConfigurationError, SecretsExposed
from tallystick.spark.connect_server import ConnectServer
from tallystick.spark.kafka_access import SECRETS_FILE, access_from, kafka_access, secrets_text
from tallystick.spark.place import SparkPlace

SASL = {
    "bootstrap.servers": "k:9092",
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "vera",
    "sasl.password": "pa55-word",
}


def test_a_plain_cluster_needs_no_secrets_file() -> None:
    access = kafka_access({"bootstrap.servers": "k:9092", "client.id": "tallystick"})

    assert access.options == {"kafka.bootstrap.servers": "k:9092"}
    assert access.secrets == {}


def test_a_client_of_another_name_is_named_to_spark_too() -> None:
    access = kafka_access({"bootstrap.servers": "k:9092", "client.id": "quota-7"})

    assert access.options == {"kafka.bootstrap.servers": "k:9092", "kafka.client.id": "quota-7"}


def test_no_option_and_no_repr_holds_the_password() -> None:
    access = kafka_access(SASL)

    assert "pa55-word" not in str(access.options) + repr(access)
    assert access.options == {
        "kafka.bootstrap.servers": "k:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": f"${{file:{SECRETS_FILE}:sasl.jaas.config}}",
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
    }
    assert access.secrets == {
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="vera" password="pa55-word";'
    }


def test_librdkafkas_other_name_of_the_mechanism_is_the_same() -> None:
    renamed = {key: value for key, value in SASL.items() if key != "sasl.mechanism"}

    assert (
        kafka_access(renamed | {"sasl.mechanisms": "PLAIN"})
        .secrets["sasl.jaas.config"]
        .startswith("org.apache.kafka.common.security.plain.PlainLoginModule required ")
    )


@pytest.mark.parametrize(
    ("password", "quoted"),
    [
        ('say "x"', r'"say \"x\""'),
        ("back\\slash", r'"back\\slash"'),
        ("semi;colon", '"semi;colon"'),
        ("two\r\nlines", r'"two\r\nlines"'),
    ],
)
def test_a_password_stays_one_string_of_the_login_line(password: str, quoted: str) -> None:
    login = kafka_access(SASL | {"sasl.password": password}).secrets["sasl.jaas.config"]

    assert login.endswith(f"password={quoted};")


@pytest.mark.parametrize("key", ["sasl.username", "sasl.password", "sasl.mechanism"])
def test_half_a_login_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigurationError, match=key) as refused:
        kafka_access({each: SASL[each] for each in SASL if each != key})

    assert "pa55-word" not in str(refused.value)


def test_an_unknown_mechanism_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="GSSAPI"):
        kafka_access(SASL | {"sasl.mechanism": "GSSAPI"})


@pytest.fixture
def ssl(tmp_path: Path) -> dict[str, str]:
    authority = Authority(tmp_path)
    own = authority.identity("vera")
    return {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.ca),
        "ssl.certificate.location": str(own.certificate),
        "ssl.key.location": str(own.key),
    }


def test_certificates_and_keys_travel_in_the_secrets_file(ssl: dict[str, str]) -> None:
    access = kafka_access(ssl)

    assert access.secrets == {
        "ssl.truststore.certificates": Path(ssl["ssl.ca.location"]).read_text(),
        "ssl.keystore.certificate.chain": Path(ssl["ssl.certificate.location"]).read_text(),
        "ssl.keystore.key": Path(ssl["ssl.key.location"]).read_text(),
    }
    assert access.options["kafka.ssl.truststore.type"] == "PEM"
    assert access.options["kafka.ssl.keystore.type"] == "PEM"
    assert access.options["kafka.ssl.keystore.key"] == f"${{file:{SECRETS_FILE}:ssl.keystore.key}}"
    assert "kafka.ssl.endpoint.identification.algorithm" not in access.options


def test_without_host_name_check_java_is_told_an_empty_text(ssl: dict[str, str]) -> None:
    access = kafka_access(ssl | {"ssl.endpoint.identification.algorithm": "none"})

    assert access.options["kafka.ssl.endpoint.identification.algorithm"] == ""


OAUTH = {
    "bootstrap.servers": "k:9092",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.id": "vera",
    "sasl.oauthbearer.client.secret": "pa55-word",
    "sasl.oauthbearer.scope": "kafka",
    "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
}


def test_what_stands_between_an_endpoints_authorities_is_left_out(tmp_path: Path) -> None:
    ca = Authority(tmp_path).ca
    noted = tmp_path / "noted.pem"
    noted.write_text(f"# Prüfstelle\n{ca.read_text()}# Ende\n", encoding="utf-8")
    login = kafka_access(OAUTH | {"https.ca.location": str(noted)}).secrets["sasl.jaas.config"]
    assert login == kafka_access(OAUTH | {"https.ca.location": str(ca)}).secrets["sasl.jaas.config"]


@pytest.mark.parametrize("content", ["nothing here", "-----BEGIN X-----\n"])
def test_an_endpoints_authorities_are_certificates(tmp_path: Path, content: str) -> None:
    file = tmp_path / "none.pem"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match="certificates") as refused:
        kafka_access(OAUTH | {"https.ca.location": str(file)})
    assert refused.value.setting == "https.ca.location"


def test_a_clients_token_is_fetched_where_spark_runs(tmp_path: Path) -> None:
    ca = Authority(tmp_path).ca
    access = kafka_access(OAUTH | {"https.ca.location": str(ca)})

    oauth = "org.apache.kafka.common.security.oauthbearer"
    assert access.options["kafka.sasl.login.callback.handler.class"] == (
        f"{oauth}.secured.OAuthBearerLoginCallbackHandler"
    )
    assert access.options["kafka.sasl.oauthbearer.token.endpoint.url"] == (
        "https://login.example.com/token"
    )
    authorities = ca.read_text().replace("\n", "\\n")
    assert access.secrets == {
        "sasl.jaas.config": f'{oauth}.OAuthBearerLoginModule required clientId="vera"'
        ' clientSecret="pa55-word" scope="kafka" ssl.truststore.type="PEM"'
        f' ssl.truststore.certificates="{authorities}";'
    }
    assert "pa55-word" not in str(access.options)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "k=plain\n"),
        (" leading", "k=\\ leading\n"),
        ("a=b:c#d!e", "k=a=b:c#d!e\n"),
        ("two\nlines\r", "k=two\\nlines\\r\n"),
        ("back\\slash", "k=back\\\\slash\n"),
        ("ü€", "k=\\u00fc\\u20ac\n"),
        ("𝄞", "k=\\ud834\\udd1e\n"),
    ],
)
def test_a_value_is_written_as_javas_properties_read_it(value: str, written: str) -> None:
    assert secrets_text({"k": value}) == written


PLAIN = {"bootstrap.servers": "k:9092"}
WITH_PASSWORD = PLAIN | {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "vera",
    "sasl.password": "pa55-word",
}
FILE = "/etc/tallystick/kafka.properties"
LOGIN = "kafka.sasl.jaas.config"

# master, deploy mode, may a secret be shipped there
PLACES = [
    ("local[2,4]", "client", True),
    ("yarn", "client", True),
    ("yarn", "cluster", True),
    ("spark://h:7077", "client", False),
    ("spark://h1:7077,h2:7077", "client", False),
    ("k8s://https://h:443", "client", False),
    ("k8s://https://h:443", "cluster", True),
    ("mesos://h:5050", "client", False),
]


@pytest.mark.parametrize(("master", "mode", "may_ship"), PLACES)
def test_a_secret_is_shipped_only_where_strangers_cannot_read_it(
    master: str, mode: str, may_ship: bool
) -> None:
    place = SparkPlace(master, mode)
    if may_ship:
        access = access_from(place, WITH_PASSWORD, where="connection s")
        assert access.options[LOGIN] == f"${{file:{SECRETS_FILE}:sasl.jaas.config}}"
        assert "pa55-word" in access.secrets["sasl.jaas.config"]
        return
    with pytest.raises(SecretsExposed) as caught:
        access_from(place, WITH_PASSWORD, where="connection s")
    assert "connection s" in str(caught.value)
    assert master in str(caught.value)
    assert "tallystick kafka-secrets FEED" in str(caught.value)
    assert "pa55-word" not in str(caught.value)
    assert not caught.value.retry


@pytest.mark.parametrize(("master", "mode", "may_ship"), PLACES)
def test_a_file_that_lies_on_every_node_is_named_and_nothing_is_shipped(
    master: str, mode: str, may_ship: bool
) -> None:
    access = access_from(
        SparkPlace(master, mode, kafka_secrets=FILE), WITH_PASSWORD, where="connection s"
    )
    assert access.options[LOGIN] == f"${{file:{FILE}:sasl.jaas.config}}"
    assert access.options["kafka.config.providers"] == "file"
    assert access.secrets == {}


@pytest.mark.parametrize(("master", "mode", "may_ship"), PLACES)
def test_what_holds_no_secret_lands_everywhere(
    tmp_path: Path, master: str, mode: str, may_ship: bool
) -> None:
    tls = PLAIN | {"security.protocol": "SSL", "ssl.ca.location": str(Authority(tmp_path).ca)}
    assert access_from(SparkPlace(master, mode), PLAIN, where="s").secrets == {}
    # A certificate is read by anybody who connects.
    assert list(access_from(SparkPlace(master, mode), tls, where="s").secrets) == [
        "ssl.truststore.certificates"
    ]


def test_a_clients_own_key_is_a_secret(tmp_path: Path) -> None:
    own = Authority(tmp_path).identity("vera")
    mutual = PLAIN | {
        "security.protocol": "SSL",
        "ssl.certificate.location": str(own.certificate),
        "ssl.key.location": str(own.key),
    }
    with pytest.raises(SecretsExposed):
        access_from(SparkPlace("spark://h:7077"), mutual, where="connection s")


def test_a_server_that_runs_already_needs_the_file_also_for_authorities_alone(
    tmp_path: Path,
) -> None:
    server = ConnectServer("sc://spark:15002", lambda _: "", None)
    tls = PLAIN | {"security.protocol": "SSL", "ssl.ca.location": str(Authority(tmp_path).ca)}
    with pytest.raises(SecretsExposed) as caught:
        access_from(server, tls, where="connection warm")
    assert "connection warm: Kafka's client needs a file" in str(caught.value)
    assert "sc://spark:15002" in str(caught.value)
    assert "driver's port" not in str(caught.value)
    assert access_from(server, PLAIN, where="connection warm").secrets == {}
    placed = ConnectServer("sc://spark:15002", lambda _: "", FILE)
    assert access_from(placed, tls, where="connection warm").secrets == {}
