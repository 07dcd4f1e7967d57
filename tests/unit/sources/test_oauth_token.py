"""A token is fetched once and used until most of its life is over; a refusal is none to repeat."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from kafka import errors as kafka_errors
from typing_extensions import override

from tallystick.sources.oauth_token import ClientCredentials


class Endpoint(HTTPServer):
    """Answers one thing to everybody, and keeps what it was asked."""

    def __init__(self, status: int, document: object) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.status, self.body = status, json.dumps(document).encode()
        self.asked: list[tuple[str | None, bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/token"

    def client(self) -> ClientCredentials:
        return ClientCredentials(self.url, "vera", "pa55-word", scope="kafka", ca=None)


class _Answers(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.headers.get("Authorization"), body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(status: int, document: object) -> Iterator[Endpoint]:
    endpoint = Endpoint(status, document)
    thread = threading.Thread(target=endpoint.serve_forever)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()


def test_a_token_is_asked_for_once() -> None:
    with serving(200, {"access_token": "t0ken", "expires_in": 300}) as endpoint:
        client = endpoint.client()
        assert (client.token(), client.token()) == ("t0ken", "t0ken")
        assert endpoint.asked == [
            ("Basic dmVyYTpwYTU1LXdvcmQ=", b"grant_type=client_credentials&scope=kafka")
        ]


def test_a_token_that_is_over_is_asked_for_anew() -> None:
    with serving(200, {"access_token": "t0ken", "expires_in": 0}) as endpoint:
        client = endpoint.client()
        assert (client.token(), client.token()) == ("t0ken", "t0ken")
        assert len(endpoint.asked) == 2


@pytest.mark.parametrize(
    ("status", "document"),
    [(401, {"error": "invalid_client"}), (200, {}), (200, ["t0ken"]), (404, "nothing here")],
)
def test_who_gets_no_token_is_refused(status: int, document: object) -> None:
    with (
        serving(status, document) as endpoint,
        pytest.raises(kafka_errors.SaslAuthenticationFailedError) as caught,
    ):
        endpoint.client().token()
    assert endpoint.url in str(caught.value)
    assert "pa55-word" not in str(caught.value)


def test_an_endpoint_in_trouble_is_asked_again_later() -> None:
    with (
        serving(503, {}) as endpoint,
        pytest.raises(kafka_errors.KafkaConnectionError, match="answers with HTTP 503"),
    ):
        endpoint.client().token()


def test_an_endpoint_that_is_away_is_asked_again_later() -> None:
    client = ClientCredentials("http://127.0.0.1:1/token", "vera", "pa55-word", scope="", ca=None)
    with pytest.raises(kafka_errors.KafkaConnectionError, match="does not answer") as caught:
        client.token()
    assert "pa55-word" not in f"{caught.value} {client!r}"
