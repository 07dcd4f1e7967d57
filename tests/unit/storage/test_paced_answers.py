"""A server that drips bytes is no server that answers; one that brings much may take its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallystick.errors import StorageUnavailable
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.paced_answers import PIECE_BYTES
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import Answer, scripted_server
from tests.support.tls_pipe import pipe_to, write_certificate

SECONDS = 0.4
Part = tuple[bytes, float]
# Another request is waited for.
NEXT: Part = (b"next", 0.0)


@contextmanager
def slow_server(parts: list[Part]) -> Iterator[str]:
    """Sends each part and pauses, until its client has gone."""
    is_over = threading.Event()

    def serve() -> None:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            client.recv(1 << 16)
            for content, pause in parts:
                try:
                    if content is NEXT[0]:
                        client.recv(1 << 16)
                    else:
                        client.sendall(content)
                except OSError:
                    return
                if is_over.wait(pause):
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            is_over.set()
            listener.close()
            thread.join(5)


def head(length: int) -> Part:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length, 0.0


def drops(count: int) -> list[Part]:
    return [(b"x", SECONDS / 8)] * count


def store_at(url: str, **options: object) -> WebHdfsFileStore:
    patience = {"user": "ada", "answer_seconds": SECONDS, "retry_seconds": 0.0, **options}
    return WebHdfsFileStore(NameNodes([url], **patience), "hdfs://nn")  # type: ignore[arg-type]


Ask = Callable[[WebHdfsFileStore], object]
DRIPPING: dict[str, tuple[list[Part], Ask]] = {
    "head": ([(b"HTTP/1.1 200 OK\r\nX: ", 0.0), *drops(80)], lambda store: store.status("/a")),
    "json": ([head(100), *drops(80)], lambda store: store.status("/a")),
    "content": ([head(100), *drops(80)], lambda store: store.read("/a")),
    "the last bytes of much": (
        [head(PIECE_BYTES * 8 + 100), (b"x" * PIECE_BYTES * 8, 0.0), *drops(80)],
        lambda store: store.read_range("/a", 0, PIECE_BYTES * 8 + 100),
    ),
}


@pytest.mark.parametrize(("parts", "ask"), DRIPPING.values(), ids=DRIPPING.keys())
def test_a_dripping_answer_ends_in_the_time_of_an_answer(parts: list[Part], ask: Ask) -> None:
    with slow_server(parts) as url:
        began = time.monotonic()
        with pytest.raises(StorageUnavailable) as caught:
            ask(store_at(url))
        assert time.monotonic() - began < 4 * SECONDS
    assert f"{urlsplit(url).netloc} did not answer in time" in str(caught.value)


def test_a_dripping_answer_by_tls_ends_as_well(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "ca.pem", "localhost")
    parts = [head(100), *drops(80)]
    with slow_server(parts) as url, pipe_to(urlsplit(url).port or 0, certificate) as pipe:
        began = time.monotonic()
        with pytest.raises(StorageUnavailable, match="did not answer in time"):
            store_at(f"https://127.0.0.1:{pipe.port}", verify=str(certificate)).read("/a")
        assert time.monotonic() - began < 4 * SECONDS


def test_much_content_may_take_longer_than_one_answer() -> None:
    pieces = [(b"x" * PIECE_BYTES, SECONDS / 4)] * 8
    with slow_server([head(8 * PIECE_BYTES), *pieces]) as url:
        began = time.monotonic()
        assert len(store_at(url).read("/a")) == 8 * PIECE_BYTES
        assert time.monotonic() - began > SECONDS


def test_a_connection_that_is_used_again_has_its_whole_time() -> None:
    answer = head(1)[0] + b"x"
    wait = (b"", SECONDS * 0.7)
    with slow_server([wait, (answer, 0.0), NEXT, wait, (answer, 0.0)]) as url:
        store = store_at(url)
        assert store.read("/a") + store.read("/b") == b"xx"


def test_a_redirect_without_end_is_left_soon() -> None:
    with scripted_server(Answer(307)) as server:
        server.answers[0] = Answer(307, location=server.url)
        with pytest.raises(StorageUnavailable):
            store_at(server.url).status("/a")
    assert len(server.asked) <= 5
