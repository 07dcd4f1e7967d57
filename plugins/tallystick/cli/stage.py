"""What a command works with: the environment, the folder of feeds, and how adapters are opened.

Tests put another stage in its place. The adapters' libraries are imported when they are opened, so
that `feed check` and `--help` answer at once and need none of them.

A connection is found in the environment, else as `airflow connections get` finds it: in its secrets
backends, then in its own database. Airflow takes seconds: it is imported only where one is lacking.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import typer

from tallystick.domain.identities import FeedName, Owner
from tallystick.errors import ConnectionMissing, FeedUnknown
from tallystick.ledger.ledger import Ledger
from tallystick.settings.connections import Connection, connection_in, connection_like
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import feeds_folder, load_feed
from tallystick.workflows.services import Services


def _open_services(feed: Feed, environ: Mapping[str, str]) -> AbstractContextManager[Services]:
    from tallystick.wiring import adapters

    return adapters.open_services(feed, partial(find_connection, environ))


def _open_ledger(environ: Mapping[str, str]) -> AbstractContextManager[Ledger]:
    from tallystick.wiring import adapters

    return adapters.open_ledger(partial(find_connection, environ))


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that a command reaches the outside world by."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    services_of: Callable[[Feed, Mapping[str, str]], AbstractContextManager[Services]] = (
        _open_services
    )
    ledger_of: Callable[[Mapping[str, str]], AbstractContextManager[Ledger]] = _open_ledger

    @property
    def folder(self) -> Path:
        """The folder of feed files."""
        return feeds_folder(self.environ)

    def feed(self, name: str) -> Feed:
        """The feed of that name; raises ConfigurationError or FeedFileInvalid."""
        return load_feed(self.folder, name)

    def services(self, feed: Feed) -> AbstractContextManager[Services]:
        """All adapters of one feed."""
        return self.services_of(feed, self.environ)

    def ledger(self) -> AbstractContextManager[Ledger]:
        """The ledger alone: it answers also when Kafka and HDFS don't."""
        return self.ledger_of(self.environ)

    @contextmanager
    def ledger_of_feed(self, name: str) -> Iterator[tuple[Ledger, str]]:
        """The ledger, and the topic of a feed that has a file, or had one when it was landed.

        Raises FeedUnknown for a mistyped name, which is no empty answer.
        """
        topic, unknown = None, None
        try:
            topic = self.feed(name).source.topic
        except FeedUnknown as error:
            unknown = error
        with ExitStack() as stack:
            try:
                ledger = stack.enter_context(self.ledger())
            except ConnectionMissing as missing:  # nobody has landed anything here
                raise unknown or missing from None
            topic = topic or ledger.on_record(FeedName(name), "").topic
            if unknown and topic is None:
                raise unknown
            yield ledger, topic or ""

    def ledger_dsn(self) -> str:
        """Where the ledger is; holds a password."""
        from tallystick.wiring import adapters

        return adapters.ledger_dsn(partial(find_connection, self.environ))

    def secrets_file(self, feed: Feed) -> str:
        """What Spark's nodes need to reach the feed's Kafka; holds its password and keys."""
        from tallystick.wiring import adapters

        return adapters.secrets_file(feed, partial(find_connection, self.environ))

    def new_owner(self) -> Owner:
        """A name that no other process has: no other owner's batches are taken over by mistake."""
        return Owner(f"cli:{socket.gethostname()}:{os.getpid()}:{token_hex(4)}")


def stage_of(context: typer.Context) -> Stage:
    """The stage that the program was started with."""
    found = context.find_root().obj
    return found if isinstance(found, Stage) else Stage()


def find_connection(environ: Mapping[str, str], conn_id: str) -> Connection:
    """The connection of the environment, else of Airflow.

    Raises ConnectionMissing, which names every place that was asked and what kept it from an
    answer, or ConfigurationError for a broken one.
    """
    try:
        return connection_in(environ, conn_id)
    except ConnectionMissing as missing:
        places = missing.accepted
    if not has_airflow(environ):
        raise ConnectionMissing(
            conn_id, None, f"{places}; no Airflow was asked, because AIRFLOW_HOME is not set"
        )
    with airflow_kept_quiet():
        found = _airflow_connection(conn_id)
        if found is not None:
            return connection_like(conn_id, found)
        raise ConnectionMissing(conn_id, None, f"{places}; in Airflow, {_asked(conn_id)}")


def has_airflow(environ: Mapping[str, str]) -> bool:
    """True where somebody has set Airflow up: its import would make a home where there is none."""
    if any(name == "AIRFLOW_HOME" or name.startswith("AIRFLOW__") for name in environ):
        return True
    return "HOME" in environ and Path(environ["HOME"], "airflow", "airflow.cfg").exists()


@contextmanager
def home_for_airflow() -> Iterator[None]:
    """Gives Airflow's import a home that goes again, where nobody has set Airflow up."""
    if has_airflow(os.environ):
        yield
        return
    with TemporaryDirectory() as home:
        os.environ["AIRFLOW_HOME"] = home
        try:
            yield
        finally:
            del os.environ["AIRFLOW_HOME"]


def _airflow_connection(conn_id: str) -> Any:
    from airflow.exceptions import AirflowException
    from airflow.models import Connection as AirflowConnection

    try:
        return AirflowConnection.get_connection_from_secrets(conn_id)
    except AirflowException:  # not found, or a backend that allows nobody to look further
        return None


def _asked(conn_id: str) -> str:
    """Each backend that Airflow asks, and why it could not answer: Airflow itself hides that."""
    from airflow.configuration import ensure_secrets_loaded

    places = []
    for each in ensure_secrets_loaded():
        name = type(each).__name__
        try:
            found = each.get_connection(conn_id=conn_id)
            if found is not None:
                found.get_uri()  # reads the password
        except Exception as error:  # noqa: BLE001  a plugin of anybody's, asked for its reason
            reason = str(error).partition("\n")[0] or "it was stored under another Fernet key"
            name += f" ({type(error).__name__}: {reason})"
        places.append(name)
    return ", ".join(places)


@contextlib.contextmanager
def airflow_kept_quiet() -> Iterator[None]:
    """Keeps standard output and the logs as they were: Airflow's import takes both over.

    A PostgreSQL of Airflow's that is silent is asked no longer than ours, instead of for ever.
    """
    os.environ.setdefault("PGCONNECT_TIMEOUT", "10")
    root = logging.getLogger()
    handlers, level, disabled = [*root.handlers], root.level, root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
