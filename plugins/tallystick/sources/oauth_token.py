"""A token of OAuth 2 for kafka-python, which has no way to get one: client credentials, RFC 6749.

librdkafka and Java's client fetch their own. A token serves until most of its life is over.
"""

from __future__ import annotations

import json
import time
from typing import Final

from kafka import errors as kafka_errors
from kafka.net.sasl.oauth import AbstractTokenProvider
from typing_extensions import override

from tallystick.sources.certificate_errors import is_about_certificates
from tallystick.sources.token_request import SECONDS, posted

# Too late, too early, too often: RFC 9110, 8470, 6585.
_PASSING: Final = (408, 425, 429)
_USED_PART: Final = 0.8


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
