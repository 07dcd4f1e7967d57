"""Airflow's own REST API, asked within this process, in the name of who is signed in.

So Airflow itself checks what they may do, and writes them down as who did it. The API is the one
that Airflow keeps stable from version to version; its models and functions are not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import httpx
from airflow.api_fastapi.app import get_auth_manager

from tallystick.web.access import User
from tallystick.web.desk import READER_SECONDS

log = logging.getLogger(__name__)

_TOKEN_SECONDS: Final = 60
_CHANGE_SECONDS: Final = 15.0


class AirflowRefused(Exception):
    """Airflow does not do what was asked, or does not know it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


def airflow_app() -> Any:
    """Airflow's own app in an api-server: the very one that has mounted ours."""
    from airflow.api_fastapi.main import app  # which is made only when this is imported

    return app


class AirflowRest:
    """One call each, of Airflow's own app."""

    def __init__(
        self, app: Callable[[], Any] = airflow_app, reader_seconds: float = READER_SECONDS
    ) -> None:
        self._app = app
        self.reader_seconds = reader_seconds
        """How long a reader waits; who changes something waits no less."""
        self._going_on: set[asyncio.Task[httpx.Response]] = set()
        """Changes that nobody waits for any more: the event loop itself would forget them."""

    async def get(self, user: User, *path: str, **query: Any) -> Mapping[str, Any]:
        """Returns what Airflow answers; raises AirflowRefused."""
        return await self._ask(user, "GET", path, query, None)

    async def post(self, user: User, *path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same."""
        return await self._ask(user, "POST", path, {}, body)

    async def patch(
        self, user: User, *path: str, body: Mapping[str, Any], **query: Any
    ) -> Mapping[str, Any]:
        """The same."""
        return await self._ask(user, "PATCH", path, query, body)

    async def _ask(
        self,
        user: User,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, Any],
        body: Mapping[str, Any] | None,
    ) -> Mapping[str, Any]:
        if any("/" in each or each in ("", ".", "..") for each in path):
            raise AirflowRefused(404, "Airflow has no such name.")
        asked = asyncio.create_task(self._answer(user, method, path, query, body))
        seconds = self.reader_seconds
        if method != "GET":
            seconds = max(_CHANGE_SECONDS, seconds)
        # An app within this process knows no time-out of the client's, and its threads are not
        # cancelled: so nobody waits for them, and a change that was begun goes on.
        done, _ = await asyncio.wait({asked}, timeout=seconds)
        if not done:
            if method == "GET":
                asked.cancel()
            else:
                self._going_on.add(asked)
                asked.add_done_callback(partial(self._ended, f"{method} {'/'.join(path)}"))
            raise AirflowRefused(504, f"no answer within {seconds:g} s: look whether it is done.")
        answer = asked.result()
        if not answer.is_success:
            raise AirflowRefused(answer.status_code, _reason_of(answer))
        found: Mapping[str, Any] = answer.json()
        return found

    def _ended(self, what: str, asked: asyncio.Task[httpx.Response]) -> None:
        self._going_on.discard(asked)
        if asked.cancelled():
            log.warning("Tallystick's page: nobody knows whether Airflow has done %s", what)
        elif error := asked.exception():
            log.warning("Tallystick's page: Airflow has not done %s", what, exc_info=error)
        else:
            status = asked.result().status_code
            log.warning("Tallystick's page: Airflow has answered %s late: %s", what, status)

    async def _answer(
        self,
        user: User,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, Any],
        body: Mapping[str, Any] | None,
    ) -> httpx.Response:
        # Of the user whom Airflow has just recognised, by whatever log-in; it leaves no process.
        token = get_auth_manager().generate_jwt(user, expiration_time_in_seconds=_TOKEN_SECONDS)
        transport = httpx.ASGITransport(self._app(), raise_app_exceptions=False)
        # Nothing of it leaves the process, so no proxy of the environment matters.
        async with httpx.AsyncClient(
            transport=transport, base_url="http://airflow", trust_env=False
        ) as client:
            return await client.request(
                method,
                "/api/v2/" + "/".join(quote(each, safe="") for each in path),
                params=query,
                json=body,
                headers={"Authorization": f"Bearer {token}"},
            )


def _reason_of(answer: httpx.Response) -> str:
    """Airflow's own words, where it has any for a person."""
    try:
        detail = answer.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = None
    return detail if isinstance(detail, str) else f"Airflow answers {answer.status_code}."
