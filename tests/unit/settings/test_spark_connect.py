"""A connection to a Spark Connect server, by the rules of Airflow's provider."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import parse_connection
from tallystick.settings.spark_connection import SparkConnectConnection, session_url

SERVERS = [
    ("spark-connect://h:15002", "sc://h:15002"),
    ("spark_connect://h", "sc://h:15002"),
    ('{"conn_type":"spark_connect","host":"sc://h","port":7}', "sc://h:7"),
    ('{"conn_type":"spark_connect","host":"sc://h:9"}', "sc://h:9"),
]


@pytest.mark.parametrize(("text", "address"), SERVERS)
def test_addresses(text: str, address: str) -> None:
    assert SparkConnectConnection.of(parse_connection("c", text)).address == address


def test_the_session_s_url_has_the_user_the_token_and_the_encryption() -> None:
    text = "spark-connect://vera:x9q%3Bw@h:15002?use_ssl=true"
    found = SparkConnectConnection.of(parse_connection("c", text))

    place, _, parameters = session_url(found.url, "id").partition("/;")

    assert place == "sc://h:15002"
    assert dict(parse_qsl(parameters, separator=";")) == {
        "session_id": "id",
        "user_id": "vera",
        "token": "x9q;w",
        "use_ssl": "true",
    }
    assert urlsplit(found.address).password is None
    assert "x9q" not in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        # Airflow itself reads no host from a URI whose scheme has an underscore.
        *(text for text, _ in SERVERS if not text.startswith("spark_connect:")),
        "spark-connect://vera:x9q%3Bw@h:15002?use_ssl=true",
        "spark-connect://ada%40x:t%2Fk@h",
    ],
)
def test_airflow_s_provider_names_the_same_server(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_C", text)
    ours = SparkConnectConnection.of(parse_connection("c", text))

    theirs = SparkConnectHook("c").get_connection_url()

    assert parts(theirs) == parts(ours.url)


def parts(url: str) -> tuple[str | None, int, dict[str, str]]:
    """Host, port and parameters; PySpark takes 15002 where none is named."""
    place, _, told = url.partition("/;")
    found = urlsplit(place)
    return found.hostname, found.port or 15002, dict(parse_qsl(told.lower(), separator=";"))


def test_a_slash_in_a_token_is_no_path() -> None:
    found = SparkConnectConnection.of(parse_connection("c", "spark-connect://ada:t%2Fk@h"))

    url = session_url(found.url, "a")

    assert url == "sc://h:15002/;user_id=ada;token=t%2Fk;session_id=a"


def test_a_session_without_a_user_is_tallystick_s() -> None:
    assert session_url("sc://h:1/", "a") == "sc://h:1/;user_id=tallystick;session_id=a"
    assert session_url("sc://h:1/;user_id=vera", "a") == "sc://h:1/;user_id=vera;session_id=a"


WRONG = [
    ("spark://h:15002", "conn_type is 'spark'"),
    ("spark-connect://", "host is missing"),
    ('{"conn_type":"spark_connect","host":"sc://h:9/"}', "host is"),  # the provider refuses it, too
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
