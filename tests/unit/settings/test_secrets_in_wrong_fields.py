"""A key, a store, a token or a password that stands in the wrong field is quoted by no error."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandbox.clusters.authority import Authority
from tallystick.errors import ConfigurationError
from tallystick.settings.connections import connection_of
from tallystick.settings.hdfs_connection import WebHdfsConnection
from tallystick.settings.kafka_connection import KafkaConnection, checked_properties
from tallystick.settings.ledger_connection import LedgerConnection
from tallystick.settings.spark_connection import SparkConnectConnection, SparkConnection

SECRET = "S3CRET"
KEY = (
    ec.generate_private_key(ec.SECP256R1())
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    .decode()
)
STORE = f"MII{SECRET}" + "A" * 4000
TLS = {"bootstrap.servers": "k:9093", "security.protocol": "SSL"}
WEB = {"fs": "hdfs://nn:8020", "use_ssl": True}
JAAS = f'PlainLoginModule required username="a" password="{SECRET}";'

CASES: dict[str, tuple[Any, str | None, Mapping[str, object]]] = {
    "a key as the authorities' path": (KafkaConnection.of, None, TLS | {"ssl.ca.location": KEY}),
    "a store in base64": (KafkaConnection.of, None, TLS | {"ssl.keystore.location": STORE}),
    "a path with a NUL": (
        KafkaConnection.of, None, TLS | {"ssl.keystore.location": f"{SECRET}\0"},
    ),
    "a list of keys": (KafkaConnection.of, None, TLS | {"ssl.key.location": [KEY]}),
    "the JAAS line as the mechanism": (
        KafkaConnection.of,
        None,
        TLS | {"security.protocol": "SASL_SSL", "sasl.mechanism": JAAS},
    ),
    "a login in Kafka's host": (KafkaConnection.of, f"vera:{SECRET}@k:9093", {}),
    "a password as the secrets' path": (
        SparkConnection.of, "yarn", {"kafka-secrets": f"password={SECRET}"},
    ),
    "a key as a directory": (SparkConnection.of, "yarn", {"hadoop-conf-dir": KEY}),
    "a login in Spark's host": (SparkConnection.of, f"https://u:{SECRET}@h", {}),
    "a login in Spark's master": (SparkConnection.of, f"spark://u:{SECRET}@h:7077", {}),
    "a token in the server's host": (
        SparkConnectConnection.of, f"sc://spark:15002/;token={SECRET}", {},
    ),
    "a store as the secrets' path": (SparkConnectConnection.of, "h", {"kafka-secrets": STORE}),
    "a token as a truth value": (SparkConnectConnection.of, "h", {"use_ssl": f"token={SECRET}"}),
    "a key as HDFS's path": (WebHdfsConnection.of, "nn", WEB | {"cert": "/c.pem", "key": KEY}),
    "a login in HDFS's host": (WebHdfsConnection.of, f"https://u:{SECRET}@nn:9871", WEB),
    "a login in the file system": (
        WebHdfsConnection.of, "nn", {"fs": f"hdfs://u:{SECRET}@nn:8020"},
    ),
    "a key as HDFS's authorities": (WebHdfsConnection.of, "nn", WEB | {"verify": KEY}),
    "a login in the ledger's host": (LedgerConnection.of, f"u:{SECRET}@db", {}),
}  # fmt: skip
TYPES: dict[Any, str] = {
    KafkaConnection.of: "kafka",
    SparkConnection.of: "spark",
    SparkConnectConnection.of: "spark_connect",
    WebHdfsConnection.of: "webhdfs",
    LedgerConnection.of: "postgres",
}


@pytest.mark.parametrize("case", CASES)
def test_no_error_quotes_it(case: str) -> None:
    kind, host, extra = CASES[case]
    connection = connection_of(
        "c", conn_type=TYPES[kind], host=host, schema="db" if kind == LedgerConnection.of else None,
        extra=json.dumps(extra),
    )  # fmt: skip
    assert_quotes_nothing(lambda: kind(connection))


def test_no_error_quotes_a_key_that_stands_for_its_path(tmp_path: Path) -> None:
    certificate = str(Authority(tmp_path).ca)
    given = TLS | {"ssl.certificate.location": certificate, "ssl.key.location": KEY}
    assert_quotes_nothing(lambda: checked_properties(given))


def assert_quotes_nothing(act: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError, match="not shown") as caught:
        act()
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    for secret in (SECRET, KEY.splitlines()[1]):
        assert secret not in told
