"""The app that Airflow's api-server mounts: routes, pages, and what every answer bears."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse

from tallystick.errors import (
    ConnectionMissing,
    EvidenceChanged,
    IngestionError,
    LedgerUnavailable,
    RetirementRefused,
    WaiverRefused,
)
from tallystick.ledger.ledger import Ledger
from tallystick.report.wording import with_capital
from tallystick.settings.connections import variable_of
from tallystick.web.access import LoginNeeded
from tallystick.web.actions import actions, forms
from tallystick.web.airflow_rest import AirflowRest, airflow_app
from tallystick.web.desk import READER_SECONDS, LedgerThreads
from tallystick.web.metrics import MetricsToken, TokenOf, metrics
from tallystick.web.pages import below, not_understood, pages, refusal
from tallystick.web.routes import api
from tallystick.web.stored_reports import NewestDrawings

log = logging.getLogger(__name__)

# Nothing is loaded but our own two files, and nobody but Airflow may frame us: the cookie of
# Airflow's login can be read by scripts, so no script may run that is not ours.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NEXT: Final = "Try again in a moment. Landing goes on without this page, or waits by itself."


def tallystick_app(
    opened: Callable[[], Ledger],
    metrics_token: TokenOf,
    airflow: Callable[[], Any] = airflow_app,
    reader_seconds: float = READER_SECONDS,
) -> FastAPI:
    """The app; `opened` gives a ledger to each thread that asks one.

    `metrics_token` gives what a reader of the metrics has to send; None closes them.
    `airflow` gives Airflow's own app. A reader waits `reader_seconds` for it, and for the ledger.
    """
    app = FastAPI(title="Tallystick", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.ledger = LedgerThreads(opened, reader_seconds)
    app.state.drawings = NewestDrawings()
    app.state.metrics_token = MetricsToken(metrics_token)
    app.state.airflow = AirflowRest(airflow, reader_seconds)
    for router in (api, actions, metrics, pages, forms):
        app.include_router(router)
    app.middleware("http")(_with_headers)
    app.exception_handler(LoginNeeded)(_to_login)
    app.exception_handler(IngestionError)(_no_answer)
    for kind in (HTTPException, 404, 405):  # what the router refuses is of another class
        app.exception_handler(kind)(_refused)
    app.exception_handler(RequestValidationError)(_not_understood)
    return app


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await call_next(request)
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _to_login(request: Request, needed: LoginNeeded) -> Response:
    return RedirectResponse(needed.url, 307 if request.method == "GET" else 303)


async def _no_answer(request: Request, error: IngestionError) -> Response:
    """The log has the words; an answer never says where the ledger is."""
    if isinstance(error, WaiverRefused | EvidenceChanged | RetirementRefused):
        return _told(request, 409, with_capital(error.sentence()), "Look again.")
    log.warning("Tallystick's page: %s", error.describe())
    match error:
        case LedgerUnavailable():
            what, next_step = "The ledger does not answer.", _NEXT
        case ConnectionMissing():
            what = f"There is no connection {error.setting}."
            variable = variable_of(error.setting)
            next_step = f"Create it in Airflow, or set {variable} for the api-server."
        case _:
            kind, next_step = type(error).__name__, error.next_step
            what = f"The ledger could not be asked: {kind}. The api-server's log says why."
    return _told(request, 503, what, next_step)


async def _refused(request: Request, refused: HTTPException) -> Response:
    answer = _told(request, refused.status_code, str(refused.detail))
    answer.headers.update(refused.headers or {})
    return answer


async def _not_understood(request: Request, error: RequestValidationError) -> Response:
    return _told(request, 422, not_understood(error))


def _told(request: Request, status: int, what: str, next_step: str = "") -> Response:
    """The same words for a program and for a person."""
    if below(request).startswith("/api/"):
        return JSONResponse({"detail": what, "next_step": next_step}, status)
    return refusal(request, status, what, next_step)
