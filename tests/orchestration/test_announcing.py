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
    waiting: list[str] | None,
    done: list[str],
) -> list[int]:
    """The partitions of which the asset is told; each batch has one."""
    from airflow.sdk.exceptions import AirflowSkipException

    from tallystick.orchestration import ingest_tasks
    from tallystick.orchestration.announcement import asset_of

    def committed_batch(batch_id: str) -> Any:
        for plan, state in states.items():
            if plan.batch_id == batch_id:
                return SimpleNamespace(plan=plan, state=state)
        return None

    def xcom_pull(*, task_ids: object, key: str = "return_value") -> object:
        if task_ids == [ingest_tasks.COMMIT_TASK]:
            return [*done, None]
        return {
            (ingest_tasks.FINISH_TASK, ingest_tasks.WAITING): waiting,
            (ingest_tasks.PLAN_TASK, "return_value"): planned,
        }[str(task_ids), key]

    ledger: Any = SimpleNamespace(committed_batch=committed_batch)
    monkeypatch.setattr(ingest_tasks, "open_ledger", lambda: nullcontext(ledger))
    feed: Any = SimpleNamespace(name="orders")
    event = SimpleNamespace(extra=None)
    context: Any = {
        "ti": SimpleNamespace(xcom_pull=xcom_pull),
        "outlet_events": {asset_of("orders"): event},
    }
    try:
        ingest_tasks.announce(feed, context)
    except AirflowSkipException:
        return []
    return [each["partition"] for each in event.extra["ranges"]]


def test_a_batch_whose_task_died_after_it_had_published_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [A.batch_id, B.batch_id]
    states = {A: PUBLISHED, B: PUBLISHED}
    assert told(monkeypatch, states, planned=ids, waiting=[], done=[A.batch_id]) == [0, 1]


def test_what_is_committed_only_is_told_by_the_run_that_publishes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [A.batch_id, B.batch_id, C.batch_id]
    states = {A: PUBLISHED, B: COMMITTED, D: PUBLISHED}
    found = told(monkeypatch, states, planned=ids, waiting=[D.batch_id], done=[A.batch_id])
    assert found == [0, 3]


def test_nothing_is_told_where_nothing_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, {}, planned=None, waiting=None, done=[]) == []
