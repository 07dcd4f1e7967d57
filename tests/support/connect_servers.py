"""Spark Connect servers, the test run's and others, and what happens to one in mid-work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.spark_connect import SparkConnect
from sandbox.state import State
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer

LONG = timedelta(minutes=5)


def server_at(url: str) -> ConnectServer:
    """The server at this address, asked as our user."""
    return ConnectServer(url, lambda sid: f"{url}/;session_id={sid};user_id=tallystick")


@dataclass
class Struck:
    """The server; something happens to it when a session is open and is about to work."""

    server: ConnectServer
    strike: Callable[[], object]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    @contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[SparkSession]:
        """The server's own, struck."""
        with self.server.session(*args, **kwargs) as spark:
            self.strike()
            yield spark

    def runner(self) -> ConnectRunner:
        """Works there."""
        return ConnectRunner(self, {}, LONG)  # type: ignore[arg-type]


class ColdServer(SparkConnect):
    """Does no first work, which some settings don't allow."""

    def provision(self) -> None:
        return


@contextmanager
def server_of_its_own(
    directory: Path,
    kind: Callable[..., SparkConnect] = ColdServer,
    master: str = "local[2]",
    **settings: str,
) -> Iterator[SparkConnect]:
    """A running server beside the test run's, gone after the block."""
    home = Home(directory, state := State(directory), Ports(state, {}))
    own = kind(home, master, settings=settings)
    try:
        own.start()
        yield own
    finally:
        own.kill()
