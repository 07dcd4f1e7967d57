"""Connections from Airflow's variables: both forms, round trips, and errors that keep secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from tallystick.errors import ConfigurationError, ConnectionMissing
from tallystick.settings.connections import (
    Connection,
    connection_in,
    connection_of,
    parse_connection,
)

PASSWORD = "hunter2"

PARSED = [
    ("JSON", '{"conn_type":"spark","host":"local[2,4]","extra":{"deploy-mode":"client"}}',
     Connection("c", "spark", host="local[2,4]", extra={"deploy-mode": "client"})),
    ("JSON with everything", json.dumps(
        {"conn_type": "postgresql", "host": "h", "port": "5432", "login": "u", "password": "p@/:%",
         "schema": "db", "extra": '{"sslmode": "require"}', "description": "the ledger"}),
     Connection("c", "postgres", "h", 5432, "u", SecretStr("p@/:%"), "db", {"sslmode": "require"})),
    ("JSON, empty parts", '{"conn_type":"kafka","host":"","port":"","login":null,"extra":""}',
     Connection("c", "kafka")),
    ("JSON, spaces around", ' \n{"conn_type":"kafka"} ', Connection("c", "kafka")),
    ("URI", "postgres://u:p%40%2F%3A%25@h:5432/db?sslmode=require",
     Connection("c", "postgres", "h", 5432, "u", SecretStr("p@/:%"), "db", {"sslmode": "require"})),
    ("URI of a spark master", "spark://local%5B2%5D", Connection("c", "spark", "local[2]")),
    ("URI of a standalone master", "spark://h:7077", Connection("c", "spark", "h", 7077)),
    ("URI with a scheme in the host", "webhdfs://https://h:9871",
     Connection("c", "webhdfs", "https://h", 9871)),
    ("URI with __extra__", "kafka://?__extra__=%7B%22a%22%3A+%7B%22b%22%3A+1%7D%7D",
     Connection("c", "kafka", extra={"a": {"b": 1}})),
    ("URI with extra alone", "kafka://?bootstrap.servers=a%3A1%2Cb%3A2",
     Connection("c", "kafka", extra={"bootstrap.servers": "a:1,b:2"})),
    ("URI with a dash in the type", "google-cloud-platform://",
     Connection("c", "google_cloud_platform")),
    ("URI with a socket directory", "postgres://u@%2Fvar%2FRun/db",
     Connection("c", "postgres", "/var/Run", login="u", schema="db")),
    ("URI with IPv6", "postgres://%5B%3A%3A1%5D:5432/db",
     Connection("c", "postgres", "[::1]", 5432, schema="db")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "meant"), [row[1:] for row in PARSED], ids=[row[0] for row in PARSED]
)
def test_both_forms_are_read(text: str, meant: Connection) -> None:
    assert parse_connection("c", text) == meant


WRONG = [
    ("no JSON", '{"conn_type": "kafka", "password": "hunter2"',
     "connection c: AIRFLOW_CONN_C is '(not shown)'; accepted: a JSON object, or a URI."),
    ("unknown key", '{"conn_type": "kafka", "pasword": "hunter2"}',
     "connection c: pasword is '(not shown)'; accepted: these keys only: conn_type, description,"
     " host, login, password, schema, port, extra."),
    ("no type", '{"host": "h"}',
     "connection c: conn_type is missing; accepted: a connection type such as kafka."),
    ("port of words", '{"conn_type": "kafka", "port": "http"}',
     "connection c: port is 'http'; accepted: a whole number from 1 to 65535."),
    ("port too high", '{"conn_type": "kafka", "port": 65536}',
     "connection c: port is 65536; accepted: a whole number from 1 to 65535."),
    ("password that is no text", '{"conn_type": "kafka", "password": 12345}',
     "connection c: password is '(not shown)'; accepted: a text."),
    ("extra that is a list", '{"conn_type": "kafka", "extra": ["hunter2"]}',
     "connection c: extra is '(not shown)'; accepted: a JSON object."),
    ("extra that is no JSON", '{"conn_type": "kafka", "extra": "hunter2"}',
     "connection c: extra is '(not shown)'; accepted: a JSON object."),
    ("no URI", "hunter2", "connection c: AIRFLOW_CONN_C is '(not shown)'; accepted:"
     " type://login:password@host:port/schema?key=value, every part percent-encoded."),
    ("URI, port of words", "postgres://u:hunter2@h:x/db",
     "connection c: AIRFLOW_CONN_C is '(not shown)'; accepted:"
     " type://login:password@host:port/schema?key=value, every part percent-encoded."),
    ("URI, password not encoded", "postgres://u:hunter2://x@h/db",
     "connection c: AIRFLOW_CONN_C is '(not shown)'; accepted:"
     " type://login:password@host:port/schema?key=value, every part percent-encoded."),
    ("URI, file system not encoded", "webhdfs://h/?fs=hdfs://nn:8020",
     "connection c: AIRFLOW_CONN_C is '(not shown)'; accepted:"
     " type://login:password@host:port/schema?key=value, every part percent-encoded."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_a_broken_variable_is_told_without_its_secrets(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_connection("c", text)
    assert caught.value.describe() == words
    assert PASSWORD not in repr(caught.value)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20)
HOSTS = st.sampled_from(["h", "h1:1,h2:2", "local[2,4]", "https://h", "/var/run", "a b%", "[::1]"])
EXTRAS = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(), st.booleans()), max_size=3)


def airflow_s_uri_of(made: Connection) -> str:
    """The connection as Airflow writes it."""
    login = quote(made.login or "", safe="")
    if made.password is not None:
        login += ":" + quote(made.password.get_secret_value(), safe="")
    protocol, _, host = (made.host or "").rpartition("://")
    address = (f"{login}@" if login else "") + quote(host, safe="")
    address += f":{made.port}" if made.port else ""
    protocol = f"{protocol}://" if protocol else ""
    path = quote(made.schema or "", safe="")
    query = "?" + urlencode({"__extra__": json.dumps(dict(made.extra))}) if made.extra else ""
    return f"{made.conn_type.replace('_', '-')}://{protocol}{address}/{path}{query}"


@given(
    host=st.none() | HOSTS,
    port=st.none() | st.integers(1, 65535),
    login=TEXTS,
    password=TEXTS,
    schema=TEXTS,
    extra=EXTRAS,
)
def test_a_connection_survives_airflow_s_uri(
    host: str | None,
    port: int | None,
    login: str,
    password: str,
    schema: str,
    extra: dict[str, object],
) -> None:
    made = connection_of(
        "c", conn_type="kafka", host=host, port=port, login=login, password=password,
        schema=schema, extra=extra,
    )  # fmt: skip
    assert parse_connection("c", airflow_s_uri_of(made)) == made


def test_no_secret_is_in_a_repr() -> None:
    made = connection_of(
        "c", conn_type="kafka", password=PASSWORD, extra={"sasl.password": PASSWORD}
    )
    assert PASSWORD not in f"{made!r}{made}"


def test_the_variable_is_named_for_the_id() -> None:
    environ = {"AIRFLOW_CONN_MY_KAFKA": "kafka://h:1"}
    assert connection_in(environ, "my_kafka").host == "h"


@pytest.mark.parametrize(
    ("conn_id", "looked_for"),
    [
        ("other", "AIRFLOW_CONN_OTHER"),
        ("kafka_default", "AIRFLOW_CONN_KAFKA_DEFAULT, or KAFKA_BOOTSTRAP_SERVERS"),
        ("webhdfs_default", "AIRFLOW_CONN_WEBHDFS_DEFAULT, or WEBHDFS_URL and HDFS_URL"),
        ("spark_default", "AIRFLOW_CONN_SPARK_DEFAULT, or SPARK_MASTER"),
        ("ledger_default", "AIRFLOW_CONN_LEDGER_DEFAULT, or LEDGER_DSN"),
    ],
)
def test_a_missing_connection_says_what_to_set(conn_id: str, looked_for: str) -> None:
    with pytest.raises(ConnectionMissing) as caught:
        connection_in({"WEBHDFS_URL": "http://h:9870", "AIRFLOW_CONN_OTHER": " "}, conn_id)
    assert caught.value.describe() == (
        f"connection {conn_id!r} does not exist; looked for: {looked_for}."
    )


def test_airflow_s_variable_speaks_before_the_sandbox_s() -> None:
    environ = {"AIRFLOW_CONN_KAFKA_DEFAULT": "kafka://a:1", "KAFKA_BOOTSTRAP_SERVERS": "b:2"}
    assert connection_in(environ, "kafka_default").host == "a"


AS_AIRFLOW_READS_IT = """
import json, sys
from airflow.sdk.definitions.connection import Connection
found = []
for text in json.loads(sys.argv[1]):
    read = Connection.from_json if text.strip().startswith("{") else Connection.from_uri
    c = read(text, conn_id="c")
    found.append([c.conn_type, c.host, c.port, c.login, c.password, c.schema,
                  json.loads(c.extra) if c.extra else None])
print(json.dumps(found))
"""


def test_airflow_reads_the_same_texts_the_same_way(tmp_path: Path) -> None:
    """Airflow's own classes are the witness; they lower the case of a plain host's name."""
    texts = [row[1] for row in PARSED if "IPv6" not in row[0]]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AS_AIRFLOW_READS_IT, json.dumps(texts)],
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    for text, theirs in zip(texts, json.loads(done.stdout.splitlines()[-1]), strict=True):
        ours = parse_connection("c", text)
        secret = ours.password.get_secret_value() if ours.password else None
        mine = [ours.conn_type, ours.host, ours.port, ours.login, secret, ours.schema]
        assert mine == [each or None for each in theirs[:-1]], text
        assert dict(ours.extra) == (theirs[-1] or {}), text
