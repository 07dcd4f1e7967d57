"""What a test does to a real HDFS behind the store's back: quotas, rights, safe mode, pauses."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from sandbox import Sandbox
from sandbox.entry.jars import ensure_jars
from sandbox.service import java
from tests.support.frozen import wait_until_frozen

ANSWER_SECONDS = 10


class Superuser:
    """Speaks to the NameNode as the user who started it."""

    def __init__(self, sandbox: Sandbox, webhdfs_url: str, hdfs_url: str, user: str) -> None:
        self._sandbox = sandbox
        self._url = f"{webhdfs_url}/webhdfs/v1"
        self._hdfs_url = hdfs_url
        self._user = user

    def ask(self, method: str, path: str, **query: Any) -> requests.Response:
        """One request; fails unless it is granted."""
        answer = requests.request(
            method,
            self._url + quote(path),
            params={"user.name": self._user, **query},
            timeout=ANSWER_SECONDS,
            allow_redirects=False,
        )
        answer.raise_for_status()
        return answer

    def make(self, path: str, *, mode: str = "755") -> None:
        self.ask("PUT", path, op="MKDIRS")
        self.ask("PUT", path, op="SETPERMISSION", permission=mode)

    def limit_space(self, path: str, most_bytes: int) -> None:
        self.ask("PUT", path, op="SETQUOTA", storagespacequota=most_bytes)

    def limit_names(self, path: str, most: int) -> None:
        self.ask("PUT", path, op="SETQUOTA", namespacequota=most)

    @contextmanager
    def safe_mode(self) -> Iterator[None]:
        self._admin("-safemode", "enter")
        try:
            yield
        finally:
            self._admin("-safemode", "leave")

    @contextmanager
    def frozen_name_node(self) -> Iterator[None]:
        """The NameNode takes connections and does nothing, as in a long pause."""
        pid = self._sandbox.hdfs.namenode.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_until_frozen(pid)
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def open_file(self, path: str, content: bytes) -> Iterator[None]:
        """A file that somebody is still writing; these bytes have arrived."""
        place = urlsplit(self.ask("PUT", path, op="CREATE", overwrite="true").headers["location"])
        connection = http.client.HTTPConnection(str(place.hostname), place.port, ANSWER_SECONDS)
        try:
            connection.putrequest("PUT", f"{place.path}?{place.query}")
            connection.putheader("Content-Length", str(len(content) + 1))
            connection.endheaders()
            connection.send(content)
            self._await_file(path)
            yield
        finally:
            connection.close()

    def _await_file(self, path: str) -> None:
        """Return when the DataNode has opened the file."""
        parent, _, name = path.rpartition("/")
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            listed = self.ask("GET", parent, op="LISTSTATUS").json()["FileStatuses"]["FileStatus"]
            if name in {each["pathSuffix"] for each in listed}:
                return
            time.sleep(0.02)
        raise AssertionError(f"{path} was not opened within {ANSWER_SECONDS} s")

    def copy(self, source: str, target: str, setting: str) -> None:
        """`hdfs dfs -cp` with a setting of its own."""
        with TemporaryDirectory() as conf:
            # Without one the shell does not begin.
            Path(conf, "core-site.xml").write_text("<configuration/>")
            shell = "org.apache.hadoop.fs.FsShell"
            self._run(shell, "-D", setting, "-cp", source, target, conf=[Path(conf)])

    def _admin(self, *arguments: str) -> None:
        self._run("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def _run(self, main: str, *arguments: str, conf: Sequence[Path] = ()) -> None:
        run_hadoop(main, "-fs", self._hdfs_url, *arguments, conf=conf)


def run_hadoop(main: str, *arguments: str, conf: Sequence[Path] = ()) -> None:
    """Run one of Hadoop's own tools, with these folders of settings; fails unless it succeeds."""
    command = java(classpath=[*conf, ensure_jars("hdfs") / "*"], main=main, arguments=arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
