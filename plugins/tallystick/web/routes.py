"""The JSON routes: who is signed in asks the ledger, for feeds that they may see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Final

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from pydantic import AwareDatetime

from tallystick.domain.identities import BatchId, FeedName, Owner
from tallystick.domain.report.troubles import Trouble
from tallystick.domain.verdicts import Verdict
from tallystick.orchestration.dag_ids import feed_of
from tallystick.report.whereabouts import FOUND_BY, FindDocument, whereabouts
from tallystick.settings.group_names import group_of
from tallystick.web import landed, reading, stored_reports
from tallystick.web.access import (
    SIGNED_IN,
    SignedIn,
    User,
    may_see_import_errors,
    name_of,
    not_found,
    require_run_visible,
    require_visible,
    runs_visible_among,
    visible_among,
)
from tallystick.web.airflow_rest import AirflowRest
from tallystick.web.answers import (
    BatchAnswer,
    BatchesAnswer,
    ChangesAnswer,
    FailedTry,
    FeedAnswer,
    FeedsAnswer,
    FindingAnswer,
    FindingsAnswer,
    HistoryAnswer,
    PartitionsAnswer,
    RepairsAnswer,
    ReportsAnswer,
    RunAnswer,
    Sign,
)
from tallystick.web.broken_files import broken_files
from tallystick.web.dag_heads import dag_heads, heads_of
from tallystick.web.dag_runs import is_paused, repairs_of, run_of_airflow
from tallystick.web.desk import LedgerDesk
from tallystick.web.failed_tries import tries_of_run
from tallystick.web.groups import feeds_in_group
from tallystick.web.history import history_of
from tallystick.web.signs import signs_of


class DocumentRoute(APIRoute):
    """A route that answers with a document, in the JSON of all documents."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        # A dataclass needs no model of the answer; one would write instants in another form.
        super().__init__(path, endpoint, **(options | {"response_model": None}))


api = APIRouter(prefix="/api", dependencies=[SIGNED_IN], route_class=DocumentRoute)

Skip = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]
# No database takes a NUL, and none of our numbers is larger than one of its own.
_TEXT: Final[dict[str, Any]] = {"max_length": 250, "pattern": r"^[^\x00]+$"}
Id = Annotated[str, Query(**_TEXT)]
OneOf = Annotated[str | None, Query(**_TEXT)]
What = Annotated[str, Query(**_TEXT | {"max_length": 1000})]
Name = Annotated[str, Path(**_TEXT)]
Before = Annotated[int, Query(ge=1, lt=2**63)]
Number = Annotated[int, Path(ge=1, lt=2**63)]
Until = Annotated[AwareDatetime | None, Query()]
Digits = Annotated[str, Query(pattern=r"^\d{0,9}$")]


def desk_of(request: Request) -> LedgerDesk:
    """The app's way to the ledger, for this request."""
    return LedgerDesk(request.app.state.ledger)


def airflow_of(request: Request) -> AirflowRest:
    """The app's way to Airflow."""
    airflow: AirflowRest = request.app.state.airflow
    return airflow


Desk = Annotated[LedgerDesk, Depends(desk_of)]
Airflow = Annotated[AirflowRest, Depends(airflow_of)]


async def visible_feed(feed: Name, user: SignedIn) -> FeedName:
    """The feed that the path names, if the user may see it."""
    await require_visible(user, FeedName(feed))
    return FeedName(feed)


Feed = Annotated[FeedName, Depends(visible_feed)]


@api.get("/feeds")
async def feeds(user: SignedIn, desk: Desk) -> FeedsAnswer:
    """All feeds that the user may see, worst first; a run only to who may read its DAG's runs."""
    heads, requests, ended = await desk.ask(
        lambda ledger: (
            reading.heads_of_list(ledger),
            ledger.waiting_requests(),
            ledger.ended_feeds(),
        )
    )
    dags, now, broken = await dag_heads(), datetime.now(UTC), await broken_files()
    named = {each for each in broken if each}
    visible = await visible_among(user, {*dags, *named, *(each.feed for each in heads)})
    shown = [each for each in heads if each.feed in visible]
    found, recent = await desk.ask(
        lambda ledger: (
            reading.feeds_of(ledger, shown, now),
            ledger.recent_runs([each.feed for each in shown], most=reading.RUNS_OF_SPARK),
        )
    )
    seen = {feed: dags[feed] for feed in dags if feed in visible}
    may_see: set[FeedName | None] = {*visible}
    if None in broken and await may_see_import_errors(user):
        may_see.add(None)
    wrong = {feed: told for feed, told in broken.items() if feed in may_see}
    answer = reading.in_short(found, seen, requests, now, ended, recent, wrong)
    return answer.but(signs=await _seen_by(user, answer.signs))


async def _seen_by(user: User, signs: Sequence[Sign]) -> Sequence[Sign]:
    ids = {each.dag_id for each in signs if each.dag_id}
    runs = await runs_visible_among(user, ids)
    words = await runs_visible_among(user, runs, DagAccessEntity.XCOM)
    return [
        each.but(
            run_id=each.run_id if each.dag_id in runs else None,
            sentence=each.sentence if each.dag_id in words else None,
        )
        for each in signs
    ]


@api.get("/feeds/{feed}")
async def one_feed(feed: Feed, desk: Desk) -> FeedAnswer:
    """One feed, with its newest runs."""
    found = await desk.ask(lambda ledger: reading.feed_of_name(ledger, feed, datetime.now(UTC)))
    if found is None:
        raise not_found(f"feed {feed}")
    return reading.with_next_runs(found, await dag_heads(feed))


async def feed_with_signs(
    feed: FeedName, user: User, desk: LedgerDesk
) -> tuple[FeedAnswer | None, Sequence[Trouble], Sequence[Sign]]:
    """The same, what its standing findings come from, and what is wrong with it; None, and no
    trouble, before its first plan.
    """
    now = datetime.now(UTC)
    found, requests, ended = await desk.ask(
        lambda ledger: (
            reading.feed_with_troubles(ledger, feed, now),
            ledger.waiting_requests(),
            ledger.ended_feeds(),
        )
    )
    dags, broken = await dag_heads(feed), (await broken_files()).get(FeedName(group_of(feed)), ())
    answer, troubles = found or (None, ())
    known, waiting = heads_of(dags, feed), requests.get(feed, ())
    told = signs_of(feed, answer, known, waiting, now, ended.get(feed), broken)
    signs = await _seen_by(user, told)
    return answer and reading.with_next_runs(answer, dags), troubles, signs


@api.get("/feeds/{feed}/partitions")
async def partitions(
    feed: Feed,
    desk: Desk,
    search: Digits = "",
    verdict: Verdict | None = None,
    offset: Skip = 0,
    limit: Limit = 50,
) -> PartitionsAnswer:
    """A page of the partitions whose numbers begin so, and that have this verdict."""
    asked = reading.Search(search, verdict, offset, limit)
    return await desk.ask(lambda ledger: reading.partitions_of(ledger, feed, asked))


@api.get("/feeds/{feed}/batches")
async def batches(
    feed: Feed, desk: Desk, before: Before | None = None, limit: Limit = 50
) -> BatchesAnswer:
    """A page of the batches, newest first; `before` is the number that the last page gave."""
    return await desk.ask(partial(landed.batches_of, feed=feed, before=before, limit=limit))


@api.get("/feeds/{feed}/find")
async def find(feed: Feed, desk: Desk, what: What) -> FindDocument:
    """Where a record is: by partition and offset, by time, by file."""
    found = await desk.ask(partial(whereabouts, feed=feed, text=what))
    if found is None:
        raise HTTPException(422, f"Feed {feed} has nothing that is called so. Give {FOUND_BY}.")
    return found


@api.get("/feeds/{feed}/findings")
async def findings(feed: Feed, desk: Desk, offset: Skip = 0, limit: Limit = 50) -> FindingsAnswer:
    """A page of the standing findings, worst first."""
    return await desk.ask(partial(reading.findings_of, feed=feed, offset=offset, limit=limit))


@api.get("/feeds/{feed}/reports")
async def reports(
    feed: Feed, desk: Desk, before: Before | None = None, limit: Limit = 50
) -> ReportsAnswer:
    """A page of the stored reports, newest first; `before` is what the last page gave."""
    return await desk.ask(partial(stored_reports.reports_of, feed=feed, before=before, limit=limit))


@api.get("/feeds/{feed}/history")
async def history(feed: Feed, desk: Desk, before: Until = None) -> HistoryAnswer:
    """What was wrong, up to an instant; `before` is what the last page gave."""
    return await desk.ask(partial(history_of, feed=feed, until=before))


@api.get("/feeds/{feed}/changes")
async def changes(feed: Feed, desk: Desk, earlier: Before, later: Before) -> ChangesAnswer:
    """What a later report says that an earlier one did not."""
    found = await desk.ask(
        partial(stored_reports.changes_of, feed=feed, earlier=earlier, later=later)
    )
    if found is None:
        raise not_found(f"report {earlier} or {later} of feed {feed}")
    return found


@api.get("/feeds/{feed}/reports/{number}")
async def report(feed: Feed, number: Number, desk: Desk) -> Response:
    """A stored report as it was kept: `tallystick-report-1`."""
    text = await desk.ask(lambda ledger: ledger.report_text(feed, number))
    if text is None:
        raise not_found(f"report {number} of feed {feed}")
    return Response(text, media_type="application/json")


@api.get("/feeds/{feed}/repairs")
async def repairs(feed: Feed, user: SignedIn, airflow: Airflow) -> RepairsAnswer:
    """The newest runs of the feed's repair, as Airflow knows them."""
    found = await repairs_of(airflow, user, feed)
    if found is None:
        raise not_found(f"repair of feed {feed}")
    return found


@api.get("/batches/{batch_id}")
async def batch(batch_id: Name, user: SignedIn, desk: Desk) -> BatchAnswer:
    """One batch: what it holds, where it lies, and who says so."""
    known = BatchId(batch_id)
    feed = await desk.ask(lambda ledger: ledger.feed_of_batch(known))
    if feed is None or not await visible_among(user, [feed]):
        raise not_found(f"batch {batch_id}")
    return await desk.ask(partial(landed.batch_of, batch_id=known, feed=feed))


@api.get("/findings/{number}")
async def finding(number: Number, user: SignedIn, desk: Desk) -> FindingAnswer:
    """One finding, whatever became of it, with its rule."""
    return await found_for(user, desk, number)


@api.get("/run")
async def run(
    user: SignedIn, desk: Desk, airflow: Airflow, dag_id: Id, run_id: Id, feed: OneOf = None
) -> RunAnswer:
    """What one run of one of our DAGs has planned, landed, proven and found; of a group's DAG for
    one of its feeds.
    """
    return await run_for(user, desk, airflow, dag_id, run_id, feed)


async def found_for(user: User, desk: LedgerDesk, number: int) -> FindingAnswer:
    """The finding, if there is one and the user may see its feed."""
    feed = await desk.ask(partial(reading.feed_of_finding, number=number))
    if feed is None or not await visible_among(user, [feed]):
        raise not_found(f"finding {number}")
    name = name_of(user)
    found = await desk.ask(partial(reading.finding_of_number, number=number, reader=name))
    if found is None:
        raise not_found(f"finding {number}")
    return found


async def _tries_seen_by(user: User, dag_id: str, run_id: str) -> Sequence[FailedTry]:
    if not await runs_visible_among(user, [dag_id], DagAccessEntity.TASK_INSTANCE):
        return ()
    tries = await run_in_threadpool(tries_of_run, dag_id, run_id)
    if await runs_visible_among(user, [dag_id], DagAccessEntity.XCOM):
        return tries
    return [each.but(sentence=None) for each in tries]


async def is_gone(feed: FeedName) -> bool:
    """True for a feed without a file: Airflow has none of its DAGs, and none that is broken."""
    known = heads_of(await dag_heads(feed), feed).values()
    return all(each.is_stale for each in known) and group_of(feed) not in await broken_files()


async def run_for(
    user: User,
    desk: LedgerDesk,
    airflow: AirflowRest,
    dag_id: str,
    run_id: str,
    one: str | None = None,
) -> RunAnswer:
    """The run, if the user may see its DAG and its feed; of a group's, what `one` feed has of it.

    Without one, and where the run itself names none, all feeds of the group are named.
    """
    group = feed_of(dag_id)
    if group is None or group_of(one or group) != group:
        raise not_found(f"feed of DAG {dag_id}")
    await require_visible(user, group)
    await require_run_visible(user, dag_id)
    asked = await run_of_airflow(airflow, user, dag_id, run_id)
    feed = FeedName(one or (asked.feed if asked and asked.feed else group))
    owner = Owner(f"{dag_id}/{run_id}")
    answer = await desk.ask(partial(reading.run_of, feed=feed, owner=owner))
    if feed == group and answer.planned_at is None:
        answer = answer.but(feeds=await desk.ask(partial(feeds_in_group, group=group)) or None)
    if asked is None:
        return answer
    tries = await _tries_seen_by(user, dag_id, run_id)
    answer = answer.but(failed_tries=tries, is_paused=await is_paused(dag_id))
    named = await desk.ask(partial(reading.findings_asked_of, feed=feed, asked=asked))
    return answer.but(asked=asked, asked_findings=named)
