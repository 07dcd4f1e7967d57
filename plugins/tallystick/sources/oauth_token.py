"""A token of OAuth 2 for kafka-python, which has no way to get one: client credentials, RFC 6749.

librdkafka and Java's client fetch their own. A token serves until most of its life is over.
"""

from __future__ import annotations

import json
import queue
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

import requests
from kafka import errors as kafka_errors
from kafka.net.sasl.oauth import AbstractTokenProvider
from requests.auth import HTTPBasicAuth
from typing_extensions import override

# Too late, too early, too often: RFC 9110, 8470, 6585.
_PASSING: Final = (408, 425, 429)
_USED_PART: Final = 0.8
SECONDS: Final = 10.0
"""For all of it: the connection, the question, the last byte of the answer."""
LARGEST_BYTES: Final = 1_000_000
_NOT_IN_TIME: Final = "no whole answer within {:.0f} s"


class ClientCredentials(AbstractTokenProvider):
    """Asks a token endpoint, and keeps what it gave. The repr shows the endpoint alone."""

    def __init__(
        self,
        url: str,
        client: str,
        secret: str,
        *,
        scope: str,
        ca: str | None,
        seconds: float = SECONDS,
    ) -> None:
        """`ca`: the path of the authorities that vouch for the endpoint; None: the usual ones.

        `seconds`: how long a token is waited for.
        """
        super().__init__()
        self._url, self._login, self._scope, self._ca = url, (client, secret), scope, ca
        self._seconds = seconds
        self.trouble = ""
        """Why the last token could not be had, for whoever is only told that nobody answers."""
        self._token, self._serves_until = "", 0.0

    def __repr__(self) -> str:
        return f"ClientCredentials({self._url!r})"

    @override
    def token(self) -> str:
        """A token that still serves; an error of kafka-python where there is none."""
        if time.monotonic() >= self._serves_until:
            self.trouble = ""
            self._token, seconds = self._fetched()
            self._serves_until = time.monotonic() + seconds * _USED_PART
        return self._token

    def _fetched(self) -> tuple[str, float]:
        """A new token, and for how many seconds it is good."""
        asked = {"grant_type": "client_credentials"} | (
            {"scope": self._scope} if self._scope else {}
        )
        try:
            status, body = posted(self._url, self._login, asked, ca=self._ca, seconds=self._seconds)
        except OSError as failure:
            if is_about_certificates(failure):
                raise self._refusal("its certificate is not trusted") from failure
            # The words of requests would quote the URL with all of its query.
            is_ours = type(failure) in (OSError, TimeoutError)
            words = str(failure) if is_ours else type(failure).__name__
            raise self._trouble(f"does not answer ({words})") from failure
        if status >= 500 or status in _PASSING:
            raise self._trouble(f"answers with HTTP {status}")
        try:
            document = json.loads(body) if 200 <= status < 300 else {}
            token, seconds = document["access_token"], document.get("expires_in")
            if isinstance(token, str):
                return token, float(seconds or 0)
            raise TypeError("a token is a text")
        except (ValueError, KeyError, TypeError, AttributeError) as failure:
            raise self._refusal(f"no token in HTTP {status}") from failure

    def _trouble(self, words: str) -> Exception:
        """Makes the error for what may pass; the brokers have no part in it."""
        self.trouble = f"token endpoint {self._url} {words}"
        passing: Exception = kafka_errors.KafkaConnectionError(self.trouble)
        return passing

    def _refusal(self, reason: str) -> Exception:
        refusal: Exception = kafka_errors.SaslAuthenticationFailedError(
            f"token endpoint {self._url} gives no token: {reason}"
        )
        return refusal


class TokenAnswer(NamedTuple):
    """An endpoint has answered this."""

    status: int
    body: bytes


def posted(
    url: str, login: tuple[str, str], form: Mapping[str, str], *, ca: str | None, seconds: float
) -> TokenAnswer:
    """The answer of the endpoint itself: a redirection is not followed, it would get the secret.

    It comes in time and takes little memory, whatever the endpoint does. Raises
    OSError where there is none in time; requests' own errors are of that kind.
    """
    answers: queue.SimpleQueue[TokenAnswer | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_asked(url, login, form, ca, seconds))
        except Exception as failure:  # noqa: BLE001 - raised where it is waited for
            answers.put(failure)

    # A time-out of sockets begins anew with each byte. So it is this thread that is waited for.
    threading.Thread(target=ask, name="kafka-token", daemon=True).start()
    try:
        found = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(_NOT_IN_TIME.format(seconds)) from None
    if isinstance(found, Exception):
        raise found
    return found


def _asked(
    url: str, login: tuple[str, str], form: Mapping[str, str], ca: str | None, seconds: float
) -> TokenAnswer:
    until, body = time.monotonic() + seconds, bytearray()
    with requests.post(
        url,
        data=form,
        # Bytes, or it would be Latin-1, which the other two clients don't send.
        auth=HTTPBasicAuth(login[0].encode(), login[1].encode()),
        timeout=seconds,
        verify=ca or True,
        allow_redirects=False,
        stream=True,
    ) as answer:
        # A larger chunk would be waited for until it is full.
        for each in answer.iter_content(chunk_size=1):
            body += each
            if len(body) > LARGEST_BYTES:
                raise OSError(f"it answers with more than {LARGEST_BYTES} bytes")
            if time.monotonic() > until:
                raise TimeoutError(_NOT_IN_TIME.format(seconds))
        return TokenAnswer(answer.status_code, bytes(body))


def is_about_certificates(failure: BaseException) -> bool:
    """True where TLS fails: we don't trust their certificate, or they ours, or they ask for one.

    A broker says so at the first read behind a handshake that seemed to end well (TLS 1.3).
    """
    if isinstance(failure, ssl.SSLError):
        reason = failure.reason or ""
        return "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
    # kafka-python chains the cause, requests and urllib3 wrap it.
    inner = (failure.__cause__, getattr(failure, "reason", None), *failure.args)
    return any(is_about_certificates(each) for each in inner if isinstance(each, BaseException))
