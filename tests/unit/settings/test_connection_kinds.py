"""What each kind of connection means, and the words for each missing or wrong part."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable

import pytest
from pydantic import SecretBytes

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import Connection, connection_in, parse_connection
from tallystick.settings.hdfs_connection import WebHdfsConnection
from tallystick.settings.kafka_connection import KafkaConnection
from tallystick.settings.kafka_properties import KNOWN
from tallystick.settings.ledger_connection import LedgerConnection
from tallystick.settings.spark_connection import SparkConnection

Kind = Callable[[Connection], object]
SERVERS = "bootstrap.servers"

KAFKA_DEFAULTS = {"client.id": "tallystick", "security.protocol": "PLAINTEXT"}
KAFKA = [
    ('{"conn_type":"kafka","extra":{"bootstrap.servers":"a:1,b:2","client.id":"x"}}',
     {SERVERS: "a:1,b:2", "client.id": "x"}),
    ("kafka://h:9093", {SERVERS: "h:9093"}),
    ('{"conn_type":"kafka","host":"a:1, b","port":9094}', {SERVERS: "a:1,b:9094"}),
    ('{"conn_type":"kafka","host":"a"}', {SERVERS: "a:9092"}),
    ('{"conn_type":"kafka","host":"x","extra":{"bootstrap.servers":"a:1"}}', {SERVERS: "a:1"}),
    ("kafka://u:p@a:1/?security.protocol=SASL_PLAINTEXT&sasl.mechanism=plain",
     {SERVERS: "a:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
      "sasl.username": "u", "sasl.password": "p"}),
    ("kafka://u:p@a:1/?security.protocol=SASL_PLAINTEXT&sasl.mechanisms=OAuthBearer"
     "&sasl.oauthbearer.token.endpoint.url=https%3A%2F%2Fh%2Ft",
     {SERVERS: "a:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER",
      "sasl.oauthbearer.client.id": "u", "sasl.oauthbearer.client.secret": "p",
      "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": "https://h/t"}),
    ('{"conn_type":"kafka","extra":{"bootstrap.servers":"a:1","client.id":3}}',
     {SERVERS: "a:1", "client.id": "3"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "properties"), KAFKA)
def test_kafka(text: str, properties: dict[str, str]) -> None:
    found = KafkaConnection.of(parse_connection("c", text))
    assert found.properties == KAFKA_DEFAULTS | properties
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


def webhdfs(**extra: object) -> str:
    extra = {"fs": "hdfs://nn:8020", **extra}
    return json.dumps({"conn_type": "webhdfs", "host": "h", "extra": extra})


def test_https_with_an_authority_and_a_certificate_of_our_own() -> None:
    extra = {"use_ssl": "True", "verify": "/etc/ca.pem", "cert": "/etc/us.pem"}
    found = WebHdfsConnection.of(parse_connection("c", webhdfs(**extra)))
    assert (found.urls, found.verify) == (("https://h:9871",), "/etc/ca.pem")
    assert found.cert == ("/etc/us.pem", "/etc/us.pem")
    again = WebHdfsConnection.of(parse_connection("c", webhdfs(**extra, key="/etc/us.key")))
    assert again.cert == ("/etc/us.pem", "/etc/us.key")


def test_certificates_are_checked_unless_told_by_whom() -> None:
    for extra in ({}, {"verify": True}, {"verify": "true"}, {"verify": ""}):
        found = WebHdfsConnection.of(parse_connection("c", webhdfs(use_ssl=True, **extra)))
        assert found.verify is True


def test_kerberos_by_ticket_cache_and_by_keytab() -> None:
    found = WebHdfsConnection.of(parse_connection("c", webhdfs(kerberos=True)))
    assert (found.kerberos, found.principal, found.keytab) == (True, None, None)
    extra = {"kerberos": "true", "principal": "etl@EXAMPLE.COM", "keytab": "/etc/etl.keytab"}
    found = WebHdfsConnection.of(parse_connection("c", webhdfs(**extra)))
    assert found.principal == "etl@EXAMPLE.COM"
    assert (found.kerberos, found.keytab) == (True, "/etc/etl.keytab")


def test_an_empty_password_is_none() -> None:
    text = json.dumps({**json.loads(webhdfs(kerberos=True)), "password": ""})
    assert WebHdfsConnection.of(parse_connection("c", text)).kerberos


def test_a_token_is_a_secret() -> None:
    found = WebHdfsConnection.of(parse_connection("c", webhdfs(token="s3cret")))
    assert found.token is not None
    assert found.token.get_secret_value() == "s3cret"
    assert "s3cret" not in repr(found)


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
        "spark-binary": "spark3-submit",
        "hadoop-conf-dir": "/etc/hadoop",
        "principal": "etl@EXAMPLE.COM",
        "keytab": "/etc/etl.keytab",
        "namespace": "",  # Airflow's form leaves it so
        "rest-port": None,
    }
    text = json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra})
    found = SparkConnection.of(parse_connection("c", text))
    assert found == SparkConnection(
        master="yarn",
        deploy_mode="cluster",
        jars=("/a.jar", "/b.jar"),
        conf={"spark.yarn.queue": "etl"},
        kafka_secrets="/etc/kafka.properties",
        spark_submit="spark3-submit",
        hadoop_conf="/etc/hadoop",
        principal="etl@EXAMPLE.COM",
        keytab="/etc/etl.keytab",
    )


def test_a_namespace_is_kubernetes() -> None:
    text = '{"conn_type":"spark","host":"k8s://https://h:443","extra":{"namespace":"etl"}}'
    conf = SparkConnection.of(parse_connection("c", text)).conf
    assert conf == {"spark.kubernetes.namespace": "etl"}


def test_the_keys_of_the_provider_s_form_are_taken_and_not_shown() -> None:
    extra = {"principal": "etl@EXAMPLE.COM", "keytab": b64encode(b"\5\2keys").decode()}
    text = json.dumps({"conn_type": "spark", "host": "yarn", "extra": extra})

    found = SparkConnection.of(parse_connection("c", text))

    assert (found.keytab, found.keys) == (None, SecretBytes(b"\5\2keys"))
    assert "keys" not in repr(found.keys)


LEDGER = [
    ("postgres://u:p%40ss@h:5433/db?sslmode=require",
     "postgresql://u:p%40ss@h:5433/db?sslmode=require",
     "postgresql://u@h:5433/db"),
    ("postgres://h/db", "postgresql://h:5432/db", "postgresql://h:5432/db"),
    ("postgres://u@h1%2Ch2/db",
     "postgresql://u@h1:5432,h2:5432/db", "postgresql://u@h1:5432,h2:5432/db"),
    ("postgres://u@h1%3A5433%2C%20h2/db?target_session_attrs=any",
     "postgresql://u@h1:5433,h2:5432/db?target_session_attrs=any",
     "postgresql://u@h1:5433,h2:5432/db"),
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


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:Se?cret@db/led",
        "postgresql://u:12?cret@db:5432/led",
        "postgresql://u:Se/cr?et@db/led",
        "postgresql://u:a@Se?cret@db/led",
        "postgresql://u:Se/cret@db/led",
        "postgresql://Se:cret",
    ],
)
def test_a_password_that_is_not_quoted_is_not_shown_in_part(dsn: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        LedgerConnection.of(connection_in({"LEDGER_DSN": dsn}, "ledger_default"))
    assert "(not shown)" in str(caught.value)
    assert "Se" not in str(caught.value)


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
    assert kafka.properties == KAFKA_DEFAULTS | {SERVERS: "127.0.0.1:9092"}
    assert webhdfs == WebHdfsConnection(("http://127.0.0.1:9870",), None, "hdfs://127.0.0.1:8020")
    assert spark.master == "local[2,4]"


MASTERS = "a Spark master: local[2,4], yarn, spark://host:7077 or k8s://https://host:443"
LIBPQ = (
    "only these: application_name, channel_binding, connect_timeout, gssencmode, keepalives,"
    " keepalives_count, keepalives_idle, keepalives_interval, options, passfile, require_auth,"
    " ssl_min_protocol_version, sslcert, sslcertmode, sslcrl, sslkey, sslmode, sslnegotiation,"
    " sslpassword, sslrootcert, target_session_attrs, tcp_user_timeout"
)
SPARK_EXTRAS = (
    "deploy-mode, hadoop-conf-dir, jars, kafka-secrets, keytab, namespace, principal, queue,"
    " spark-binary, rest-port, rest-scheme, yarn_resourcemanager_webapp_address"
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
    (KafkaConnection, "kafka://a:1/?security.protocol=SASL_SSL&sasl.mechanism=GSSAPI",
     "extra sasl.mechanism is 'GSSAPI'; accepted: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"
     " (librdkafka as PyPI serves it can't do Kerberos)"),
    (KafkaConnection, "kafka://a:1/?security.protocol=SASL_SSL",
     "extra sasl.mechanism is missing; accepted: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER,"
     " for SASL_SSL"),
    (KafkaConnection, "kafka://u:hunter2@a:1",
     "extra security.protocol is 'PLAINTEXT'; accepted: SASL_PLAINTEXT, SASL_SSL, because"
     " sasl.username is given"),
    (KafkaConnection, "kafka://a:1/?sasl.passwort=hunter2",
     "extra sasl.passwort is '(not shown)'; accepted: nearest known: sasl.password; only these: "
     + ", ".join(sorted(KNOWN))),
    (WebHdfsConnection, f"webhdfs://{FS}",
     "host is missing; accepted: the NameNode's host, more after commas"),
    (WebHdfsConnection, "webhdfs://h",
     "extra fs is missing; accepted: a file system such as hdfs://host:8020"),
    (WebHdfsConnection, "webhdfs://h/?fs=nn%3A8020",
     "extra fs is 'nn:8020'; accepted: a file system such as hdfs://host:8020"),
    (WebHdfsConnection, "hdfs://h", "conn_type is 'hdfs'; accepted: webhdfs"),
    (WebHdfsConnection, webhdfs(verfy="/etc/ca.pem", use_ssl=True),
     "extra verfy is '(not shown)'; accepted: nearest known: verify; only these: fs, use_ssl,"
     " verify, cert, key, kerberos, principal, keytab, token"),
    (WebHdfsConnection, webhdfs(cookies={"a": "b"}),
     "extra cookies is '(not shown)'; accepted: only these:"
     " fs, use_ssl, verify, cert, key, kerberos, principal, keytab, token"),
    (WebHdfsConnection, webhdfs(use_ssl="yes"), "extra use_ssl is 'yes'; accepted: true or false"),
    (WebHdfsConnection, webhdfs(verify="/etc/ca.pem"),
     "extra verify is '(not shown)'; accepted: nothing without extra use_ssl: true"),
    (WebHdfsConnection, webhdfs(use_ssl=True, verify=False),
     "extra verify is 'false';"
     " accepted: the absolute path of a PEM file with the authority's certificate, or true"),
    (WebHdfsConnection, webhdfs(use_ssl=True, key="/etc/us.key"),
     "extra cert is missing; accepted: the certificate of extra key"),
    (WebHdfsConnection, webhdfs(use_ssl=True, cert="us.pem"),
     "extra cert is '(not shown)'; accepted: an absolute path"),
    (WebHdfsConnection, webhdfs(principal="etl", keytab="/etc/etl.keytab"),
     "extra principal is '(not shown)'; accepted: nothing without extra kerberos: true"),
    (WebHdfsConnection, webhdfs(kerberos=True, keytab="/etc/etl.keytab"),
     "extra principal is missing; accepted: principal and keytab, or neither"),
    (WebHdfsConnection, webhdfs(kerberos=True, token="s3cret"),
     "extra token is '(not shown)';"
     " accepted: nothing beside extra kerberos, which says who we are"),
    (WebHdfsConnection, "webhdfs://me@h/?fs=hdfs%3A%2F%2Fnn&kerberos=true",
     "login is '(not shown)'; accepted: nothing beside extra kerberos, which says who we are"),
    (WebHdfsConnection, f"webhdfs://:hunter2@h/{FS}",
     "password is '(not shown)'; accepted: nothing without a login"),
    (WebHdfsConnection, f"webhdfs://:hunter2@h/{FS}&token=s3cret",
     "password is '(not shown)';"
     " accepted: nothing beside extra token, which says who we are"),
    (WebHdfsConnection, f"webhdfs://:hunter2@h/{FS}&kerberos=true",
     "password is '(not shown)';"
     " accepted: nothing beside extra kerberos, which says who we are"),
    (SparkConnection, "spark://", f"host is missing; accepted: {MASTERS}"),
    (SparkConnection, '{"conn_type":"spark","host":"somewhere"}',
     f"host is 'somewhere'; accepted: {MASTERS}"),
    (SparkConnection, "yarn://yarn", "conn_type is 'yarn'; accepted: spark, or spark_connect"),
    (SparkConnection, "spark://h:7077?deploy-mode=cluster",
     "extra deploy-mode is 'cluster'; accepted: client (with master spark://h:7077)"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"deploy-mode":"x"}}',
     "extra deploy-mode is 'x'; accepted: client, cluster (with master yarn)"),
    (SparkConnection, "spark://h:7077?kafka-secrets=secrets.properties",
     "extra kafka-secrets is '(not shown)';"
     " accepted: an absolute path without colon, brace, space"),
    (SparkConnection, "spark://h:7077?deploymode=client",
     f"extra deploymode is '(not shown)'; accepted: nearest known: deploy-mode; only these:"
     f" {SPARK_EXTRAS}"),
    (SparkConnection, "spark://h:7077?queue=etl",
     "extra queue is '(not shown)';"
     " accepted: nothing with master spark://h:7077: it is for yarn alone"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"namespace":"etl"}}',
     "extra namespace is '(not shown)';"
     " accepted: nothing with master yarn: it is for k8s alone"),
    (SparkConnection, "spark://h:7077?spark-binary=%2Ftmp%2Fspark-submit",
     "extra spark-binary is '/tmp/spark-submit';"
     " accepted: on PATH: spark-submit, spark2-submit, spark3-submit"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"hadoop-conf-dir":"conf"}}',
     "extra hadoop-conf-dir is '(not shown)'; accepted: an absolute path"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":'
     '{"principal":"etl","keytab":"etl.keytab"}}',
     "extra keytab is '(not shown)'; accepted: an absolute path where spark-submit runs, or the"
     " keys themselves in base64"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"keytab":"/etc/k"}}',
     "extra principal is missing; accepted: principal and keytab, or neither"),
    (SparkConnection, '{"conn_type":"spark","host":"yarn","extra":{"principal":"etl"}}',
     "extra keytab is missing; accepted: principal and keytab, or neither"),
    (SparkConnection, '{"conn_type":"spark","host":"spark://h:1","extra":{"principal":"etl"}}',
     "extra principal is '(not shown)';"
     " accepted: nothing with master spark://h:1: it is for yarn, k8s, local alone"),
    (LedgerConnection, "postgres://h", "schema is missing; accepted: the database's name"),
    (LedgerConnection, "postgres://h/db?ssl_mode=require",
     f"extra ssl_mode is '(not shown)'; accepted: nearest known: sslmode; {LIBPQ}"),
    (LedgerConnection, "postgres://h/db?cursor=x",
     f"extra cursor is '(not shown)'; accepted: {LIBPQ}"),
    (LedgerConnection, "postgres://h%3Ax/db",
     "host is 'h:x'; accepted: host or host:port, more after commas"),
    (LedgerConnection, "mysql://h/db", "conn_type is 'mysql'; accepted: postgres"),
    (LedgerConnection, '{"conn_type":"postgres","extra":{"dsn":"mysql://u:hunter2@h/db"}}',
     "extra dsn is '(not shown)'; accepted: postgresql://login:password@host:port/name"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "words"), WRONG)
def test_a_wrong_part_is_named(kind: type, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        kind.of(parse_connection("c", text))
    assert caught.value.describe() == f"connection c: {words}."


def test_settings_of_consumers_in_a_shared_connection_are_named_and_change_nothing() -> None:
    text = "kafka://a:1/?group.id=theirs&auto.offset.reset=earliest&client.id=ours"
    found = KafkaConnection.of(parse_connection("c", text))

    assert found.unused == ("group.id", "auto.offset.reset")
    assert (
        found.properties
        == KafkaConnection.of(parse_connection("c", "kafka://a:1/?client.id=ours")).properties
    )


BOTH = ("https://nn1:9871", "https://nn2:9871")


def urls_of(host: str, **extra: object) -> tuple[str, ...]:
    extra = {"fs": "hdfs://nn", **extra}
    return WebHdfsConnection.of(Connection("c", "webhdfs", host, extra=extra)).urls


@pytest.mark.parametrize(
    ("host", "extra", "urls"),
    [
        ("https://nn1,https://nn2", {}, BOTH),
        (" https://nn1; HTTPS://nn2/", {}, BOTH),
        ("nn1,nn2", {"use_ssl": True}, BOTH),
        ("https://nn1,nn2", {"use_ssl": "true"}, BOTH),
        ("nn1,https://nn2:9871", {"use_ssl": True}, BOTH),
        ("http://nn1", {"use_ssl": False}, ("http://nn1:9870",)),
        ("nn1", {"use_ssl": ""}, ("http://nn1:9870",)),
        ("https://nn1", {"use_ssl": None}, ("https://nn1:9871",)),
    ],
)
def test_the_scheme_of_each_host_counts(
    host: str, extra: dict[str, object], urls: tuple[str, ...]
) -> None:
    assert urls_of(host, **extra) == urls


@pytest.mark.parametrize(
    ("host", "extra"),
    [
        ("nn1,https://nn2", {}),
        ("nn1;https://nn2", {}),
        ("https://nn1,nn2", {}),
        ("http://nn1,nn2,https://nn3", {}),
        ("http://nn1,https://nn2", {}),
        ("http://nn1,https://nn2", {"use_ssl": True}),
        ("https://nn1", {"use_ssl": False}),
        ("nn1,https://nn2", {"use_ssl": "false"}),
        ("http://nn1", {"use_ssl": True}),
        ("http://nn1,nn2", {"use_ssl": True}),
    ],
)
def test_schemes_that_contradict_each_other_are_refused(
    host: str, extra: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        urls_of(host, **extra)
    assert caught.value.describe() == (
        f"connection c: host is {host!r}; accepted: https:// or http:// before every host, or"
        " before none, as extra use_ssl has it."
    )


def test_a_password_in_a_host_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="hosts alone") as caught:
        urls_of("https://ada:s3cret@nn1")
    assert "s3cret" not in repr(caught.value)
