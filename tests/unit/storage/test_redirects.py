"""Where a NameNode's answer may lead, and what travels there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallystick.errors import StorageLoginFailed, StorageRefused
from tallystick.storage.name_nodes import NameNodes
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
