"""A token of OAuth 2 for kafka-python, which has no way to get one: client credentials, RFC 6749.

librdkafka and Java's client fetch their own. A token serves until most of its life is over.
"""

from __future__ import annotations

import time
from typing import Final

import requests
from kafka import errors as kafka_errors
from kafka.net.sasl.oauth import AbstractTokenProvider
from typing_extensions import override

_PATIENCE_SECONDS: Final = 10
_USED_PART: Final = 0.8


class ClientCredentials(AbstractTokenProvider):
    """Asks a token endpoint, and keeps what it gave. The repr shows the endpoint alone."""

    def __init__(self, url: str, client: str, secret: str, *, scope: str, ca: str | None) -> None:
        """`ca`: the path of the authorities that vouch for the endpoint; None: the usual ones."""
        super().__init__()
        self._url, self._login, self._scope, self._ca = url, (client, secret), scope, ca
        self._token, self._serves_until = "", 0.0

    def __repr__(self) -> str:
        return f"ClientCredentials({self._url!r})"

    @override
    def token(self) -> str:
        """A token that still serves; an error of kafka-python where there is none."""
        if time.monotonic() >= self._serves_until:
            self._token, seconds = self._fetched()
            self._serves_until = time.monotonic() + seconds * _USED_PART
        return self._token

    def _fetched(self) -> tuple[str, float]:
        """A new token, and for how many seconds it is good."""
        asked = {"grant_type": "client_credentials"} | (
            {"scope": self._scope} if self._scope else {}
        )
        try:
            answer = requests.post(
                self._url,
                data=asked,
                auth=self._login,
                timeout=_PATIENCE_SECONDS,
                verify=self._ca or True,
            )
        except requests.exceptions.SSLError as failure:
            raise self._refusal("its certificate is not trusted") from failure
        except requests.RequestException as failure:
            reason = f"token endpoint {self._url} does not answer ({type(failure).__name__})"
            raise kafka_errors.KafkaConnectionError(reason) from failure
        if answer.status_code >= 500:
            reason = f"token endpoint {self._url} answers with HTTP {answer.status_code}"
            raise kafka_errors.KafkaConnectionError(reason)
        try:
            document = answer.json() if answer.ok else {}
            return str(document["access_token"]), float(document.get("expires_in", 0))
        except (ValueError, KeyError, TypeError, AttributeError) as failure:
            raise self._refusal(f"no token in HTTP {answer.status_code}") from failure

    def _refusal(self, reason: str) -> Exception:
        refusal: Exception = kafka_errors.SaslAuthenticationFailedError(
            f"token endpoint {self._url} gives no token: {reason}"
        )
        return refusal
