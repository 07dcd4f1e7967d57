"""The command line in a process of its own, as a person or a program starts it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tallystick.settings.feed import Feed
from tallystick.spark.parent_death import dying_with_parent
from tests.support.repository import ROOT

# Only what hangs takes as long: a busy machine may be many times slower than a quiet one.
BOUND_SECONDS = 280


class Folder:
    """A folder of feed files."""

    def __init__(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        self.path = path

    def write(self, feed: Feed) -> None:
        (self.path / f"{feed.name}.yaml").write_text(
            yaml.safe_dump(feed.model_dump(mode="json", exclude_unset=True))
        )


class Command:
    """One command, running; `ended` waits for it."""

    def __init__(self, folder: Folder, environ: Mapping[str, str], *arguments: str) -> None:
        self._process = subprocess.Popen(
            # A test that fails leaves no landing behind.
            dying_with_parent([sys.executable, "-P", "-m", "tallystick", *arguments]),
            env={
                **os.environ,
                "TALLYSTICK_FEEDS": str(folder.path),
                "PYTHONPATH": str(ROOT / "plugins"),
                **environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.out, self.err, self.code = "", "", -1

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def ended(self) -> Command:
        """Itself, with everything that it said."""
        self.out, self.err = self._process.communicate(timeout=BOUND_SECONDS)
        self.code = self._process.returncode
        return self

    def kill(self) -> None:
        if self.is_running:
            self._process.kill()
            self._process.communicate()

    @property
    def document(self) -> dict[str, Any]:
        """Standard output, which is one JSON document and nothing else."""
        found: dict[str, Any] = json.loads(self.out)
        return found


@contextmanager
def dead_port() -> Iterator[int]:
    """A port that is taken, and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
