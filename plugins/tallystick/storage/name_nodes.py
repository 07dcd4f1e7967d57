"""The NameNodes of one file system: which of them is asked, how often, and what is believed.

1. Fail-over. A client with several URLs sends a request to the next NameNode after a time-out,
   whatever the request; a rename that happened would then be answered with "no such file". So each
   NameNode has a client of its own, and what may be asked twice is decided here.
2. Observers. Of several NameNodes one may lag and answer all the same. So the first request to one
   that did not answer last is a write, which an active one alone takes.
3. Answers that are none. Another NameNode may be the active one, whatever the first one says that
   is not WebHDFS's. Which of all is told in the end: no_answer.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from tallystick.errors import ConfigurationError, StorageError
from tallystick.storage.name_node import NameNode, client_of, negotiation_by
from tallystick.storage.no_answer import NoAnswer, answer_of
from tallystick.storage.refusals import Refusal
from tallystick.storage.session import Session, keep_secrets_from_logs

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 8.0
# No try begins later than this after the first one: with one NameNode all is over in 16 seconds.
RETRY_SECONDS: Final = 5.0

T = TypeVar("T")


Ask = Callable[[NameNode], T]


class NameNodes:
    """The NameNodes of one file system; the one that answered last is asked first."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        kerberos: bool = False,
        principal: str | None = None,
        keytab: str | None = None,
        proxy_user: str | None = None,
        verify: bool | str = True,
        cert: tuple[str, str] | None = None,
        where: str = "",
        connect_seconds: float = CONNECT_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """`urls`: one per NameNode. A token beats Kerberos, and both beat the plain user name.

        Kerberos without principal and keytab takes the process's ticket cache. `where`: what errors
        call all this, as "connection webhdfs_default". Raises ConfigurationError for a file that
        isn't there, and for Kerberos without its library.
        """
        keep_secrets_from_logs()
        self._retry_seconds = retry_seconds
        self._first = 0
        self._active: int | None = None
        """The one that is known to be no observer."""
        self._nodes: list[NameNode] = []
        timeout = (connect_seconds, answer_seconds)
        servers = ", ".join(urlsplit(url).netloc for url in _checked(urls))
        self._service = f"HDFS at {servers}" + (f" ({where})" if where else "")
        files = {"verify": verify, "keytab": keytab}
        files |= dict(zip(("cert", "key"), cert or (), strict=False))
        _require_files(files, where)
        for url in urls:
            session = Session(urls)
            session.verify = verify
            session.cert = cert
            if kerberos:
                session.auth = negotiation_by(principal, keytab, where)
            if user and password:
                session.auth = (user, password)
            options = {"proxy": proxy_user, "timeout": timeout, "session": session}
            client = client_of(url, user, token, kerberos, options)
            self._nodes.append(NameNode(client, session, timeout, proxy_user))

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for each in self._nodes:
            each.session.close()

    def ask(self, path: str, action: Ask[T]) -> T:
        """The answer to a request that may be made twice; raises our error for a refusal."""
        try:
            return self.answer(path, action, once=False)
        except Refusal as refusal:
            raise self.named(refusal.error(path)) from None

    def answer(self, path: str, action: Ask[T], *, once: bool) -> T:
        """The answer; raises Refusal, and one of our errors when there is none.

        What must be carried out once at most isn't asked again after it may have been: NoAnswer.
        """
        tries = Retrying(
            retry=retry_if_exception(
                lambda error: (
                    isinstance(error, NoAnswer)
                    and not error.is_final
                    and not (once and error.may_have_happened)
                )
            ),
            stop=stop_after_delay(self._retry_seconds),
            wait=wait_random_exponential(multiplier=0.2, max=2.0),
            reraise=True,
        )
        try:
            return tries(self._round, action, once=once)
        except NoAnswer as error:
            if once and error.may_have_happened:
                raise
            raise self.named(error.error(path)) from error

    def named(self, error: StorageError) -> StorageError:
        """The error, which says from now on who was asked."""
        error.service = self._service
        return error

    def _round(self, action: Ask[T], *, once: bool) -> T:
        """Returns what the first NameNode says that answers; raises NoAnswer if none does.

        One that isn't WebHDFS, or isn't trusted, must not hide another one, which may be active.
        """
        found: list[NoAnswer] = []
        first = self._first
        for turn in range(len(self._nodes)):
            place = (first + turn) % len(self._nodes)
            try:
                self._require_active(place)
                self._first = place
                return answer_of(self._nodes[place], action, once=once)
            except NoAnswer as error:
                self._active = None
                if once and error.may_have_happened:
                    raise
                found.append(error)
        raise NoAnswer.of(found)

    def _require_active(self, place: int) -> None:
        """Return if this one is active, or there is no other; raises NoAnswer."""
        if self._active != place and len(self._nodes) > 1:
            try:
                answer_of(self._nodes[place], NameNode.write_nothing, once=False)
            except NoAnswer as error:
                raise error.before() from None
            except Refusal as refusal:
                if refusal.is_login:
                    raise
                # Else it may not, or it will not: one that lags says something else.
            self._active = place


def _require_files(files: Mapping[str, object], where: str) -> None:
    """Return if each of these paths is a file that may be read here."""
    for key, path in files.items():
        if isinstance(path, str) and not os.access(path, os.R_OK):
            accepted = "the path of a file that is there, and that this user may read"
            raise ConfigurationError(f"extra {key}", path, accepted, where=where)


def _checked(urls: Sequence[str]) -> Sequence[str]:
    """The URLs, if each names a server and no password; raises ConfigurationError."""
    accepted = "http://host:port or https://host:port, one for each NameNode, without credentials"
    if not urls:
        raise ConfigurationError("WebHDFS URLs", [], accepted)
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            shown = url.rpartition("@")[2]
            raise ConfigurationError("WebHDFS URL", shown, accepted)
    return urls
