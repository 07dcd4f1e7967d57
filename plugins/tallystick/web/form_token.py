"""The token of a form: our own page has sent it, by the person to whom it was shown.

A browser sends Airflow's cookie by itself, so the cookie alone proves no will. (SameSite=Lax keeps
it from other sites' forms, not from those of another host of the same site.) A form must come from
our own origin, and must bear a token: of this user, for this address, signed, and not older than an
hour. A program that sends `Authorization: Bearer` needs none: no browser sends that by itself.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from airflow.configuration import conf
from fastapi import HTTPException, Request, status
from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from tallystick.web.access import User

GOOD_SECONDS: Final = 3600
_SALT: Final = "tallystick-form"


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
    """Believes what browsers say of each form that they send; one that says nothing is refused."""
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
