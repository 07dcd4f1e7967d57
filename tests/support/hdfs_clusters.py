"""Feeds that land in one of the sandbox's other HDFS by the command line, seen by its superuser."""

from __future__ import annotations

import http.client
import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pyarrow.parquet as pq

from sandbox.services.hdfs import Family, NameNode
from tallystick.settings.feed import Feed
from tests.support.busy import BUSY_SECONDS
from tests.support.kafka_producers import Message, produce
from tests.support.kafka_records import Record, records_in
from tests.support.kafka_topics import create_topic
from tests.support.landed_files import Landed
from tests.trouble.command import Command, Folder

# Of an answer to come: with it the client's patience begins anew.
_WAIT_ON: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True)
class HdfsView:
    """What lies in an HDFS, as its superuser sees it: never by the project's own reader."""

    family: Family
    name_node: Callable[[], NameNode]

    def statuses(self, path: str) -> list[dict[str, Any]]:
        """The entries of a directory; none where there is none."""
        answer = self._get(path, "LISTSTATUS")
        if answer.status_code == 404:
            return []
        found: list[dict[str, Any]] = answer.raise_for_status().json()["FileStatuses"]["FileStatus"]
        return found

    def below(self, path: str) -> Iterator[str]:
        """Every file below a directory, hidden ones too."""
        for each in self.statuses(path):
            inner = f"{path}/{each['pathSuffix']}"
            yield from [inner] if each["type"] == "FILE" else self.below(inner)

    def rows(self, root: str) -> list[Record]:
        """Every row of the tree that readers see, doubles included, sorted by place."""
        paths = [p for p in self.below(root) if p.endswith(".parquet") and "/_" not in p]
        files = [pq.ParquetFile(io.BytesIO(self._get(path, "OPEN").content)) for path in paths]
        rows = [row for each in files for row in Landed("", {}, each).records()]
        return sorted(rows, key=lambda each: (each.partition, each.offset))

    def texts(self, root: str = "") -> Iterator[str]:
        """What lies in every file below a directory."""
        for path in self.below(root):
            yield self._get(path, "OPEN").raise_for_status().content.decode("latin-1")

    def _get(self, path: str, op: str) -> Any:
        url = f"{self.name_node().web_url}/webhdfs/v1{path}"
        return self.family.send("GET", url, {"op": op})


@dataclass(frozen=True)
class HdfsWay:
    """One feed from its topic to a directory of its own."""

    folder: Folder
    environ: Mapping[str, str]
    view: HdfsView
    cluster: str
    top: str
    """The directory in which the feed's root lies."""
    name: str = field(default_factory=lambda: f"feed-{uuid4().hex[:8]}")

    @property
    def root(self) -> str:
        return f"{self.top}/{self.name}"

    @property
    def staging(self) -> str:
        return f"{self.root}/_staging"

    def produce(self, records: Iterable[Message], **target: Any) -> int:
        """Fill the topic, and write the feed's file; how many records there are."""
        sent, kafka = list(records), self.environ["KAFKA_BOOTSTRAP_SERVERS"]
        create_topic(kafka, self.name)
        produce(kafka, self.name, sent)
        content = {
            "feed": self.name,
            "source": {"topic": self.name},
            "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
            "target": {
                "root": self.root,
                "replication": 1,
                "connection": f"webhdfs_{self.cluster}",
                **target,
            },
            "spark": {"connection": f"spark_{self.cluster}"},
        }
        self.folder.write(Feed.model_validate(content))
        return len(sent)

    def command(self, verb: str, *rest: str, **environ: str) -> Command:
        """A command about the feed, started."""
        return Command(self.folder, {**self.environ, **environ}, verb, self.name, "--json", *rest)

    def lands(self, **environ: str) -> None:
        ended = self.command("land", **environ).ended()
        assert ended.code == 0, ended.out + ended.err[-4000:]

    def is_whole(self, count: int, level: int = 2, **environ: str) -> None:
        """Every record once, by pyarrow and by our own proof; nothing is left in staging."""
        kafka = self.environ["KAFKA_BOOTSTRAP_SERVERS"]
        assert self.view.rows(self.root) == records_in(kafka, self.name, {0: (0, count)})
        told = self.command("reconcile", "--level", str(level), **environ).ended()
        assert told.code == 0, told.out + told.err[-4000:]
        assert told.document["verdict"] == "PROVEN_OK"
        assert list(self.view.below(self.staging)) == []


@dataclass
class Interruption:
    """What happens at one request before a NameNode, and whether it was carried out before."""

    op: str
    part: str
    """A part of the path that the request asks for."""
    is_carried_out: bool
    action: Callable[[], None]
    happened: threading.Event = field(default_factory=threading.Event)
    done: Future[None] = field(default_factory=Future)
    """What the action came to."""

    def is_due(self, address: str) -> bool:
        """True for the first request that it is meant for."""
        parts = urlsplit(address)
        op = parse_qs(parts.query).get("op", [""])[0]
        is_meant = op == self.op and self.part in parts.path and "_probe" not in parts.path
        return is_meant and not self.happened.is_set()

    def act(self, still: Callable[[], object]) -> None:
        """Do it, and call `still` each second until it is done."""
        threading.Thread(target=self._act, daemon=True).start()
        while not wait([self.done], timeout=1).done:
            still()

    def over(self) -> None:
        """Return when the action that has begun is done; raise what it raised."""
        if self.happened.is_set():
            self.done.result(BUSY_SECONDS)

    def _act(self) -> None:
        try:
            self.action()
        except Exception as failure:  # noqa: BLE001 - raised where the test waits for it
            self.done.set_exception(failure)
        else:
            self.done.set_result(None)


@contextmanager
def interrupted(target: str, what: Interruption) -> Iterator[str]:
    """The URL of a pipe before a NameNode's web address; one request there gets no answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            try:
                if what.is_due(self.path):
                    what.happened.set()
                    if what.is_carried_out:
                        self._forwarded()
                    what.act(partial(self.wfile.write, _WAIT_ON))
                    self.close_connection = True
                    return
                self._answer(*self._forwarded())
            except (OSError, http.client.HTTPException):
                self.close_connection = True

        def _forwarded(self) -> tuple[http.client.HTTPResponse, bytes]:
            length = int(self.headers.get("Content-Length") or 0)
            link = http.client.HTTPConnection(urlsplit(target).netloc, timeout=30)
            link.request(self.command, self.path, body=self.rfile.read(length))
            answer = link.getresponse()
            body = answer.read()
            link.close()
            return answer, body

        def _answer(self, answer: http.client.HTTPResponse, body: bytes) -> None:
            self.send_response(answer.status)
            for key in ("Location", "Content-Type"):
                if answer.headers[key]:
                    self.send_header(key, answer.headers[key])
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_DELETE = do_POST = handle_one

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
        what.over()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
