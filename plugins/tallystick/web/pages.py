"""The pages: what the JSON routes answer, as HTML that needs no script to be read.

A page links by relative addresses only, so it works below any prefix and inside Airflow's frame.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Request, Response, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, PackageLoader, Template
from markupsafe import Markup

from tallystick.domain.identities import FeedName
from tallystick.domain.report.troubles import named_findings, spans_of, troubles_of
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.ledger import Ledger
from tallystick.orchestration.dag_ids import INGEST, KINDS, RECONCILE, REPAIR, dag_id_of, feed_of
from tallystick.orchestration.repair_conf import MOST_NAMED
from tallystick.report.html_page import environment, page_asset
from tallystick.report.sparks import spark_of
from tallystick.report.wording import duration_text, grouped, instant_text
from tallystick.web import routes
from tallystick.web.access import (
    PageReader,
    User,
    form_token_for,
    may_change,
    name_of,
    not_found,
    require_visible,
)
from tallystick.web.airflow_rest import AirflowRest
from tallystick.web.answers import AskedRunPart, RepairsAnswer
from tallystick.web.dag_runs import is_ours, repairs_of
from tallystick.web.desk import LedgerDesk
from tallystick.web.groups import feeds_in_group, of_group
from tallystick.web.history import newest_first
from tallystick.web.reading import Search
from tallystick.web.routes import (
    Airflow,
    Before,
    Desk,
    Digits,
    Id,
    Name,
    Number,
    OneOf,
    Skip,
    Until,
    What,
)
from tallystick.web.stored_reports import seen_in

ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}

pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)

_PARTITIONS: Final = 50
_TROUBLES: Final = 20
_BATCHES: Final = 20
_REPORTS: Final = 5
_REPORTS_OF_LIST: Final = 50
_NOW: Final = {INGEST: "Land now", RECONCILE: "Check now"}
"""The button for a run of each kind of DAG."""
_VERDICTS: Final = tuple(reversed(Verdict))


@dataclass(frozen=True, slots=True)
class Acts:
    """What this user may do about a feed or a finding, and what is under way."""

    name: str
    may_change: bool
    repairs: RepairsAnswer | None
    """None where Airflow does not tell this user."""
    form_token: Callable[[str], str]
    """For each form's address, below the app's own."""

    @property
    def newest(self) -> AskedRunPart | None:
        """The repair that was asked for last."""
        return self.repairs.runs[0] if self.repairs and self.repairs.runs else None


async def _visible_feed(feed: Name, user: PageReader) -> FeedName:
    """The feed that the path names, if the reader may see it."""
    await require_visible(user, FeedName(feed))
    return FeedName(feed)


Feed = Annotated[FeedName, Depends(_visible_feed)]


@pages.get("/")
async def all_feeds(request: Request, user: PageReader, desk: Desk) -> Response:
    """All feeds, worst first."""
    return _page(request, "feeds.html", answer=await routes.feeds(user, desk))


@pages.get("/feeds/{feed}")
async def one_feed(
    request: Request,
    feed: Feed,
    user: PageReader,
    desk: Desk,
    airflow: Airflow,
    search: Digits = "",
    verdict: str = "",
    offset: Skip = 0,
    findings: Skip = 0,
    before: Before | None = None,
) -> Response:
    """A feed: what stands, its coverage, its partitions, its batches."""
    wanted = _verdict(verdict)
    # Airflow is asked while the ledger is.
    (
        acts,
        (
            (answer, troubles, signs),
            partitions,
            batches,
            reports,
            drawn,
        ),
    ) = await asyncio.gather(
        _acts(user, airflow, feed),
        asyncio.gather(
            routes.feed_with_signs(feed, user, desk),
            routes.partitions(feed, desk, search, wanted, offset, _PARTITIONS),
            routes.batches(feed, desk, before, _BATCHES),
            routes.reports(feed, desk, None, _REPORTS),
            desk.ask(partial(request.app.state.drawings.of, feed=feed)),
        ),
    )
    if answer is None:
        if await desk.ask(partial(feeds_in_group, group=feed)):
            found = of_group(await routes.feeds(user, desk), feed)
            return _page(request, "feeds.html", answer=found, group=feed)
        if not signs and not await is_ours(dag_id_of(INGEST, feed)):
            raise not_found(f"feed {feed}")
        return _page(request, "no_plan.html", feed=feed, signs=signs)
    return _page(
        request,
        "feed.html",
        acts=acts,
        answer=answer,
        signs=signs,
        troubles=troubles,
        skipped=findings,
        shown_troubles=_TROUBLES,
        partitions=partitions,
        batches=batches,
        reports=reports.reports,
        drawn=drawn,
        search=search,
        verdict=wanted,
        verdicts=_VERDICTS,
        now=_NOW,
        may_retire=acts.may_change and not answer.next_runs and await routes.is_gone(feed),
    )


@pages.get("/feeds/{feed}/find")
async def find(request: Request, feed: Feed, desk: Desk, what: What) -> Response:
    """Which batch and which file hold a record, or why none does."""
    return _page(request, "find.html", answer=await routes.find(feed, desk, what))


@pages.get("/feeds/{feed}/reports")
async def reports(
    request: Request, feed: Feed, desk: Desk, before: Before | None = None
) -> Response:
    """A feed's stored reports, to look at one or to compare two."""
    answer = await routes.reports(feed, desk, before, _REPORTS_OF_LIST)
    return _page(request, "reports.html", answer=answer)


@pages.get("/feeds/{feed}/reports/{number}")
async def report(
    request: Request,
    feed: Feed,
    number: Number,
    desk: Desk,
    search: Digits = "",
    verdict: str = "",
    offset: Skip = 0,
    findings: Skip = 0,
) -> Response:
    """A feed as one of its reports saw it."""
    asked = Search(search, _verdict(verdict), offset, _PARTITIONS)

    def told(ledger: Ledger) -> Mapping[str, Any] | None:
        found = ledger.report_value(feed, number)
        return found and seen_in(found, asked, findings, _TROUBLES)

    found = await desk.ask(told)
    if found is None:
        raise not_found(f"report {number} of feed {feed}")
    return _page(request, "report.html", number=number, asked=asked, verdicts=_VERDICTS, **found)


@pages.get("/feeds/{feed}/history")
async def history(request: Request, feed: Feed, desk: Desk, before: Until = None) -> Response:
    """What was wrong with a feed, how that ended, and what people accepted."""
    answer = await routes.history(feed, desk, before)
    return _page(request, "history.html", answer=answer, troubles=newest_first(answer.closed))


@pages.get("/feeds/{feed}/changes")
async def changes(
    request: Request, feed: Feed, desk: Desk, earlier: Before, later: Before
) -> Response:
    """Shows what two reports of a feed say differently."""
    answer = await routes.changes(feed, desk, earlier, later)
    return _page(request, "changes.html", answer=answer)


@pages.get("/dag")
async def dag(
    request: Request, user: PageReader, desk: Desk, airflow: Airflow, dag_id: Id
) -> Response:
    """The tab of a DAG: its feed."""
    feed = feed_of(dag_id)
    if feed is None:
        return _page(request, "other_dag.html", dag_id=dag_id, kinds=KINDS)
    await require_visible(user, feed)
    try:
        return await one_feed(request, feed, user, desk, airflow)
    except HTTPException as refusal:
        if refusal.status_code != status.HTTP_404_NOT_FOUND:
            raise
    return _page(request, "other_dag.html", dag_id=dag_id, kinds=KINDS)


@pages.get("/run")
async def run(
    request: Request,
    user: PageReader,
    desk: Desk,
    airflow: Airflow,
    dag_id: Id,
    run_id: Id,
    feed: OneOf = None,
) -> Response:
    """The tab of a run, and where its tasks link to."""
    if feed_of(dag_id) is None:
        return _page(request, "other_dag.html", dag_id=dag_id, kinds=KINDS)
    answer = await routes.run_for(user, desk, airflow, dag_id, run_id, feed)
    is_dry_repair = answer.asked and answer.asked.is_dry_run and dag_id.startswith(f"{REPAIR}_")
    acts = await _acts(user, airflow, FeedName(answer.feed)) if is_dry_repair else None
    return _page(request, "run.html", answer=answer, acts=acts)


@pages.get("/batches/{batch_id}")
async def batch(request: Request, batch_id: Name, user: PageReader, desk: Desk) -> Response:
    """A batch: its offsets, its files, its proof, and how to read it."""
    return _page(request, "batch.html", answer=await routes.batch(batch_id, user, desk))


@pages.get("/findings/{number}")
async def finding(
    request: Request, number: Number, user: PageReader, desk: Desk, airflow: Airflow
) -> Response:
    """A finding: what, where, since when, what ends it, what to do, and the buttons that do it."""
    return await finding_page(request, number, user, desk, airflow)


async def finding_page(
    request: Request,
    number: int,
    user: User,
    desk: LedgerDesk,
    airflow: AirflowRest,
    wrong: str = "",
) -> Response:
    """The finding; with what is wrong with the form that was sent from here, and what it said."""
    answer = await routes.found_for(user, desk, number)
    acts = await _acts(user, airflow, FeedName(answer.finding.feed), about=number)
    sent = await request.form() if wrong else {}
    page = _page(request, "finding.html", answer=answer, acts=acts, wrong=wrong, sent=sent)
    page.status_code = 422 if wrong else 200
    return page


@pages.get("/assets/{name}")
async def asset(name: str, user: PageReader) -> Response:
    """The style and the script, which the browser keeps."""
    if name not in ASSETS:
        raise not_found(f"file {name}")
    kept = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(asset_text(name), media_type=ASSETS[name], headers=kept)


async def _acts(
    user: User, airflow: AirflowRest, feed: FeedName, *, about: int | None = None
) -> Acts:
    return Acts(
        name_of(user),
        await may_change(user, feed),
        await repairs_of(airflow, user, feed, about=about),
        partial(form_token_for, user),
    )


def refusal(request: Request, code: int, what: str, next_step: str = "") -> Response:
    """Shows what could not be shown, and why."""
    page = _page(request, "refusal.html", what=what, next_step=next_step)
    page.status_code = code
    return page


def not_understood(error: RequestValidationError) -> str:
    """Says which of the values that were sent have no meaning."""
    places = ", ".join(
        ".".join(map(str, each["loc"]))
        + (f" ({each['ctx']['error']})" if each["type"] == "value_error" else "")
        for each in error.errors()
    )
    return f"What was sent is not understood: {places}."


def _verdict(name: str) -> Verdict | None:
    return Verdict(name) if name in list(Verdict) else None


def _page(request: Request, template: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(rendered(template, below(request), **values))


def rendered(template: str, below: str, **values: Any) -> str:
    """The page; `below` is its address below the app's own, for its links are relative."""
    return _template(template).render(up=up_from(below), version=_version(), **values)


def below(request: Request) -> str:
    """The address below the app's own."""
    return request.url.path.removeprefix(request.scope.get("root_path", ""))


def up_from(below: str) -> str:
    """From an address below the app's own up to the app's.

    >>> up_from("/findings/3"), up_from("/")
    ('../', '')
    """
    return "../" * (below.count("/") - 1)


@cache
def asset_text(name: str) -> str:
    """The file's text: the report's own, with what these pages add."""
    text = (files("tallystick.web") / "page" / name).read_text(encoding="utf-8")
    return page_asset("page.css" if name == "page.css" else "plots.js") + text


@cache
def _version() -> str:
    """Another one whenever a file is another: the browser then asks for it again."""
    texts = "".join(asset_text(name) for name in ASSETS)
    return sha256(texts.encode()).hexdigest()[:12]


@cache
def _template(name: str) -> Template:
    ours = (PackageLoader(f"tallystick.{each}", "page") for each in ("web", "report"))
    made = environment(ChoiceLoader(list(ours)))
    made.globals["most_named"] = MOST_NAMED
    made.globals["dag_id_of"] = dag_id_of
    made.filters["json"] = _indented
    made.filters["instant"] = _time
    made.filters["spans"] = spans_of
    made.globals["spark_of"] = spark_of
    made.globals["duration_text"] = duration_text
    made.filters["counted_findings"] = _counted_findings
    made.filters["troubles"] = troubles_of
    return made.get_template(name)


def _time(instant: datetime | None) -> str:
    """The instant, as an element that the script tells in the reader's zone."""
    text = instant_text(instant)
    if instant is None:
        return text
    return Markup('<time datetime="{}">{}</time>').format(instant.isoformat(), text)


def _counted_findings(numbers: Collection[int]) -> str:
    named = named_findings(sorted(numbers))
    return named if len(numbers) == 1 else f"the {grouped(len(numbers))} {named}"


def _indented(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
