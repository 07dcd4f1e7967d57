"""The requests to one NameNode, and to where it leads: what travels with them, and what may not.

1. An answer that is no success is a `Refusal`, before the client of the package sees it.
2. From https nothing leads to http: the URL itself may hold a token, and the answer would be
   anybody's.
3. A password and a token go where the connection says. Elsewhere the URL that a NameNode gives says
   by itself who asks: with a token of its own, or with the user's name.
4. Libraries below log no secrets. urllib3 logs each URL at DEBUG, and at WARNING one whose answer
   it can't read: a delegation token is part of a URL, ours and the one that a NameNode leads to.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from tallystick.storage.refusals import LeadsToClear, Refusal

_PORTS: Final = {"http": 80, "https": 443}
# urllib3.connection is asked too: its releases have not agreed on who tells of headers.
_TALKATIVE: Final = (
    "urllib3.connection",
    "urllib3.connectionpool",
    "urllib3.poolmanager",
    "urllib3.response",
    "urllib3.util.retry",
)
# Headers that can't be read are logged as a text literal, so a backslash ends a line in it.
_SECRET: Final = re.compile(
    r"(delegation(?:=|%3D))[^&\s\"'\\]+|((?:set-)?cookie:\s*[^=\s;]+=)[^;\r\n\\]+"
    r"|(authorization:\s*)[^\r\n\\]+",
    re.IGNORECASE,
)


class Session(requests.Session):
    """Asks servers directly: no proxy, no .netrc, no environment."""

    def __init__(self, urls: Collection[str]) -> None:
        """`urls`: what the connection names."""
        super().__init__()
        self.trust_env = False
        self._own = frozenset(_origin(url) for url in urls)
        self._is_https = any(scheme == "https" for scheme, _, _ in self._own)

    def request(self, method: Any, url: Any, *args: Any, **options: Any) -> requests.Response:
        """A response that is a success; raises Refusal, and LeadsToClear."""
        if _origin(url) not in self._own:
            # The package sends content to a redirect's target by a request of its own, to which
            # `requests` would add all that the session has.
            ours: Any = self.params
            options["params"] = {**dict.fromkeys(ours), **(options.get("params") or {})}
            if isinstance(self.auth, tuple):
                options["auth"] = _nobody
        response = super().request(method, url, *args, **options)
        # A redirect that leads nowhere would be taken for a rename that is done.
        if response.status_code >= 300 and not response.is_redirect:
            raise Refusal.of(response)
        return response

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Every request comes through here, each step of a redirect as well."""
        parts = urlsplit(request.url or "")
        if self._is_https and parts.scheme != "https":
            raise LeadsToClear(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        return super().send(request, **options)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Stands in place of the session's password; None would stand for it."""
    return request


def keep_secrets_from_logs() -> None:
    """Keeps tokens out of these libraries' loggers from now on; may be called again."""
    # It tells each client that is made, by its address.
    logging.getLogger("hdfs").setLevel(logging.WARNING)
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_blotted)


def _blotted(record: logging.LogRecord) -> bool:
    """True: nothing is left out but secrets, and a traceback, whose text may hold them again."""
    record.msg, record.args = _SECRET.sub(_without_value, record.getMessage()), ()
    record.exc_info = record.exc_text = None
    return True


def _without_value(found: re.Match[str]) -> str:
    return f"{found[1] or found[2] or found[3]}(not shown)"
