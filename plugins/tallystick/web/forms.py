"""The pages' forms: what the JSON routes change, for a person with a browser.

Each form bears a token of our own page (`form_token`), then leads back to a page to look at.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, HTTPException, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import AfterValidator

from tallystick.domain.identities import FeedName
from tallystick.errors import ConfigurationError
from tallystick.orchestration.repair_conf import digests_of, numbers_of
from tallystick.web import actions
from tallystick.web.access import (
    PageReader,
    require_form_token,
    require_may_change,
    require_visible,
)
from tallystick.web.actions import (
    AcceptanceWish,
    Digest,
    FeedRepairWish,
    Reason,
    RepairWish,
    RequestNumber,
    still_to_come,
)
from tallystick.web.answers import FindingAnswer
from tallystick.web.pages import below, up_from
from tallystick.web.routes import Airflow, Desk, Name, Number, found_for

forms = APIRouter(include_in_schema=False)
FormToken = Annotated[str, Form(max_length=1_000)]
Ticked = Annotated[bool, Form()]


def _in_utc(instant: datetime) -> datetime:
    """A browser's field of date and time has no time zone; the page says that it is UTC."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


LocalEnd = Annotated[datetime, AfterValidator(_in_utc), AfterValidator(still_to_come)]


async def _finding(
    request: Request, number: Number, user: PageReader, desk: Desk, form_token: FormToken = ""
) -> FindingAnswer:
    """The finding that this user may change, and by this very form."""
    found = await found_for(user, desk, number)
    require_form_token(request, user, below(request), form_token)
    await require_may_change(user, FeedName(found.finding.feed))
    return found


async def _feed(
    request: Request, feed: Name, user: PageReader, form_token: FormToken = ""
) -> FeedName:
    await require_visible(user, FeedName(feed))
    require_form_token(request, user, below(request), form_token)
    await require_may_change(user, FeedName(feed))
    return FeedName(feed)


Finding = Annotated[FindingAnswer, Depends(_finding)]
Feed = Annotated[FeedName, Depends(_feed)]


@forms.post("/findings/{number}/repair")
async def repair_finding(
    request: Request,
    number: Number,
    found: Finding,
    user: PageReader,
    desk: Desk,
    airflow: Airflow,
    evidence: Annotated[Digest, Form()],
    dry_run: Ticked = False,
    unpause: Ticked = False,
) -> Response:
    """Back to the finding, whose page follows the run."""
    wish = RepairWish(evidence=evidence, dry_run=dry_run, unpause=unpause)
    await actions.repair_of_finding(user, desk, airflow, found, wish)
    return _see(request, f"findings/{number}")


@forms.post("/feeds/{feed}/repair")
async def repair_feed(
    request: Request,
    feed: Feed,
    user: PageReader,
    airflow: Airflow,
    findings: Annotated[str, Form()] = "",
    evidence: Annotated[str, Form()] = "",
    dry_run: Ticked = False,
    unpause: Ticked = False,
) -> Response:
    """Leads to the page of the run, which follows it."""
    given = {"findings": findings, "evidence": evidence}
    try:
        numbers, digests = numbers_of(given), digests_of(given)
    except ConfigurationError as error:
        raise HTTPException(422, f"{error.setting}: {error.accepted}.") from error
    wish = FeedRepairWish(findings=numbers, evidence=digests, dry_run=dry_run, unpause=unpause)
    run = await actions.repair_of_feed(user, airflow, feed, wish)
    return _see(request, f"run?{urlencode({'dag_id': run.dag_id, 'run_id': run.run_id})}")


@forms.post("/findings/{number}/waiver-requests")
async def ask_for_waiver(
    request: Request,
    number: Number,
    found: Finding,
    user: PageReader,
    desk: Desk,
    reason: Annotated[Reason, Form()],
    until: Annotated[LocalEnd, Form()],
    evidence: Annotated[Digest, Form()],
) -> Response:
    """Back to the finding, which somebody else may accept now."""
    wish = AcceptanceWish(reason=reason, until=until, evidence=evidence)
    await actions.asked_for(user, desk, number, wish)
    return _see(request, f"findings/{number}")


@forms.post("/findings/{number}/waiver-requests/{request_number}/approve")
async def approve_waiver(
    request: Request,
    number: Number,
    found: Finding,
    request_number: RequestNumber,
    user: PageReader,
    desk: Desk,
) -> Response:
    """Back to the finding, which is accepted now."""
    await actions.approved(user, desk, number, request_number)
    return _see(request, f"findings/{number}")


@forms.post("/findings/{number}/waiver-requests/{request_number}/withdraw")
async def withdraw_waiver(
    request: Request,
    number: Number,
    found: Finding,
    request_number: RequestNumber,
    user: PageReader,
    desk: Desk,
) -> Response:
    """Back to the finding, of which nobody asks any more that it is accepted."""
    await actions.withdrawn(user, desk, number, request_number)
    return _see(request, f"findings/{number}")


def _see(request: Request, page: str) -> Response:
    """Leads on by a relative address, for the app may lie below any prefix."""
    return RedirectResponse(f"{up_from(below(request))}{page}", 303)
