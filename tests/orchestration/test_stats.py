"""Airflow's own Stats: what our tasks tell, by the names of docs/metrics.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.orchestration.stage import Stage, run
from tests.support.repository import DOCS

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]


class Backend:
    """Takes what Airflow would send; fails where it is told to."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, Any, dict[str, str]]] = []
        self.is_away = False

    def __getattr__(self, kind: str) -> Any:
        def take(name: str, *args: Any, tags: dict[str, str] | None = None, **more: Any) -> None:
            if name.startswith("tallystick."):
                if self.is_away:
                    raise OSError("the backend is away")
                self.told.append((kind, name, (*args, *more.values())[0], tags or {}))

        return take

    def timer(self, *args: Any, **more: Any) -> Any:
        from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

        return NoStatsLogger.timer(*args, **more)


@pytest.fixture
def backend() -> Iterator[Backend]:
    from airflow.sdk._shared.observability.metrics import stats as really
    from airflow.sdk.observability import stats

    found = Backend()
    before = really._factory, really._export_legacy_names
    stats.initialize(factory=lambda: found, export_legacy_names=False)
    yield found
    stats.initialize(factory=before[0], export_legacy_names=before[1])


def test_tasks_tell_what_they_took_and_how_the_feed_is(
    stage: Stage, dags: Any, backend: Backend
) -> None:
    run(dags["ingest_orders"])
    run(dags["reconcile_orders"])
    assert {tags["feed"] for *_, tags in backend.told} == {"orders"}
    steps = {tags["step"] for _, _, _, tags in backend.told if "step" in tags}
    assert steps >= {"finish", "plan", "land", "commit_and_publish", "check", "reconcile"}
    rows = [value for _, name, value, _ in backend.told if name == "tallystick.committed_rows"]
    assert rows == [10, 10, 10]
    gauges = {name: value for kind, name, value, _ in backend.told if kind == "gauge"}
    assert (gauges["tallystick.verdict"], gauges["tallystick.lag_offsets"]) == (0, 0)


def test_every_name_is_documented(stage: Stage, dags: Any, backend: Backend) -> None:
    run(dags["ingest_orders"])
    run(dags["reconcile_orders"])
    documented = set(re.findall(r"`(tallystick\.\w+)`", (DOCS / "metrics.md").read_text()))
    told = {name for _, name, _, _ in backend.told}
    # Nothing waits, so there is no time to a loss.
    assert documented - told == {"tallystick.time_to_loss_seconds"}
    assert told <= documented


def test_a_backend_that_is_away_fails_no_task(stage: Stage, dags: Any, backend: Backend) -> None:
    backend.is_away = True
    assert run(dags["ingest_orders"]).state == "success"
