"""What Airflow allows is read before anything is claimed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.orchestration.stage import AROUND, LANDED, Stage, mapped, run

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    # Airflow's own: it runs a small api-server in this process.
    pytest.mark.filterwarnings("default"),
]


def test_a_run_plans_no_more_than_airflow_maps_and_the_next_one_lands_the_rest(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "2")

    first, second = run(dags["ingest_orders"]), run(dags["ingest_orders"])

    assert (first.state, second.state) == ("success", "success")
    assert first.tasks == AROUND | {"announce": "success"} | mapped(*[LANDED] * 2)
    assert second.tasks == AROUND | {"announce": "success"} | mapped(LANDED)
    assert stage.story.published_offsets() == {n: list(range(10)) for n in range(3)}
