"""Which batches a run tells its asset of: what was published, whichever task lived to say so."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.domain.batches.states import BatchState
from tests.orchestration.test_announcement import a_batch

PUBLISHED, COMMITTED = BatchState.PUBLISHED, BatchState.COMMITTED
A, B, C, D = (a_batch(each, (each, 0, 10)) for each in range(4))


def told(
    monkeypatch: pytest.MonkeyPatch,
    states: Mapping[Any, BatchState],
    *,
    planned: list[str] | None,
    own: list[str],
) -> list[int]:
    """The partitions of which the asset is told; each batch has one. `own` are what the ledger says
    that this run has published.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from tallystick.orchestration import ingest
    from tallystick.orchestration.ingest import asset_of

    def committed_batch(batch_id: str) -> Any:
        for plan, state in states.items():
            if plan.batch_id == batch_id:
                return SimpleNamespace(plan=plan, state=state)
        return None

    def published_by(feed: str, owner: str) -> list[str]:
        return own if (feed, owner) == ("orders", "ingest_orders/third") else []

    def xcom_pull(*, task_ids: str) -> object:
        return {ingest.PLAN_TASK: planned}[task_ids]

    ledger: Any = SimpleNamespace(committed_batch=committed_batch, published_by=published_by)
    monkeypatch.setattr(ingest, "open_ledger", lambda: nullcontext(ledger))
    feed: Any = SimpleNamespace(name="orders")
    event = SimpleNamespace(extra=None)
    context: Any = {
        "ti": SimpleNamespace(xcom_pull=xcom_pull, dag_id="ingest_orders", run_id="third"),
        "outlet_events": {asset_of("orders"): event},
    }
    try:
        ingest.announce_batches(feed, context)
    except AirflowSkipException:
        return []
    return [each["partition"] for each in event.extra["ranges"]]


def test_what_the_run_has_published_is_told_whichever_try_of_whichever_task_did_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = {A: PUBLISHED, B: PUBLISHED}
    assert told(monkeypatch, states, planned=[B.batch_id], own=[A.batch_id, B.batch_id]) == [0, 1]


def test_what_it_planned_is_told_though_another_run_has_published_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert told(monkeypatch, {A: PUBLISHED}, planned=[A.batch_id], own=[]) == [0]


def test_what_is_committed_only_is_told_by_the_run_that_publishes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [A.batch_id, B.batch_id, C.batch_id]
    states = {A: PUBLISHED, B: COMMITTED, D: PUBLISHED}
    found = told(monkeypatch, states, planned=ids, own=[D.batch_id, A.batch_id])
    assert found == [0, 3]


def test_nothing_is_told_where_nothing_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, {}, planned=None, own=[]) == []
