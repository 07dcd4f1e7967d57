"""Where Kafka's secrets may be shipped: by master, deploy mode, and what the connection holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.clusters.authority import Authority
from tallystick.errors import SecretsExposed
from tallystick.spark.connect_server import ConnectServer
from tallystick.spark.kafka_access import SECRETS_FILE, access_from
from tallystick.spark.place import SparkPlace

PLAIN = {"bootstrap.servers": "k:9092"}
SASL = PLAIN | {
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
        access = access_from(place, SASL, where="connection s")
        assert access.options[LOGIN] == f"${{file:{SECRETS_FILE}:sasl.jaas.config}}"
        assert "pa55-word" in access.secrets["sasl.jaas.config"]
        return
    with pytest.raises(SecretsExposed) as caught:
        access_from(place, SASL, where="connection s")
    assert "connection s" in str(caught.value)
    assert master in str(caught.value)
    assert "tallystick kafka-secrets FEED" in str(caught.value)
    assert "pa55-word" not in str(caught.value)
    assert not caught.value.retry


@pytest.mark.parametrize(("master", "mode", "may_ship"), PLACES)
def test_a_file_that_lies_on_every_node_is_named_and_nothing_is_shipped(
    master: str, mode: str, may_ship: bool
) -> None:
    access = access_from(SparkPlace(master, mode, kafka_secrets=FILE), SASL, where="connection s")
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
