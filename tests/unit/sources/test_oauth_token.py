"""A token is fetched once and used until most of its life is over; a refusal is none to repeat."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from kafka import errors as kafka_errors
from typing_extensions import override

from sandbox.clusters.authority import Authority
from tallystick.sources import oauth_token
from tallystick.sources.broker_answers import AskAgain
from tallystick.sources.client_properties import client_properties
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.sources.oauth_token import ClientCredentials


class Endpoint(HTTPServer):
    """Answers one thing to everybody, and keeps what it was asked."""

    def __init__(self, status: int, document: object, headers: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.headers = headers
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
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving(status: int, document: object, **headers: str) -> Iterator[Endpoint]:
    endpoint = Endpoint(status, document, headers)
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
    [
        (302, {"access_token": "t"}),
        (401, {"error": "invalid_client"}),
        (200, {}),
        (200, ["t0ken"]),
        (404, "nothing here"),
    ],
)
def test_who_gets_no_token_is_refused(status: int, document: object) -> None:
    with (
        serving(status, document) as endpoint,
        pytest.raises(kafka_errors.SaslAuthenticationFailedError) as caught,
    ):
        endpoint.client().token()
    assert endpoint.url in str(caught.value)
    assert "pa55-word" not in str(caught.value)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_an_endpoint_in_trouble_is_asked_again_later(status: int) -> None:
    with (
        serving(status, {}) as endpoint,
        pytest.raises(kafka_errors.KafkaConnectionError, match=f"answers with HTTP {status}"),
    ):
        endpoint.client().token()


def test_an_endpoint_that_is_away_is_asked_again_later() -> None:
    client = ClientCredentials("http://127.0.0.1:1/token", "vera", "pa55-word", scope="", ca=None)
    with pytest.raises(kafka_errors.KafkaConnectionError, match="does not answer") as caught:
        client.token()
    assert "pa55-word" not in f"{caught.value} {client!r}"
    assert client.trouble.startswith("token endpoint http://127.0.0.1:1/token does not answer")


def test_client_and_secret_are_sent_in_utf_8() -> None:
    with serving(200, {"access_token": "t", "expires_in": 300}) as endpoint:
        ClientCredentials(endpoint.url, "vera", "pä55€", scope="", ca=None).token()
        told = (endpoint.asked[0][0] or "").removeprefix("Basic ")
        assert base64.b64decode(told).decode() == "vera:pä55€"


def test_no_redirection_is_followed() -> None:
    with (
        serving(200, {"access_token": "t"}) as other,
        serving(307, {}, Location=other.url) as endpoint,
        pytest.raises(kafka_errors.SaslAuthenticationFailedError, match="no token in HTTP 307"),
    ):
        endpoint.client().token()
    assert other.asked == []


HEAD = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def sending(first: bytes, again: bytes, pause: float) -> Iterator[str]:
    """An endpoint that sends something, and something again and again, until nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(first)
                while True:
                    connection.sendall(again)
                    time.sleep(pause)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/token"


@pytest.mark.parametrize(
    "first", [HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"X-Long: "], ids=["body", "head"]
)
def test_an_endpoint_that_drips_is_given_up_in_time(first: bytes) -> None:
    begun = time.monotonic()
    with (
        sending(first, b" ", 0.05) as url,
        pytest.raises(kafka_errors.KafkaConnectionError, match="no whole answer within 1 s"),
    ):
        ClientCredentials(url, "vera", "pa55-word", scope="", ca=None, seconds=0.6).token()
    assert time.monotonic() - begun < 5


def test_an_answer_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_token, "LARGEST_BYTES", 100_000)
    with (
        sending(HEAD + b"\r\n", b" " * 65536, 0) as url,
        pytest.raises(kafka_errors.KafkaConnectionError, match="more than 100000 bytes"),
    ):
        ClientCredentials(url, "vera", "pa55-word", scope="", ca=None, seconds=60).token()


def test_a_handshake_that_breaks_off_is_no_refusal() -> None:
    with (
        sending(b"no TLS at all", b"", 0) as url,
        pytest.raises(kafka_errors.KafkaConnectionError, match=r"does not answer \(SSLError\)"),
    ):
        ClientCredentials(f"https{url[4:]}", "vera", "pa55-word", scope="", ca=None).token()


def test_a_certificate_that_is_not_trusted_is_a_refusal(tmp_path: Path) -> None:
    own = Authority(tmp_path).identity("localhost")
    with serving(200, {}) as endpoint:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.certificate, own.key)
        endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
        url = endpoint.url.replace("http:", "https:")
        with pytest.raises(kafka_errors.SaslAuthenticationFailedError, match="is not trusted"):
            ClientCredentials(url, "vera", "pa55-word", scope="", ca=None).token()


def test_what_the_brokers_are_blamed_for_names_the_endpoint() -> None:
    known = client_properties(
        {
            "bootstrap.servers": "127.0.0.1:1",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.client.id": "vera",
            "sasl.oauthbearer.client.secret": "pa55-word",
            "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
        }
    )
    provider = known.kafka_python["sasl_oauth_token_provider"]
    assert isinstance(provider, ClientCredentials)
    with pytest.raises(kafka_errors.KafkaConnectionError):
        provider.token()
    connections = LeaderConnections(known, request_seconds=0.1)
    connections._client = _TimeIsOver()
    with pytest.raises(AskAgain) as caught:
        connections.send(0, None, lambda: 0.1)
    assert "token endpoint https://127.0.0.1:1/token does not answer" in str(caught.value.becomes)


class _TimeIsOver:
    """A client of kafka-python that still waits for a token."""

    def send(self, *_: object) -> None:
        raise kafka_errors.KafkaTimeoutError("no answer in time")

    def close(self) -> None:
        pass
