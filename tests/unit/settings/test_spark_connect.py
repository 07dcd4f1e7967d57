"""A connection to a Spark Connect server, by the rules of Airflow's provider."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import parse_connection
from tallystick.settings.spark_connect import SparkConnectConnection

SERVERS = [
    ("spark-connect://h:15002", "sc://h:15002"),
    ("spark_connect://h", "sc://h:15002"),
    ('{"conn_type":"spark_connect","host":"sc://h","port":7}', "sc://h:7"),
    ('{"conn_type":"spark_connect","host":"sc://h:9/"}', "sc://h:9"),
]


@pytest.mark.parametrize(("text", "address"), SERVERS)
def test_addresses(text: str, address: str) -> None:
    assert SparkConnectConnection.of(parse_connection("c", text)).address == address


def test_the_session_s_url_has_the_user_the_token_and_the_encryption() -> None:
    text = "spark-connect://vera:x9q%3Bw@h:15002?use_ssl=true"
    found = SparkConnectConnection.of(parse_connection("c", text))

    place, _, parameters = found.url("id").partition("/;")

    assert place == "sc://h:15002"
    assert dict(parse_qsl(parameters, separator=";")) == {
        "session_id": "id",
        "user_id": "vera",
        "token": "x9q;w",
        "use_ssl": "true",
    }
    assert urlsplit(found.address).password is None
    assert "x9q" not in repr(found)


WRONG = [
    ("spark://h:15002", "conn_type is 'spark'"),
    ("spark-connect://", "host is missing"),
    ('{"conn_type":"spark_connect","host":"[::1]"}', "host is"),
    ("spark-connect://h?use_ssl=perhaps", "use_ssl is 'perhaps'"),
    ("spark-connect://h?deploy-mode=client", "extra deploy-mode"),
    ("spark-connect://h?kafka-secrets=here", r"kafka-secrets is '\(not shown\)'"),
    ("spark-connect://:t%C3%B6k@h", r"password is '\(not shown\)'; .* a token of ASCII"),
    ("spark-connect://:two%20words@h", r"password is '\(not shown\)'"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_wrong_is_named(text: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        SparkConnectConnection.of(parse_connection("c", text))
