"""librdkafka's words for a token that it could not get become those of a refused log-in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tallystick.settings.kafka_connection import TOKEN_URL

_NO_TOKEN: Final = "Failed to acquire SASL OAUTHBEARER token"
# The codes of RFC 6749; which HTTP status there was, the library seldom says.
_REFUSED: Final = re.compile(
    r"\bHTTP\D{0,20}(400|401|403)\b|\binvalid_(client|request|scope|grant)\b"
    r"|\bunauthorized_client\b|\bunsupported_grant_type\b"
)


def token_trouble(words: str, properties: Mapping[str, str]) -> str | None:
    """The same with the endpoint's address; None where the words are about something else."""
    if not words.startswith(_NO_TOKEN):
        return None
    return f"token endpoint {properties.get(TOKEN_URL)}: {words}"


def is_refused_token(words: str) -> bool:
    """True where the endpoint has refused the client; else it may give a token later."""
    return bool(_REFUSED.search(words))
