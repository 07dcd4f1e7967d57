"""The NameNodes of one file system: which of them is asked, how often, and what is believed.

1. Fail-over. A client with several URLs sends a request to the next NameNode after a time-out,
   whatever the request; a rename that happened would then be answered with "no such file". So each
   NameNode has a client of its own, and what may be asked twice is decided here.
2. Trust. A certificate or a ticket that is not accepted won't be the next time: it is a refusal.
   So is an answer that leads out of https.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

import requests
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from tallystick.errors import (
    ConfigurationError,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.storage.name_node import NameNode, client_of, negotiation_by
from tallystick.storage.quiet_logs import keep_secrets_from_logs
from tallystick.storage.refusals import (
    LeadsToClear,
    NoTicket,
    Refusal,
    was_sent,
    why_no_answer,
    why_no_trust,
)
from tallystick.storage.session import Session

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 8.0
# No try begins later than this after the first one: with one NameNode all is over in 16 seconds.
RETRY_SECONDS: Final = 5.0

T = TypeVar("T")


class NoAnswer(Exception):
    """Nobody carried the request out, or nobody said so.

    Made without its cause: the text of that one holds the URL, and a URL may hold a token.
    """

    def __init__(self, reason: str, *, may_have_happened: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.may_have_happened = may_have_happened


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
        self._nodes: list[NameNode] = []
        timeout = (connect_seconds, answer_seconds)
        by = f" ({where})" if where else ""
        files = {"verify": verify, "keytab": keytab}
        files |= dict(zip(("cert", "key"), cert or (), strict=False))
        _require_files(files, where)
        for url in _checked(urls):
            session = Session(urls, by)
            session.verify = verify
            session.cert = cert
            if kerberos:
                session.auth = negotiation_by(principal, keytab, where)
            if user and password:
                session.auth = (user, password)
            options = {"proxy": proxy_user, "timeout": timeout, "session": session}
            client = client_of(url, user, token, kerberos, options)
            self._nodes.append(NameNode(client, session, timeout, proxy_user, by))

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for each in self._nodes:
            each.session.close()

    def ask(self, path: str, action: Ask[T]) -> T:
        """The answer to a request that may be made twice; raises our error for a refusal."""
        try:
            return self.answer(path, action, once=False)
        except Refusal as refusal:
            raise refusal.error(path) from None

    def answer(self, path: str, action: Ask[T], *, once: bool) -> T:
        """The answer; raises Refusal, and StorageUnavailable when there is none.

        What must be carried out once at most isn't asked again after it may have been: NoAnswer.
        """
        tries = Retrying(
            retry=retry_if_exception(
                lambda error: isinstance(error, NoAnswer) and not (once and error.may_have_happened)
            ),
            stop=stop_after_delay(self._retry_seconds),
            wait=wait_random_exponential(multiplier=0.2, max=2.0),
            reraise=True,
        )
        try:
            return tries(self._round, path, action, once=once)
        except NoAnswer as error:
            if once and error.may_have_happened:
                raise
            raise StorageUnavailable(path, error.reason) from error

    def _round(self, path: str, action: Ask[T], *, once: bool) -> T:
        """What the first NameNode says that answers; raises NoAnswer if none does."""
        last: NoAnswer | None = None
        for turn in range(len(self._nodes)):
            place = (self._first + turn) % len(self._nodes)
            try:
                found = _answer(path, action, self._nodes[place])
            except NoAnswer as error:
                if once and error.may_have_happened:
                    raise
                last = error
                continue
            except Refusal:
                self._first = place
                raise
            self._first = place
            return found
        raise last or NoAnswer("there is no NameNode to ask", may_have_happened=False)


def _answer(path: str, action: Ask[T], node: NameNode) -> T:
    """What this NameNode says; raises NoAnswer where it says nothing, or "come back later"."""
    try:
        return action(node)
    except Refusal as refusal:
        if not refusal.is_come_back:
            raise
        reason = f"{refusal.exception}: {refusal.words}{node.by}"
        raise NoAnswer(reason, may_have_happened=False) from None
    except (ValueError, KeyError, TypeError) as error:
        # A success in which the package looks in vain for what WebHDFS answers, or a redirect to
        # what is no URL.
        reason = f"the answer is not WebHDFS's: is the URL right?{node.by}"
        raise StorageRefused(path, reason) from error
    except NoTicket as error:
        # The server has refused the request without a ticket, and got no other.
        reason = f"Kerberos gives no ticket for the server: {error.reason}{node.by}"
        if error.may_pass:
            raise NoAnswer(reason, may_have_happened=False) from None
        raise StorageLoginFailed(path, reason) from None
    except LeadsToClear as error:
        # Such a step is never taken: nothing was done there, and nothing was told.
        raise StorageLoginFailed(path, f"{error.reason}{node.by}") from None
    except requests.RequestException as error:
        distrust = why_no_trust(error)
        if distrust:
            reason = f"{distrust}; its authority must be in {_authorities(node)}{node.by}"
            raise StorageLoginFailed(path, reason) from None
        reason = why_no_answer(error) + node.by
        raise NoAnswer(reason, may_have_happened=was_sent(error)) from None


def _authorities(node: NameNode) -> str:
    """Where the session looks for who signs certificates."""
    verify = node.session.verify
    return str(verify) if isinstance(verify, str) else "the PEM file that extra verify names"


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
