"""Which batches a run tells its asset of, whoever lived to say so, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId
from tests.support.builders import a_batch, planned

PUBLISHED, COMMITTED = BatchState.PUBLISHED, BatchState.COMMITTED


def batch_of(number: int, *ranges: tuple[int, int, int], ordinal: int = 1) -> BatchPlan:
    """A batch of (partition, from_offset, until_offset)."""
    claims = (planned(start, until, partition=partition) for partition, start, until in ranges)
    return a_batch(*claims, batch_id=BatchId(f"{number:032x}"), ordinal=ordinal)


A, B, C, D = (batch_of(each, (each, 0, 10)) for each in range(4))


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


def test_adjacent_ranges_of_a_generation_are_one() -> None:
    from tallystick.orchestration.ingest import landed_extra

    first, second = batch_of(1, (0, 5, 10), (1, 0, 3)), batch_of(2, (0, 0, 5))
    extra = landed_extra([first, second, batch_of(3, (0, 0, 4), ordinal=2)])
    assert extra == {
        "batches": 3,
        "offsets": 17,
        "ranges": [
            {"generation": 1, "partition": 0, "from_offset": 0, "until_offset": 10},
            {"generation": 1, "partition": 1, "from_offset": 0, "until_offset": 3},
            {"generation": 2, "partition": 0, "from_offset": 0, "until_offset": 4},
        ],
        "ranges_left_out": 0,
    }


def test_ten_thousand_partitions_stay_below_ten_kilobytes() -> None:
    from tallystick.orchestration.ingest import landed_extra

    wide = batch_of(1, *((partition, 10**15, 10**15 + 7) for partition in range(10_000)))
    extra = landed_extra([wide])
    assert len(json.dumps(extra)) < 10_000
    assert extra["offsets"] == 70_000
    assert len(extra["ranges"]) + extra["ranges_left_out"] == 10_000


def test_the_asset_is_named_after_the_feed() -> None:
    from tallystick.orchestration.ingest import asset_of

    assert asset_of("web_orders-2").name == "tallystick://web_orders-2"
