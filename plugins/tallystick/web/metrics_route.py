"""The route that Prometheus reads: closed without a token, and open to nobody but who sends it.

A Prometheus server has no log-in of Airflow's, so this route has a token of its own and no other
right: it sees the figures of all feeds, and nothing else.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tallystick.errors import IngestionError
from tallystick.web.metrics import exposition
from tallystick.web.routes import Desk

log = logging.getLogger(__name__)

metrics = APIRouter(include_in_schema=False)
TokenOf = Callable[[], str | None]
_REMEMBERED_SECONDS: Final = 60.0
_SHORTEST_TOKEN: Final = 16


class MetricsToken:
    """The token as it is set now, looked up once a minute at most."""

    def __init__(self, look_up: TokenOf) -> None:
        self._look_up = look_up
        self._token: str | None = None
        self._known_until = 0.0

    def current(self) -> str | None:
        """None while none can be read, or one that is too short to keep anybody out."""
        now = time.monotonic()
        if now >= self._known_until:
            self._token, self._known_until = self._looked_up(), now + _REMEMBERED_SECONDS
        return self._token

    def _looked_up(self) -> str | None:
        try:
            found = self._look_up()
        except IngestionError as error:
            log.warning("Tallystick's metrics are closed: %s", error.describe())
            return None
        if found and len(found) < _SHORTEST_TOKEN:
            log.warning(
                "Tallystick's metrics are closed: the token has fewer than %d characters.",
                _SHORTEST_TOKEN,
            )
            return None
        return found or None


@metrics.get("/metrics")
async def read(request: Request, desk: Desk) -> Response:
    """OpenMetrics for who sends the token; as if it were not there, where no token is set."""
    token = await run_in_threadpool(request.app.state.metrics_token.current)
    if token is None:
        return _text("There is no such page.", 404)
    if not _is_sent(request.headers.get("Authorization", ""), token):
        refusal = _text("The metrics need their token: Authorization: Bearer ...", 401)
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    accept = request.headers.get("Accept", "")
    try:
        body, content_type = await desk.ask(
            partial(exposition, now=datetime.now(UTC), accept=accept)
        )
    except IngestionError as error:  # an answer never says where the ledger is
        log.warning("Tallystick's metrics: %s", error.describe())
        return _text("The ledger does not answer.", 503)
    return Response(body, media_type=content_type)


def _is_sent(header: str, token: str) -> bool:
    """True if the header holds the token; takes as long wherever two of one length differ."""
    scheme, _, sent = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent.encode(), token.encode())


def _text(words: str, status: int) -> Response:
    return Response(f"{words}\n", status, media_type="text/plain")
