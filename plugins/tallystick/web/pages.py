"""The pages: what the JSON routes answer, as HTML that needs no script to be read.

A page links by relative addresses only, so it works below any prefix and inside Airflow's frame.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse

from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict
from tallystick.orchestration.dag_ids import feed_of
from tallystick.web import routes
from tallystick.web.access import User, not_found, reader, require_visible
from tallystick.web.rendering import ASSETS, asset_text, rendered
from tallystick.web.routes import Before, Desk, Digits, Id, Name, Number, Offset

pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)
Reader = Annotated[User, Depends(reader)]

_PARTITIONS: Final = 50
_FINDINGS: Final = 20
_BATCHES: Final = 20


@pages.get("/")
async def all_feeds(request: Request, user: Reader, desk: Desk) -> Response:
    """All feeds, worst first."""
    return _page(request, "feeds.html", answer=await routes.feeds(user, desk))


@pages.get("/feeds/{feed}")
async def one_feed(
    request: Request,
    feed: Name,
    user: Reader,
    desk: Desk,
    search: Digits = "",
    verdict: str = "",
    offset: Offset = 0,
    findings: Offset = 0,
    before: Before | None = None,
) -> Response:
    """A feed: what stands, its coverage, its partitions, its batches."""
    name = FeedName(feed)
    await require_visible(user, name)
    wanted = Verdict(verdict) if verdict in list(Verdict) else None
    return _page(
        request,
        "feed.html",
        answer=await routes.one_feed(name, desk),
        found=await routes.findings(name, desk, findings, _FINDINGS),
        partitions=await routes.partitions(name, desk, search, wanted, offset, _PARTITIONS),
        batches=await routes.batches(name, desk, before, _BATCHES),
        search=search,
        verdict=wanted,
        verdicts=list(reversed(Verdict)),
    )


@pages.get("/dag")
async def dag(request: Request, user: Reader, desk: Desk, dag_id: Id) -> Response:
    """The tab of a DAG: its feed."""
    feed = feed_of(dag_id)
    if feed is None:
        raise not_found(f"feed of DAG {dag_id}")
    return await one_feed(request, feed, user, desk)


@pages.get("/run")
async def run(request: Request, user: Reader, desk: Desk, dag_id: Id, run_id: Id) -> Response:
    """The tab of a run, and where its tasks link to."""
    answer = await routes.run_for(user, desk, dag_id, run_id)
    return _page(request, "run.html", answer=answer)


@pages.get("/findings/{number}")
async def finding(request: Request, number: Number, user: Reader, desk: Desk) -> Response:
    """A finding: what, where, since when, what ends it, what to do."""
    return _page(request, "finding.html", answer=await routes.found_for(user, desk, number))


@pages.get("/assets/{name}")
async def asset(name: str, user: Reader) -> Response:
    """The style and the script, which the browser keeps."""
    if name not in ASSETS:
        raise not_found(f"file {name}")
    kept = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(asset_text(name), media_type=ASSETS[name], headers=kept)


def trouble(request: Request, status: int, what: str, next_step: str = "") -> Response:
    """What could not be shown, and why."""
    page = _page(request, "trouble.html", what=what, next_step=next_step)
    page.status_code = status
    return page


def _page(request: Request, template: str, **values: Any) -> HTMLResponse:
    below = request.url.path.removeprefix(request.scope.get("root_path", ""))
    return HTMLResponse(rendered(template, below, **values))
