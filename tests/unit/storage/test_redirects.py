"""A request on its way: where it may be led, its ticket, and how its failure is told."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError, NameResolutionError, NewConnectionError, ProtocolError

from tallystick.errors import (
    FileMissing,
    ManifestMismatch,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.refusals import Refusal, was_sent, why_no_answer
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import Answer, ScriptedServer, scripted_server
from tests.support.tls_pipe import pipe_to, write_certificate

WRITTEN = Answer(201)
LOGINS: list[dict[str, object]] = [
    {"user": "ada", "password": "s3cret-password"},
    {"token": "s3cret-token"},
]
IDS = ["password", "token"]
Ask = Callable[[WebHdfsFileStore], object]
ASKED: list[Ask] = [
    lambda store: store.write("/a", b"s3cret-manifest"),
    lambda store: store.read("/a"),
    lambda store: store.status("/a"),
    lambda store: store.checksum("/a"),
    lambda store: store.rename_exclusive("/s", "/t/x"),
]


@dataclass
class Servers:
    """Servers with and without TLS, under one authority."""

    certificate: Path
    stack: ExitStack = field(default_factory=ExitStack)

    def clear(self, *answers: Answer) -> ScriptedServer:
        return self.stack.enter_context(scripted_server(*answers))

    def secured(self, *answers: Answer) -> tuple[str, ScriptedServer]:
        server = self.clear(*answers)
        port = urlsplit(server.url).port or 0
        pipe = self.stack.enter_context(pipe_to(port, self.certificate))
        return f"https://127.0.0.1:{pipe.port}", server

    def store(self, *urls: str, **login: object) -> WebHdfsFileStore:
        options = {"verify": str(self.certificate), "retry_seconds": 0.1, "where": "connection c"}
        return WebHdfsFileStore(NameNodes(urls, **{**options, **login}), "hdfs://nn")  # type: ignore[arg-type]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    found = Servers(write_certificate(tmp_path / "ca.pem", "localhost"))
    with found.stack:
        yield found


@pytest.mark.parametrize("login", LOGINS, ids=IDS)
@pytest.mark.parametrize("ask", ASKED, ids=["write", "read", "status", "checksum", "rename"])
def test_nothing_is_sent_in_clear_where_the_connection_says_https(
    servers: Servers, login: dict[str, object], ask: Ask
) -> None:
    data_node = servers.clear(Answer(200, b"tampered"))
    name_node, _ = servers.secured(Answer(307, location=data_node.url))
    with pytest.raises(StorageLoginFailed) as caught:
        ask(servers.store(name_node, **login))
    said = str(caught.value)
    assert f"leads to {data_node.url}" in said
    assert "dfs.http.policy" in said
    assert "(connection c)" in said
    assert not caught.value.retry
    assert "s3cret" not in said
    assert data_node.asked == []


def test_a_redirect_that_goes_back_to_clear_later_is_refused_too(servers: Servers) -> None:
    data_node = servers.clear(Answer(200, b"tampered"))
    gateway, _ = servers.secured(Answer(307, location=data_node.url))
    name_node, _ = servers.secured(Answer(307, location=gateway))
    with pytest.raises(StorageLoginFailed):
        servers.store(name_node, token="s3cret-token").read("/a")
    assert data_node.asked == []


def test_https_leads_to_https(servers: Servers) -> None:
    data_node, asked = servers.secured(WRITTEN, Answer(200, b"content"))
    name_node, _ = servers.secured(Answer(307, location=data_node))
    store = servers.store(name_node, user="ada")
    store.write("/a", b"content")
    assert store.read("/a") == b"content"
    assert asked.asked == ["CREATE", "OPEN"]


def test_clear_leads_to_clear_and_to_https(servers: Servers) -> None:
    for data_node in (servers.clear(WRITTEN).url, servers.secured(WRITTEN)[0]):
        name_node = servers.clear(Answer(307, location=data_node))
        servers.store(name_node.url, user="ada").write("/a", b"content")


@pytest.mark.parametrize("ask", ASKED[:2], ids=["write", "read"])
def test_a_password_stays_with_the_servers_that_the_connection_names(
    servers: Servers, ask: Ask
) -> None:
    stranger = servers.clear(WRITTEN)
    gateway = servers.clear(Answer(307, location=stranger.url))
    ask(servers.store(gateway.url, user="ada", password="s3cret"))
    assert "authorization" in gateway.headers[0]
    assert "authorization" not in stranger.headers[0]


def test_a_gateway_that_leads_to_itself_gets_the_password_again(servers: Servers) -> None:
    gateway = servers.clear(Answer(307), WRITTEN)
    gateway.answers[0] = Answer(307, location=gateway.url)
    servers.store(gateway.url, user="ada", password="s3cret").write("/a", b"content")
    assert [each["authorization"][:5] for each in gateway.headers] == ["Basic", "Basic"]


def test_a_second_gateway_of_the_connection_gets_the_password(servers: Servers) -> None:
    second = servers.clear(WRITTEN)
    is_active = Answer.json({"boolean": False})
    first = servers.clear(is_active, Answer(307, location=second.url))
    store = servers.store(first.url, second.url, user="ada", password="s3cret")
    store.write("/a", b"content")
    assert second.headers[0]["authorization"].startswith("Basic")


@pytest.mark.parametrize(
    ("login", "name"), [({"token": "s3cret"}, "delegation"), ({"user": "ada"}, "user.name")]
)
def test_a_data_node_is_told_who_asks_by_the_name_node_alone(
    servers: Servers, login: dict[str, object], name: str
) -> None:
    """A NameNode puts the token, or the user's name, into the URL that it leads to."""
    data_node = servers.clear(WRITTEN)
    name_node = servers.clear(Answer(307, location=data_node.url))
    servers.store(name_node.url, **login).write("/a", b"content")
    assert data_node.queries[0][name] == list(login.values())


def test_a_redirect_to_no_url_is_told(servers: Servers) -> None:
    name_node = servers.clear(Answer(307, location="http://[no-url"))
    store = servers.store(name_node.url, user="ada")
    for ask in ASKED[:2]:
        with pytest.raises(StorageRefused, match="not WebHDFS's"):
            ask(store)


URL = "http://ada:s3cret@dn-7:9864/webhdfs/v1/a?op=OPEN&delegation=s3cret"
REQUEST = requests.Request("GET", URL).prepare()
CONNECTION = HTTPConnection("dn-7", 9864)


def connection_error(reason: Exception) -> requests.ConnectionError:
    pool = HTTPConnectionPool("dn-7", 9864)
    return requests.ConnectionError(MaxRetryError(pool, URL, reason), request=REQUEST)


@pytest.mark.parametrize(
    ("error", "is_sent", "words"),
    [
        (
            connection_error(NameResolutionError("dn-7", CONNECTION, OSError())),  # type: ignore[arg-type]
            False,
            "the host name of dn-7:9864 is unknown here",
        ),
        (
            connection_error(NewConnectionError(CONNECTION, "refused")),
            False,
            "dn-7:9864 takes no connections",
        ),
        (
            requests.ConnectTimeout("...", request=REQUEST),
            False,
            "dn-7:9864 took no connection in time",
        ),
        (
            requests.exceptions.SSLError("...", request=REQUEST),
            True,
            "there is no TLS connection to dn-7:9864",
        ),
        (requests.ReadTimeout("...", request=REQUEST), True, "dn-7:9864 did not answer in time"),
        (
            requests.ConnectionError(ProtocolError("reset"), request=REQUEST),
            True,
            "the connection to dn-7:9864 broke",
        ),
        (
            requests.exceptions.ChunkedEncodingError("...", request=REQUEST),
            True,
            "the connection to dn-7:9864 broke",
        ),
        (requests.ConnectionError(), True, "the connection to the server broke"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_went_wrong_on_the_way(
    error: requests.RequestException, is_sent: bool, words: str
) -> None:
    assert (was_sent(error), why_no_answer(error)) == (is_sent, words)


@pytest.mark.parametrize(
    ("exception", "message", "error", "words"),
    [
        (
            "SafeModeException",
            "Cannot create directory /a. Name node is in safe mode.\nNamenodeHostName:nn-1",
            StorageUnavailable,
            "the NameNode is in safe mode: Cannot create directory /a. Name node is in safe mode.",
        ),
        (
            "FileNotFoundException",
            "Path is not a file: /a\n\tat org.apache.hadoop",
            StorageRefused,
            "it is a directory, not a file",
        ),
        ("FileNotFoundException", "File /a not found.", FileMissing, "/a does not exist."),
        (
            "IOException",
            "Fail to get checksum, since file /a is under construction.",
            ManifestMismatch,
            "still being written",
        ),
        (
            "IOException",
            "Rename destination /a/b is a directory or file under source /a",
            StorageRefused,
            "under source",
        ),
        (
            "IOException",
            "File /a could only be written to 0 of the 1 minReplication nodes.",
            StorageUnavailable,
            "no DataNode takes a block, so each one is full or down: File /a could only be written"
            " to 0 of the 1 minReplication nodes.",
        ),
        ("LeaseExpiredException", "", StorageUnavailable, "LeaseExpiredException"),
        ("InvalidPathException", "Invalid file name: /a", StorageRefused, "Invalid file name: /a"),
        ("NewerException", "what?", StorageUnavailable, "NewerException: what?"),
    ],
)
def test_what_hdfs_says_becomes_one_error(
    exception: str, message: str, error: type[Exception], words: str
) -> None:
    found = Refusal(403, exception, message).error("/a")
    assert type(found) is error
    assert words in str(found)
    assert "nn-1" not in str(found)
    assert "org.apache" not in str(found)


class Exchange:
    """As the library does it: a context is kept for the host, then makes its first step."""

    def __init__(self) -> None:
        self.context: dict[str, object] = {}

    def generate_request_header(self, _response: object, host: str, _early: bool) -> str:
        mine = f"{threading.get_ident()} {time.monotonic_ns()}"
        self.context[host] = mine
        time.sleep(0.01)  # the KDC is asked
        assert self.context[host] == mine
        return mine


@pytest.fixture
def negotiation(monkeypatch: pytest.MonkeyPatch) -> Any:
    library, errors, gssapi = (
        ModuleType(name) for name in ("requests_gssapi", "requests_gssapi.exceptions", "gssapi")
    )
    library.HTTPSPNEGOAuth = Exchange  # type: ignore[attr-defined]
    errors.SPNEGOExchangeError = type("E", (Exception,), {})  # type: ignore[attr-defined]
    gssapi.exceptions = SimpleNamespace(GSSError=type("G", (Exception,), {}))  # type: ignore[attr-defined]
    gssapi.Credentials = lambda **_: None  # type: ignore[attr-defined]
    gssapi.MechType = SimpleNamespace(kerberos=None)  # type: ignore[attr-defined]
    for module in (library, errors, gssapi):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    name = "tallystick.storage.negotiation"
    monkeypatch.delitem(sys.modules, name, raising=False)
    made = importlib.import_module(name).Negotiation(None, None)
    monkeypatch.delitem(sys.modules, name)
    return made


def test_threads_do_not_take_each_other_s_exchange(negotiation: Any) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(negotiation.generate_request_header, None, "nn") for _ in range(16)]
    assert len({each.result() for each in asked}) == 16
