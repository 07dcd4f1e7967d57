"""A command works with the environment, the folder of feeds, and a way to open adapters.

Tests put another stage in its place. The adapters' libraries are imported when they are opened, so
that `feed check` and `--help` answer at once and need none of them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex

import typer

from tallystick.cli.connections import find_connection
from tallystick.domain.identities import FeedName, Owner
from tallystick.errors import ConnectionMissing, FeedUnknown
from tallystick.ports.ledger import Ledger
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import feeds_folder, load_feed
from tallystick.workflows.services import Services


def _open_services(feed: Feed, environ: Mapping[str, str]) -> AbstractContextManager[Services]:
    from tallystick import wiring

    return wiring.open_services(feed, partial(find_connection, environ))


def _open_ledger(environ: Mapping[str, str]) -> AbstractContextManager[Ledger]:
    from tallystick import wiring

    return wiring.open_ledger(partial(find_connection, environ))


def _ledger_dsn(environ: Mapping[str, str]) -> str:
    from tallystick import wiring

    return wiring.ledger_dsn(partial(find_connection, environ))


def _secrets_file(feed: Feed, environ: Mapping[str, str]) -> str:
    from tallystick import wiring

    return wiring.secrets_file(feed, partial(find_connection, environ))


def _new_owner() -> Owner:
    """A name that no other process has: another owner's batches are never taken over by mistake."""
    return Owner(f"cli:{socket.gethostname()}:{os.getpid()}:{token_hex(4)}")


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that a command reaches the outside world by."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    services_of: Callable[[Feed, Mapping[str, str]], AbstractContextManager[Services]] = (
        _open_services
    )
    ledger_of: Callable[[Mapping[str, str]], AbstractContextManager[Ledger]] = _open_ledger
    dsn_of: Callable[[Mapping[str, str]], str] = _ledger_dsn
    secrets_of: Callable[[Feed, Mapping[str, str]], str] = _secrets_file
    new_owner: Callable[[], Owner] = _new_owner

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
        """Returns the ledger's address, which holds a password."""
        return self.dsn_of(self.environ)


def stage_of(context: typer.Context) -> Stage:
    """The stage that the program was started with."""
    found = context.find_root().obj
    return found if isinstance(found, Stage) else Stage()
