"""OpenLineage: what its provider takes from our tasks and writes by its own file transport."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.orchestration.stage import Stage, run
from tests.orchestration.test_connections import CONNECTIONS
from tests.support.repository import ROOT, said_by_new_python, tracked_modules

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]


@pytest.fixture
def connected(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    for conn_id, said in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", said)
    monkeypatch.setattr("tallystick.orchestration.lineage.open_ledger", stage.open_ledger)
    return stage


def _operator(stage: Stage, dags: Any, batch_id: str) -> Any:
    from tallystick.orchestration.batch_tasks import CommitOperator

    feed = dags["ingest_orders"].get_task("check").feed
    return CommitOperator(task_id="commit_and_publish", feed=feed, batch_id=batch_id, attempt=None)


def test_a_landed_batch_is_an_event_of_its_topic_directory_rows_and_ranges(
    connected: Stage, dags: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.openlineage.extractors.manager import ExtractorManager
    from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
    from airflow.utils.state import TaskInstanceState

    file = tmp_path / "events.json"
    transport = {"type": "file", "log_file_path": str(file), "append": True}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    run(dags["ingest_orders"])
    with connected.open_ledger() as ledger:
        batch = ledger.batches("orders")[0]  # type: ignore[arg-type]
    task = _operator(connected, dags, batch.status.plan.batch_id)
    found = ExtractorManager().extract_metadata(
        dagrun=SimpleNamespace(dag_id="ingest_orders", run_id="r"),
        task=task,
        task_instance_state=TaskInstanceState.SUCCESS,
        task_instance=SimpleNamespace(),
    )
    OpenLineageAdapter().complete_task(
        run_id="01941f29-7c00-7087-8906-40e512c257bd",
        job_name="ingest_orders.batch.commit_and_publish",
        end_time=datetime(2026, 11, 1, tzinfo=UTC).isoformat(),
        task=found,
        nominal_start_time=None,
        nominal_end_time=None,
        owners=None,
        tags=None,
        job_description=None,
        job_description_type=None,
    )
    (event,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert event["eventType"] == "COMPLETE"
    (source,), (target,) = event["inputs"], event["outputs"]
    assert (source["namespace"], source["name"]) == ("kafka://127.0.0.1:1", "orders")
    assert (target["namespace"], target["name"]) == ("hdfs://127.0.0.1:1", "/data/landing/orders")
    statistics = target["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (10, 1)
    assert statistics["size"] > 0
    told = event["run"]["facets"]["tallystick_batch"]
    assert told["batch"] == batch.status.plan.batch_id
    assert told["directory"].endswith(f"/batch={batch.status.plan.batch_id}")
    assert (told["offsets"], told["rows"], told["holes"], told["rangesLeftOut"]) == (10, 10, 0, 0)
    (offsets,) = told["ranges"]
    assert (offsets["from_offset"], offsets["until_offset"]) == (0, 10)


def test_a_batch_that_is_not_committed_has_no_lineage(connected: Stage, dags: Any) -> None:
    task = _operator(connected, dags, "0" * 16)
    assert task.get_openlineage_facets_on_complete(None) is None


def test_nothing_but_the_providers_own_call_imports_it() -> None:
    importing = [
        str(path)
        for path in tracked_modules()
        if path.parts[0] == "plugins"
        and re.search(r"(import|from) (airflow\.providers\.)?openlineage", _text(path))
    ]
    assert importing == ["plugins/tallystick/orchestration/lineage.py"]
    code = (
        "import sys; from tallystick.orchestration import factory, batch_tasks;"
        "print('tallystick.orchestration.lineage' in sys.modules)"
    )
    assert said_by_new_python(code) == "False"


def _text(path: Path) -> str:
    return (ROOT / path).read_text()
