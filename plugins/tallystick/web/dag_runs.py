"""Runs of our DAGs as Airflow knows them, and how a repair is begun: by Airflow's own API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeVar

from airflow.models.dag import DagModel, DagTag
from airflow.utils.session import create_session
from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool

from tallystick.domain.identities import FeedName
from tallystick.domain.plain_json import from_plain
from tallystick.errors import ConfigurationError
from tallystick.orchestration.dag_ids import INGEST, REPAIR, TAG, dag_id_of, feed_of
from tallystick.orchestration.repair_conf import digests_of, numbers_of
from tallystick.orchestration.run_context import SHOWN
from tallystick.settings.group_names import group_of
from tallystick.web.access import User
from tallystick.web.airflow_rest import AirflowRefused, AirflowRest
from tallystick.web.answers import AskedRunPart, DryRunPart, RepairsAnswer

T = TypeVar("T")

_NEWEST: Final = 20
_TASK_THAT_SHOWS: Final = {INGEST: "plan", REPAIR: "begin"}


async def run_of_airflow(
    airflow: AirflowRest, user: User, dag_id: str, run_id: str
) -> AskedRunPart | None:
    """The run, with what its dry run has shown; None where Airflow has none, or won't tell."""
    try:
        found = await airflow.get(user, "dags", dag_id, "dagRuns", run_id)
    except AirflowRefused:
        return None
    return await _with_plan(airflow, user, _run_part(found))


async def repairs_of(
    airflow: AirflowRest, user: User, feed: FeedName, *, about: int | None = None
) -> RepairsAnswer | None:
    """The newest runs of the feed's repair, or those of them that name a finding; newest first.

    None where the user may not see them, or Airflow does not tell. Of the newest one the plan is
    told, if it was a dry run.
    """
    dag_id = dag_id_of(REPAIR, feed)
    newest = {"limit": _NEWEST, "order_by": "-run_after"}
    try:
        dag, found = await asyncio.gather(
            airflow.get(user, "dags", dag_id),
            airflow.get(user, "dags", dag_id, "dagRuns", **newest),
        )
    except AirflowRefused:
        return None
    runs = [_run_part(each) for each in found["dag_runs"] if _feed_in(each) in (None, feed)]
    if about is not None:
        runs = [each for each in runs if about in each.findings]
    runs = [*[await _with_plan(airflow, user, each) for each in runs[:1]], *runs[1:]]
    return RepairsAnswer(feed=feed, dag_id=dag_id, is_paused=bool(dag["is_paused"]), runs=runs)


async def begin_run(
    airflow: AirflowRest,
    user: User,
    dag_id: str,
    conf: Mapping[str, object],
    *,
    unpause: bool,
) -> AskedRunPart:
    """A run of the DAG, triggered as this user; HTTPException with Airflow's refusal.

    A paused DAG begins no run, so whoever may unpause it can do so with the same form.
    """
    body = {"logical_date": None, "conf": conf}
    try:
        if unpause:
            await airflow.patch(
                user, "dags", dag_id, body={"is_paused": False}, update_mask="is_paused"
            )
        return _run_part(await airflow.post(user, "dags", dag_id, "dagRuns", body=body))
    except AirflowRefused as refusal:
        raise _refused(refusal) from refusal


def _refused(refusal: AirflowRefused) -> HTTPException:
    """Airflow's refusal as ours; what is Airflow's own trouble is no fault of who asks."""
    if refusal.status == 504:  # it may have been done, or be done yet
        return HTTPException(504, f"Airflow has not answered: {refusal.reason}")
    status = refusal.status if 400 <= refusal.status < 500 else 502
    return HTTPException(status, f"Airflow has not done it: {refusal.reason}")


async def _with_plan(airflow: AirflowRest, user: User, run: AskedRunPart) -> AskedRunPart:
    kind, _, _ = run.dag_id.partition("_")
    if not run.is_dry_run or kind not in _TASK_THAT_SHOWS:
        return run
    task = ("taskInstances", _TASK_THAT_SHOWS[kind], "xcomEntries", SHOWN)
    with suppress(AirflowRefused):  # not yet, or this user may not read it
        found = await airflow.get(user, "dags", run.dag_id, "dagRuns", run.run_id, *task)
        return run.but(plan=_plan_in(found["value"]))
    return run


def _plan_in(value: Any) -> DryRunPart | None:
    """Some versions of Airflow give the value as text; what is no plan of ours is none."""
    with suppress(ValueError):
        return from_plain(DryRunPart, json.loads(value) if isinstance(value, str) else value)
    return None


def _run_part(run: Mapping[str, Any]) -> AskedRunPart:
    conf = run.get("conf") or {}
    is_repair = run["dag_id"].startswith(f"{REPAIR}_")
    return AskedRunPart(
        dag_id=run["dag_id"],
        run_id=run["dag_run_id"],
        state=run["state"],
        is_dry_run=bool(conf.get("dry_run", is_repair)),
        findings=_named_in(conf, numbers_of) if is_repair else (),
        evidence=_named_in(conf, digests_of) if is_repair else (),
        feed=_feed_in(run),
        asked_by=run.get("triggering_user_name"),
        queued_at=_instant(run.get("queued_at")),
        ended_at=_instant(run.get("end_date")),
        plan=None,
    )


def _feed_in(run: Mapping[str, Any]) -> str | None:
    """The feed of its group that a run names; a conf may hold anything."""
    named = (run.get("conf") or {}).get("feed")
    is_one = isinstance(named, str) and group_of(named) == feed_of(run["dag_id"])
    return named if is_one else None


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _named_in(
    conf: Mapping[str, Any], named_in: Callable[[Mapping[str, Any]], Sequence[T]]
) -> Sequence[T]:
    try:
        return named_in(conf)
    except ConfigurationError:  # the run itself says so
        return ()


async def is_paused(dag_id: str) -> bool:
    """True while Airflow begins no run of the DAG."""
    return await run_in_threadpool(_is_paused, dag_id)


def _is_paused(dag_id: str) -> bool:
    with create_session() as session:
        return bool(session.query(DagModel.is_paused).filter_by(dag_id=dag_id).scalar())


async def is_ours(dag_id: str) -> bool:
    """True for a DAG of a feed, and not for one of another kind whose id begins alike."""
    return await run_in_threadpool(_has_tag, dag_id)


def _has_tag(dag_id: str) -> bool:
    with create_session() as session:
        return session.get(DagTag, (TAG, dag_id)) is not None
