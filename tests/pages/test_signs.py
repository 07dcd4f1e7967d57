"""The first sentence of the page: whatever is wrong is a sign, and a feed in order has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tallystick.domain.rules.waivers import WaiverRequest, WaiverWish
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.overview import ReportHead
from tallystick.web.answers import FeedAnswer
from tallystick.web.dag_heads import DagHead
from tallystick.web.signs import signs_of
from tests.support.builders import FEED, NOON

HOUR = timedelta(hours=1)
REPORT = ReportHead(3, NOON - HOUR, Verdict.PROVEN_OK, NOON - HOUR, None)
WHOLE = FeedAnswer(
    feed=FEED, topic="t", verdict=Verdict.PROVEN_OK, complete_up_to=NOON, complete_by=None,
    complete_told_at=None, lag=0, seconds_to_loss=None, partitions=1, looked_at=NOON,
    border_at=None, storage_heard_at=NOON - HOUR, report=REPORT, findings={}, open_findings=0,
    open_since=None, failing_at=None, open_troubles=0, runs=(),
)  # fmt: skip
WISH = WaiverWish(finding_id=7, reason="known", asked_by="ada", expires_at=NOON + HOUR, digest="d")
ASKED = WaiverRequest(number=1, wish=WISH, asked_at=NOON, has_expired=False)


def dags(**changed: Mapping[str, Any]) -> dict[str, DagHead]:
    """The feed's DAGs, all well but for what is changed, by kind."""
    all_well = {
        kind: DagHead(f"{kind}_{FEED}", False, False, NOON, NOON + HOUR)
        for kind in ("ingest", "reconcile", "deadline")
    }
    return {kind: replace(head, **changed.get(kind, {})) for kind, head in all_well.items()}


FAILS = {"failing_since": NOON, "failed_run": "scheduled__1", "sentence": "It is away."}
STUCK = FAILS | {"is_stuck": True}
DEAD = {kind: {"next_at": NOON - 30 * HOUR} for kind in ("ingest", "reconcile", "deadline")}
GONE = {kind: {"is_stale": True} for kind in ("ingest", "reconcile", "deadline")}
ROWS: list[tuple[str, FeedAnswer | None, dict[str, DagHead], tuple[WaiverRequest, ...], list[str]]]
ROWS = [
    ("all is well", WHOLE, dags(), (), []),
    ("accepted by two people", WHOLE.but(verdict=Verdict.WAIVED), dags(), (), []),
    (
        "a loss",
        WHOLE.but(verdict=Verdict.PROVEN_LOSS, open_findings=3, open_troubles=1, open_since=NOON),
        dags(),
        (),
        [f"PROVEN_LOSS: 1 trouble (3 findings), {NOON}"],
    ),
    ("its file is broken", WHOLE, dags(**GONE), (), [f"Airflow has no ingest_{FEED}: ..., {NOON}"]),
    ("Airflow never had it", WHOLE, {}, (), [f"Airflow has no ingest_{FEED}: ..., None"]),
    ("a feed that was ended", None, dags(**GONE), (), []),
    (
        "its ingest is gone",
        WHOLE,
        dags(ingest={"is_stale": True}),
        (),
        [f"Airflow has no ingest_{FEED}: ..., {NOON}"],
    ),
    (
        "its reconcile is gone",
        WHOLE.but(storage_heard_at=NOON - 240 * HOUR),
        dags(reconcile={"is_stale": True}),
        (),
        [f"Airflow has no reconcile_{FEED}: ..., {NOON}"],
    ),
    (
        "a reconcile that never was, before the first plan",
        None,
        {"ingest": dags()["ingest"]},
        (),
        [f"Airflow has no reconcile_{FEED}: ..., None", "It has no plan yet, None"],
    ),
    (
        "the scheduler is dead",
        WHOLE.but(storage_heard_at=NOON - 49 * HOUR),
        dags(**DEAD),
        (),
        [f"ingest_{FEED} has not begun, {NOON - 30 * HOUR}"],
    ),
    ("it begins at any moment", WHOLE, dags(ingest={"next_at": NOON - HOUR}), (), []),
    ("no worker takes it", WHOLE, dags(ingest=STUCK), (), [f"ingest_{FEED} does not end, {NOON}"]),
    ("a deadline is red", WHOLE, dags(deadline=FAILS), (), [f"deadline_{FEED} fails, {NOON}"]),
    (
        "two are paused",
        WHOLE,
        dags(ingest={"is_paused": True}, reconcile={"is_paused": True}),
        (),
        [f"ingest_{FEED} is paused, None", f"reconcile_{FEED} is paused, None"],
    ),
    ("nobody waits for a paused deadline", WHOLE, dags(deadline={"is_paused": True}), (), []),
    ("it has not begun", None, dags(), (), ["It has no plan yet, None"]),
    ("before its first plan", None, dags(ingest=FAILS), (), [f"ingest_{FEED} fails, {NOON}"]),
    (
        "its proof is old, whatever the newest report has asked",
        WHOLE.but(storage_heard_at=NOON - 49 * HOUR),
        dags(),
        (),
        [f"No reconcile has proven it, {NOON - 49 * HOUR}"],
    ),
    (
        "never proven",
        WHOLE.but(storage_heard_at=None),
        dags(),
        (),
        ["No reconcile has proven it, None"],
    ),
    (
        "its proof is old, for its reconcile fails",
        WHOLE.but(storage_heard_at=None),
        dags(reconcile=FAILS),
        (),
        [f"reconcile_{FEED} fails, {NOON}"],
    ),
    (
        "somebody asks for two at once",
        WHOLE,
        dags(),
        (ASKED, replace(ASKED, wish=replace(WISH, finding_id=8))),
        [f"A request by ada to accept finding 7 and 1 more waits, {NOON}"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "known", "requests", "expected"),
    [pytest.param(*row, id=name) for name, *row in ROWS],
)
def test_whatever_is_wrong_is_said_with_since_when_and_who_must_act(
    answer: FeedAnswer | None,
    known: dict[str, DagHead],
    requests: tuple[WaiverRequest, ...],
    expected: list[str],
) -> None:
    signs = signs_of(FEED, answer, known, requests, NOON)

    said = [f"{each.said.partition(': the')[0]}, {each.since}" for each in signs]
    assert said == [each.replace(": ...", "") for each in expected]
    assert all(each.act.endswith(".") and each.feed == FEED for each in signs)
