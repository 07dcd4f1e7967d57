"""An HTTP server that answers as a test says: for what a real NameNode can't be made to do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Answer:
    """One scripted answer; see LOST and NEVER for those that never come."""

    status: int = 200
    body: bytes = b""
    location: str = ""
    """Where a redirect leads, without the path and the query that were asked for."""

    @classmethod
    def json(cls, document: object, status: int = 200) -> Answer:
        return cls(status, json.dumps(document).encode())

    @classmethod
    def remote(
        cls, exception: str, message: str = "in HDFS's words.\nat line 2", status: int = 403
    ) -> Answer:
        return cls.json(
            {"RemoteException": {"exception": exception, "javaClassName": "x", "message": message}},
            status,
        )


# A line that is no header comes before those that hold secrets, so all of them are unreadable.
GARBLED = Answer(status=-2)
# The request was taken, and the connection broke.
LOST = Answer(status=0)
# The request was taken, and the server froze.
NEVER = Answer(status=-1)


@dataclass
class ScriptedServer:
    """Gives its answers in order, the last one for ever, and keeps what it was asked."""

    url: str
    answers: list[Answer]
    asked: list[str] = field(default_factory=list)
    queries: list[dict[str, list[str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    """With names in small letters."""

    def next_answer(self, path: str) -> Answer:
        query = parse_qs(urlsplit(path).query)
        self.queries.append(query)
        self.asked.append(query["op"][0])
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def scripted_server(*answers: Answer) -> Iterator[ScriptedServer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            script.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = script.next_answer(self.path)
            if answer is NEVER:
                is_over.wait()
            if answer in (LOST, NEVER):
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if answer is GARBLED:
                self.wfile.write(_garbled(self.path))
                self.close_connection = True
                return
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.location:
                self.send_header("Set-Cookie", "hadoop.auth=s3cret-cookie; Path=/; HttpOnly")
                self.send_header("Location", f"{answer.location}{self.path}")
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_PUT = do_DELETE = handle_one

        def log_message(self, *_: object) -> None:
            pass

    is_over = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script = ScriptedServer(f"http://127.0.0.1:{server.server_port}", list(answers))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield script
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _garbled(path: str) -> bytes:
    secrets = (
        f'Location: http://dn{path}\r\nSet-Cookie: hadoop.auth="u=ada&s=s3cret-cookie"; Path=/'
    )
    body = b"{}"
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nthis is no header\r\n{secrets}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def silent_server() -> Iterator[str]:
    """The URL of a server that takes connections and then keeps silent, as a stopped process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def dead_url() -> str:
    """A URL that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"
