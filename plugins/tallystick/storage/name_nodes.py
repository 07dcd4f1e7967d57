"""What the public clients of the `hdfs` package leave open; all else is asked by their own verbs.

1. Fail-over. A client with several URLs sends a request to the next NameNode after a time-out,
   whatever the request; a rename that happened would then be answered with "no such file". So each
   NameNode has a client of its own, and what may be asked twice is decided here.
2. Refusals. The package's error has no HTTP status, and the package fails on an error that is not
   WebHDFS's. The session below a client raises `Refusal` before the client sees the answer.
3. The exclusive rename. `rename` nests into a directory that is there, and says that all went well.
   It can't be told `renameoptions=NONE`: one NameNode transaction, which refuses such a target.
4. Paths. Clients normalise them and expand '#LATEST' in them; ours are final.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import requests
from hdfs import InsecureClient, TokenClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from tallystick.errors import ConfigurationError, StorageRefused, StorageUnavailable
from tallystick.storage.refusals import Refusal, was_sent, why_no_answer

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


@dataclass(frozen=True, slots=True)
class NameNode:
    """One NameNode, asked with the credentials that its client has put into the session."""

    hdfs: Any
    """A client of the package, for its public verbs."""
    session: requests.Session
    timeout: tuple[float, float]
    proxy_user: str | None

    def rename_exclusive(self, source: str, target: str) -> bool | None:
        """None when the rename is done; else what a server says that has ignored the option."""
        answer = self.session.put(
            f"{self.hdfs.url.rstrip('/')}/webhdfs/v1{quote(source)}",
            params={
                "op": "RENAME",
                "destination": target,
                "renameoptions": "NONE",
                "doas": self.proxy_user,
            },
            timeout=self.timeout,
        )
        return bool(answer.json()["boolean"]) if answer.content else None

    def date(self) -> str:
        """The header that says when it answers; empty if it doesn't."""
        answer = self.session.get(
            f"{self.hdfs.url.rstrip('/')}/webhdfs/v1/",
            params={"op": "GETFILESTATUS", "doas": self.proxy_user},
            timeout=self.timeout,
        )
        return str(answer.headers.get("Date", ""))


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
        proxy_user: str | None = None,
        verify: bool | str = True,
        connect_seconds: float = CONNECT_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """`urls`: one per NameNode. A token beats Kerberos, and both beat the plain user name."""
        # It tells each client that is made, by its address.
        logging.getLogger("hdfs").setLevel(logging.WARNING)
        self._retry_seconds = retry_seconds
        self._first = 0
        self._nodes: list[NameNode] = []
        timeout = (connect_seconds, answer_seconds)
        for url in _checked(urls):
            session = _Session()
            # No proxy, no .netrc: the cluster is addressed directly, with the given credentials.
            session.trust_env = False
            session.verify = verify
            if user and password:
                session.auth = (user, password)
            options = {"proxy": proxy_user, "timeout": timeout, "session": session}
            client = _client(url, user, token, kerberos, options)
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
        reason = f"{refusal.exception}: {refusal.words}"
        raise NoAnswer(reason, may_have_happened=False) from None
    except (requests.JSONDecodeError, KeyError, TypeError) as error:
        # A success in which the package looks in vain for what WebHDFS answers.
        raise StorageRefused(path, "the answer is not WebHDFS's: is the URL right?") from error
    except requests.RequestException as error:
        raise NoAnswer(why_no_answer(error), may_have_happened=was_sent(error)) from None


class _Session(requests.Session):
    """Raises `Refusal` for each answer that is no success."""

    def request(self, *args: Any, **options: Any) -> requests.Response:
        response = super().request(*args, **options)
        if response.status_code >= 400:
            raise Refusal.of(response)
        return response


class _PathsAsTheyAre:
    """Comes before a client of the package; see 4."""

    def resolve(self, hdfs_path: str) -> str:
        return hdfs_path


class _InsecureClient(_PathsAsTheyAre, InsecureClient):
    pass


class _TokenClient(_PathsAsTheyAre, TokenClient):
    pass


def _client(
    url: str, user: str | None, token: str | None, kerberos: bool, options: dict[str, Any]
) -> Any:
    if token:
        return _TokenClient(url, token, **options)
    if not kerberos:
        return _InsecureClient(url, user=user, **options)
    try:
        from hdfs.ext.kerberos import KerberosClient
    except ImportError as error:
        raise ConfigurationError(
            "kerberos", True, "False, or True with the package hdfs[kerberos] installed"
        ) from error

    class _KerberosClient(_PathsAsTheyAre, KerberosClient):
        pass

    return _KerberosClient(url, **options)


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
