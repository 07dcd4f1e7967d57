"""What each kind of connection means, and the words for each missing or wrong part."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tallystick.errors import ConfigurationError
from tallystick.settings.connection_kinds import (
    KafkaConnection,
    LedgerConnection,
    SparkConnection,
    WebHdfsConnection,
)
from tallystick.settings.connections import Connection, connection_in, parse_connection

Kind = Callable[[Connection], object]
SERVERS = "bootstrap.servers"

KAFKA = [
    ('{"conn_type":"kafka","extra":{"bootstrap.servers":"a:1,b:2","client.id":"x"}}',
     {SERVERS: "a:1,b:2", "client.id": "x"}),
    ("kafka://h:9093", {SERVERS: "h:9093"}),
    ('{"conn_type":"kafka","host":"a:1, b","port":9094}', {SERVERS: "a:1,b:9094"}),
    ('{"conn_type":"kafka","host":"a"}', {SERVERS: "a:9092"}),
    ('{"conn_type":"kafka","host":"x","extra":{"bootstrap.servers":"a:1"}}', {SERVERS: "a:1"}),
    ("kafka://u:p@a:1/?security.protocol=SASL_SSL",
     {SERVERS: "a:1", "security.protocol": "SASL_SSL", "sasl.username": "u", "sasl.password": "p"}),
    ('{"conn_type":"kafka","extra":{"bootstrap.servers":"a:1","enable":true,"n":3}}',
     {SERVERS: "a:1", "enable": "true", "n": "3"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "properties"), KAFKA)
def test_kafka(text: str, properties: dict[str, str]) -> None:
    found = KafkaConnection.of(parse_connection("c", text))
    assert found.properties == properties
    assert found.servers == properties[SERVERS]
    assert repr(found) == f"KafkaConnection(servers={found.servers!r})"


FS = "?fs=hdfs%3A%2F%2Fnn%3A8020%2F"
WEBHDFS = [
    (f"webhdfs://h/{FS}", ("http://h:9870",), None),
    (f"webhdfs://me@h:50070/{FS}", ("http://h:50070",), "me"),
    (f"webhdfs://h1%3A9871%2Ch2%3Bh3/{FS}",
     ("http://h1:9871", "http://h2:9870", "http://h3:9870"), None),
    (f"webhdfs://https://h/{FS}", ("https://h:9871",), None),
    (f"webhdfs://h/gateway{FS}", ("http://h:9870/gateway",), None),
    ('{"conn_type":"webhdfs","host":"http://a:1;http://b:2/","extra":{"fs":"hdfs://nn:8020"}}',
     ("http://a:1", "http://b:2"), None),
    ('{"conn_type":"webhdfs","host":"h","extra":{"fs":"hdfs://nn:8020","use_ssl":true}}',
     ("https://h:9871",), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "urls", "user"), WEBHDFS)
def test_webhdfs(text: str, urls: tuple[str, ...], user: str | None) -> None:
    found = WebHdfsConnection.of(parse_connection("c", text))
    assert (found.urls, found.user, found.fs) == (urls, user, "hdfs://nn:8020")


SPARK = [
    ('{"conn_type":"spark","host":"local[2,4]","extra":{"deploy-mode":"client"}}', "local[2,4]"),
    ("spark://local%5B2%5D", "local[2]"),
    ('{"conn_type":"spark","host":"local"}', "local"),
    ('{"conn_type":"spark","host":"yarn"}', "yarn"),
    ("spark://h:7077", "spark://h:7077"),
    ('{"conn_type":"spark","host":"h","port":7077}', "spark://h:7077"),
    ('{"conn_type":"spark","host":"spark://h","port":7077}', "spark://h:7077"),
    ('{"conn_type":"spark","host":"spark://h1:7077,h2:7077"}', "spark://h1:7077,h2:7077"),
    ('{"conn_type":"spark","host":"k8s://https://h:443"}', "k8s://https://h:443"),
]


@pytest.mark.parametrize(("text", "master"), SPARK)
def test_spark_masters_are_those_of_airflow_s_provider(text: str, master: str) -> None:
    found = SparkConnection.of(parse_connection("c", text))
    assert (found.master, found.deploy_mode) == (master, "client")


def test_spark_s_extra() -> None:
    extra = {
        "deploy-mode": "cluster",
        "queue": "etl",
        "jars": "/a.jar, /b.jar",
        "kafka-secrets": "/etc/kafka.properties",
    }
    text = json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra})
    found = SparkConnection.of(parse_connection("c", text))
    assert found == SparkConnection(
        "yarn", "cluster", ("/a.jar", "/b.jar"), "etl", "/etc/kafka.properties"
    )


LEDGER = [
    ("postgres://u:p%40ss@h:5433/db?sslmode=require",
     "postgresql://u:p%40ss@h:5433/db?sslmode=require",
     "postgresql://u@h:5433/db"),
    ("postgres://h/db", "postgresql://h:5432/db", "postgresql://h:5432/db"),
    ("postgres://u@h1%2Ch2/db",
     "postgresql://u@h1:5432,h2:5432/db", "postgresql://u@h1:5432,h2:5432/db"),
    ('{"conn_type":"postgres","host":"h","schema":"db",'
     '"extra":{"options":"-c a=b","connect_timeout":5}}',
     "postgresql://h:5432/db?options=-c%20a%3Db&connect_timeout=5", "postgresql://h:5432/db"),
    ("postgres://u@%2Fvar%2Frun/db", "postgresql://u@%2Fvar%2Frun:5432/db",
     "postgresql://u@%2Fvar%2Frun:5432/db"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dsn", "shown"), LEDGER)
def test_ledger(text: str, dsn: str, shown: str) -> None:
    found = LedgerConnection.of(parse_connection("c", text))
    assert (found.dsn, found.shown) == (dsn, shown)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:hunter2@h:5432/db", "postgresql://u@h:5432/db"),
        ("postgres://u:hunter2@/db?host=/var/run&port=1", "postgresql://u@/db"),
        ("postgresql:///db?password=hunter2", "postgresql:///db"),
        ("host=/var/run dbname=db password=hunter2", "the database that the dsn names"),
    ],
)
def test_a_dsn_is_used_as_it_is_and_shown_without_its_password(dsn: str, shown: str) -> None:
    found = LedgerConnection.of(connection_in({"LEDGER_DSN": dsn}, "ledger_default"))
    assert (found.dsn, found.shown) == (dsn, shown)
    assert "hunter2" not in repr(found)


def test_what_the_sandbox_prints_is_enough() -> None:
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9092",
        "WEBHDFS_URL": "http://127.0.0.1:9870",
        "HDFS_URL": "hdfs://127.0.0.1:8020",
        "SPARK_MASTER": "local[2,4]",
    }
    kafka = KafkaConnection.of(connection_in(environ, "kafka_default"))
    webhdfs = WebHdfsConnection.of(connection_in(environ, "webhdfs_default"))
    spark = SparkConnection.of(connection_in(environ, "spark_default"))
    assert kafka.properties == {SERVERS: "127.0.0.1:9092"}
    assert webhdfs == WebHdfsConnection(("http://127.0.0.1:9870",), None, "hdfs://127.0.0.1:8020")
    assert spark.master == "local[2,4]"


MASTERS = "a Spark master: local[2,4], yarn, spark://host:7077 or k8s://https://host:443"
LIBPQ = (
    "only these: application_name, channel_binding, connect_timeout, gssencmode, keepalives,"
    " keepalives_count, keepalives_idle, keepalives_interval, options, sslcert, sslkey, sslmode,"
    " sslrootcert, target_session_attrs, tcp_user_timeout"
)
WRONG = [
    (KafkaConnection, "kafka://",
     "extra bootstrap.servers is missing; accepted: host:port, more after commas"),
    (KafkaConnection, "kafka://?bootstrap.servers=",
     "extra bootstrap.servers is missing; accepted: host:port, more after commas"),
    (KafkaConnection, "http://h:1", "conn_type is 'http'; accepted: kafka"),
    (KafkaConnection, '{"conn_type":"kafka","host":"a b"}',
     "host is 'a b'; accepted: host or host:port, more after commas"),
    (KafkaConnection, '{"conn_type":"kafka","extra":{"sasl.password":["hunter2"]}}',
     "extra sasl.password is '(not shown)'; accepted: a text or a number"),
    (WebHdfsConnection, f"webhdfs://{FS}",
     "host is missing; accepted: the NameNode's host, more after commas"),
    (WebHdfsConnection, "webhdfs://h",
     "extra fs is missing; accepted: a file system such as hdfs://host:8020"),
    (WebHdfsConnection, "webhdfs://h/?fs=nn%3A8020",
     "extra fs is 'nn:8020'; accepted: a file system such as hdfs://host:8020"),
    (WebHdfsConnection, "hdfs://h", "conn_type is 'hdfs'; accepted: webhdfs"),
    (SparkConnection, "spark://", f"host is missing; accepted: {MASTERS}"),
    (SparkConnection, '{"conn_type":"spark","host":"somewhere"}',
     f"host is 'somewhere'; accepted: {MASTERS}"),
    (SparkConnection, "yarn://yarn", "conn_type is 'yarn'; accepted: spark, or spark_connect"),
    (SparkConnection, "spark://h:7077?deploy-mode=cluster",
     "extra deploy-mode is 'cluster'; accepted: client (with master spark://h:7077)"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"deploy-mode":"x"}}',
     "extra deploy-mode is 'x'; accepted: client, cluster (with master yarn)"),
    (SparkConnection, "spark://h:7077?kafka-secrets=secrets.properties",
     "extra kafka-secrets is 'secrets.properties';"
     " accepted: an absolute path without colon, brace, space"),
    (LedgerConnection, "postgres://h", "schema is missing; accepted: the database's name"),
    (LedgerConnection, "postgres://h/db?ssl_mode=require",
     f"extra ssl_mode is '(not shown)'; accepted: {LIBPQ}"),
    (LedgerConnection, "mysql://h/db", "conn_type is 'mysql'; accepted: postgres"),
    (LedgerConnection, '{"conn_type":"postgres","extra":{"dsn":"mysql://u:hunter2@h/db"}}',
     "extra dsn is '(not shown)'; accepted: postgresql://login:password@host:port/name"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "words"), WRONG)
def test_a_wrong_part_is_named(kind: type, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        kind.of(parse_connection("c", text))
    assert caught.value.describe() == f"connection c: {words}."
