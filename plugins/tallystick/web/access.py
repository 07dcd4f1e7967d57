"""Airflow's auth manager decides who asks, and which feeds they may see.

A plugin's app is open to everybody by default, and nothing else decides who may do what. Airflow
makes `airflow_rest` a token for whom this module has recognised.

The token of a form: our own page has sent it, by the person to whom it was shown.

A browser sends Airflow's cookie by itself, so the cookie alone proves no will. (SameSite=Lax keeps
it from other sites' forms, not from those of another host of the same site.) A form must come from
our own origin, and must bear a token: of this user, for this address, signed, and not older than an
hour. A program that sends `Authorization: Bearer` needs none: no browser sends that by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import urlsplit

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import (
    AccessView,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException, Request, status
from fastapi.concurrency import run_in_threadpool
from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from tallystick.domain.identities import FeedName
from tallystick.orchestration.dag_ids import INGEST, REPAIR, dag_id_of

User: TypeAlias = Any
"""Of whichever auth manager Airflow has."""

GOOD_SECONDS: Final = 3600
"""Of a form."""
_SALT: Final = "tallystick-form"

SIGNED_IN = Depends(get_user)
SignedIn = Annotated[User, SIGNED_IN]
"""Who asks a JSON route, by a token or a cookie."""


class LoginNeeded(Exception):
    """A page was asked for by nobody that Airflow knows."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


async def reader(request: Request) -> User:
    """Returns who reads a page, by the cookie; raises LoginNeeded with where to go first."""
    try:
        return await get_user(request, None, None)
    except HTTPException as refusal:
        # A form is not sent again after the log-in: its page is shown.
        page = request.url if request.method == "GET" else request.base_url
        url = get_auth_manager().get_url_login(next_url=str(page))
        raise LoginNeeded(url) from refusal


PageReader = Annotated[User, Depends(reader)]
"""Who asks for a page, by the browser's cookie alone."""


async def visible_among(user: User, feeds: Iterable[FeedName]) -> Collection[FeedName]:
    """Returns the feeds whose ingest DAG this user may read; those of a group share it."""
    asked = {each: dag_id_of(INGEST, each) for each in feeds}
    readable = await run_in_threadpool(_readable, user, list({*asked.values()}))
    return {each for each, dag_id in asked.items() if dag_id in readable}


async def runs_visible_among(
    user: User, dag_ids: Iterable[str], part: DagAccessEntity = DagAccessEntity.RUN
) -> Collection[str]:
    """Returns the DAGs whose runs, or a part of them, this user may read."""
    return await run_in_threadpool(_readable, user, list(dag_ids), part)


async def may_see_import_errors(user: User) -> bool:
    """True for who may read what Airflow can't parse, of whichever DAG."""
    view = AccessView.IMPORT_ERRORS
    manager = get_auth_manager()
    return bool(
        await run_in_threadpool(partial(manager.is_authorized_view, access_view=view, user=user))
    )


async def require_visible(user: User, feed: FeedName) -> None:
    """Raise what an unknown feed raises: who may not see a feed is not told that there is one."""
    if not await visible_among(user, [feed]):
        raise not_found(f"feed {feed}")


async def require_run_visible(user: User, dag_id: str) -> None:
    """The same for the runs of a DAG."""
    if not await runs_visible_among(user, [dag_id]):
        raise not_found(f"DAG {dag_id}")


async def may_change(user: User, feed: FeedName) -> bool:
    """True for who may trigger `repair_<feed>`: they repair, and have a say in what is accepted."""
    dag_id = dag_id_of(REPAIR, feed)
    return await run_in_threadpool(_may, "POST", user, dag_id, DagAccessEntity.RUN)


async def require_may_change(user: User, feed: FeedName) -> None:
    """Raise 403 for who may only look."""
    if not await may_change(user, feed):
        dag_id = dag_id_of(REPAIR, feed)
        words = f"You may look, but not change: that needs the right to trigger {dag_id}."
        raise HTTPException(status.HTTP_403_FORBIDDEN, words)


def name_of(user: User) -> str:
    """Returns Airflow's name for the user: nobody types it."""
    return str(user.get_name())


def not_found(what: str) -> HTTPException:
    """There is none, or the user may not see it."""
    words = f"There is no {what} on record, or you may not see it."
    return HTTPException(status.HTTP_404_NOT_FOUND, words)


def _readable(
    user: User, dag_ids: list[str], entity: DagAccessEntity | None = None
) -> Collection[str]:
    teams = _teams_of(dag_ids)
    manager = get_auth_manager()
    return {
        dag_id
        for dag_id in dag_ids
        if manager.is_authorized_dag(
            method="GET",
            access_entity=entity,
            details=DagDetails(id=dag_id, team_name=teams.get(dag_id)),
            user=user,
        )
    }


def _teams_of(dag_ids: list[str]) -> Mapping[str, str | None]:
    """The team of each DAG that has one."""
    at_once: Callable[[list[str]], Mapping[str, str | None]] | None
    at_once = getattr(DagModel, "get_dag_id_to_team_name_mapping", None)
    if at_once is None:  # Airflow 3.1 is asked for one after another
        return {each: DagModel.get_team_name(each) for each in dag_ids}
    return at_once(dag_ids)


def _may(method: str, user: User, dag_id: str, entity: DagAccessEntity) -> bool:
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    found: bool = get_auth_manager().is_authorized_dag(
        method=method, access_entity=entity, details=details, user=user
    )
    return found


def form_token_for(user: User, address: str) -> str:
    """The token of a form that this user may send to this address, below the app's own."""
    return str(_signer().dumps([str(user.get_id()), address]))


def require_form_token(request: Request, user: User, address: str, token: str) -> None:
    """Raise 403 for a form that is not of our own page, not of this user, or too old."""
    if not _is_own_origin(request):
        raise _refused("The form does not come from this page: another site may have sent it.")
    try:
        said = _signer().loads(token, max_age=GOOD_SECONDS)
    except SignatureExpired as error:
        raise _refused("The form is older than an hour: open the page again.") from error
    except BadSignature as error:
        raise _refused("The form has no valid token: open the page again.") from error
    if said != [str(user.get_id()), address]:
        raise _refused("The form was shown to somebody else, or for something else.")


def require_bearer(request: Request) -> None:
    """Raise 403 for a program that shows the browser's cookie in the place of a token."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise _refused("A cookie is not enough to change anything: send Authorization: Bearer.")


def _is_own_origin(request: Request) -> bool:
    """By what browsers say of each form that they send; one that says nothing is refused."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None and origin is None:
        return False
    own = {request.headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc}
    is_own = origin is None or urlsplit(origin).netloc in own - {None, ""}
    return is_own and site in (None, "same-origin")


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get_mandatory_value("api", "secret_key"), salt=_SALT)


def _refused(reason: str) -> HTTPException:
    return HTTPException(status.HTTP_403_FORBIDDEN, reason)
