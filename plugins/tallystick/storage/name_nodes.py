"""Asking the NameNodes of one file system: which of them answers, and what may be asked twice.

Each NameNode has a client of its own. The `hdfs` package's client for several sends a request to
the next one after a time-out, whatever the request; a rename that happened would then be answered
with "no such file".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from hdfs import HdfsError, InsecureClient, TokenClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from tallystick.errors import ConfigurationError, StorageRefused, StorageUnavailable
from tallystick.storage.refusals import COME_BACK, Refusal, was_sent, why_no_answer

CONNECT_SECONDS: Final = 3.0
ANSWER_SECONDS: Final = 8.0
# No try begins later than this after the first one: with one NameNode all is over in 16 seconds.
RETRY_SECONDS: Final = 5.0

# What is asked of one client of the `hdfs` package; the raw verbs with strict=False, so that a
# refusal comes back as a response, with its HTTP status.
Ask = Callable[[Any], requests.Response]


class NoAnswer(Exception):
    """Nobody carried the request out, or nobody said so.

    Made without its cause: the text of that one holds the URL, and a URL may hold a token.
    """

    def __init__(self, reason: str, *, may_have_happened: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.may_have_happened = may_have_happened


class NameNodes:
    """The NameNodes of one file system; the one that answered last is asked first."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        user: str | None,
        password: str | None,
        token: str | None,
        kerberos: bool,
        proxy_user: str | None,
        verify: bool | str,
        connect_seconds: float,
        answer_seconds: float,
        retry_seconds: float,
    ) -> None:
        # It tells each client that is made, by its address.
        logging.getLogger("hdfs").setLevel(logging.WARNING)
        self._retry_seconds = retry_seconds
        self._first = 0
        self._clients = []
        self._sessions: list[requests.Session] = []
        for url in _checked(urls):
            session = requests.Session()
            # No proxy, no .netrc: the cluster is addressed directly, with the given credentials.
            session.trust_env = False
            session.verify = verify
            if user and password:
                session.auth = (user, password)
            options = {
                "proxy": proxy_user,
                "timeout": (connect_seconds, answer_seconds),
                "session": session,
            }
            client = _client(url, user, token, kerberos, options)
            # The package normalises paths and expands '#LATEST' in them; ours are final.
            client.resolve = _as_it_is
            self._clients.append(client)
            self._sessions.append(session)

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        for session in self._sessions:
            session.close()

    def ask(self, path: str, action: Ask) -> requests.Response:
        """The answer to a request that may be made twice; raises our error for a refusal."""
        response = self.answer(path, action, once=False)
        if response.status_code >= 400:
            raise Refusal.of(response).error(path)
        return response

    def answer(self, path: str, action: Ask, *, once: bool) -> requests.Response:
        """The response, a refusal too; raises StorageUnavailable when there is none.

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

    def _round(self, path: str, action: Ask, *, once: bool) -> requests.Response:
        """The answer of the first NameNode that gives one; raises NoAnswer if none does."""
        last: NoAnswer | None = None
        for turn in range(len(self._clients)):
            place = (self._first + turn) % len(self._clients)
            try:
                response = _answer(path, action, self._clients[place])
            except NoAnswer as error:
                if once and error.may_have_happened:
                    raise
                last = error
            else:
                self._first = place
                return response
        raise last or NoAnswer("there is no NameNode to ask", may_have_happened=False)


def _answer(path: str, action: Ask, client: Any) -> requests.Response:
    """The response of this NameNode; raises NoAnswer where there is none, or "come back later"."""
    try:
        return action(client)
    except requests.RequestException as error:
        raise NoAnswer(why_no_answer(error), may_have_happened=was_sent(error)) from None
    except HdfsError as error:
        if error.exception in COME_BACK:
            refusal = Refusal(503, error.exception, str(error.message))
            raise NoAnswer(
                f"{refusal.exception}: {refusal.words}", may_have_happened=False
            ) from None
        raise StorageRefused(path, "HDFS does not accept this authentication") from error
    except KeyError as error:
        # The package looks for RemoteException in whatever JSON an error comes with.
        raise StorageRefused(path, "the answer is not WebHDFS's: is the URL right?") from error


def _client(
    url: str, user: str | None, token: str | None, kerberos: bool, options: dict[str, Any]
) -> Any:
    if token:
        return TokenClient(url, token, **options)
    if not kerberos:
        return InsecureClient(url, user=user, **options)
    try:
        from hdfs.ext.kerberos import KerberosClient
    except ImportError as error:
        raise ConfigurationError(
            "kerberos", True, "False, or True with the package hdfs[kerberos] installed"
        ) from error
    return KerberosClient(url, **options)


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


def _as_it_is(path: str) -> str:
    return path
