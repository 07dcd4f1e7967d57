"""One question to a token endpoint that ends in time, and in little memory, whatever it answers."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

import requests
from requests.auth import HTTPBasicAuth

SECONDS: Final = 10.0
"""For all of it: the connection, the question, the last byte of the answer."""
LARGEST_BYTES: Final = 1_000_000
_NOT_IN_TIME: Final = "no whole answer within {:.0f} s"


class TokenAnswer(NamedTuple):
    """An endpoint has answered this."""

    status: int
    body: bytes


def posted(
    url: str, login: tuple[str, str], form: Mapping[str, str], *, ca: str | None, seconds: float
) -> TokenAnswer:
    """The answer of the endpoint itself: a redirection is not followed, it would get the secret.

    Raises OSError where there is none in time; requests' own errors are of that kind.
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
