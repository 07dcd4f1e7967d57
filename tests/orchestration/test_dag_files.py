"""What Airflow makes of the DAG files: which DAGs, in what shape, at what cost."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest

from tests.orchestration.conftest import FEEDS, ROOT
from tests.support.repository import said_by_new_python

DAGS = ROOT / "dags"
INGEST = {
    # task: (trigger rule, tasks directly after it)
    "finish": ("all_success", {"announce"}),
    "plan": ("all_success", {"batch.land", "batch.commit_and_publish"}),
    "batch.land": ("all_success", {"batch.commit_and_publish"}),
    "batch.commit_and_publish": ("all_success", {"announce"}),
    "announce": ("all_done", {"check"}),
    "check": ("all_done", {"announce_complete"}),
    "announce_complete": ("all_done_setup_success", set()),
}


def a_bag(folder: Path = DAGS) -> Any:
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=folder, known_pools={"default_pool", "spark_local"})


@pytest.fixture(scope="module")
def bag() -> Any:
    return a_bag()


def test_each_feed_has_its_dags_and_no_file_has_an_error(bag: Any) -> None:
    assert bag.import_errors == {}
    assert not any(bag.captured_warnings.values())
    assert set(bag.dags) == {
        f"{kind}_{feed}"
        for kind in ("ingest", "reconcile", "repair")
        for feed in ("orders", "windowed")
    }


def test_the_sample_feeds_have_dags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALLYSTICK_FEEDS")
    bag = a_bag()
    assert bag.import_errors == {}
    assert {"ingest_orders", "reconcile_orders", "repair_orders", "ingest_clicks"} <= set(bag.dags)


def test_an_ingest_dag_is_shaped_as_the_path_of_a_batch(bag: Any) -> None:
    found = {
        task.task_id: (task.trigger_rule.value, set(task.downstream_task_ids))
        for task in bag.dags["ingest_orders"].tasks
    }
    assert found == INGEST


def test_only_batches_are_mapped(bag: Any) -> None:
    from airflow.sdk.definitions.taskgroup import MappedTaskGroup

    group = bag.dags["ingest_orders"].task_group.get_child_by_label("batch")
    assert isinstance(group, MappedTaskGroup)


def test_broken_defaults_are_one_import_error_of_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FEEDS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_defaults.yaml").write_text("plan: {until: noww}\n")
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(tmp_path))
    bag = a_bag()
    assert bag.dags == {}
    [(file, error)] = bag.import_errors.items()
    assert Path(file).name == "feed_problems.py"
    assert error.count("_defaults.yaml:1: plan.until: 'noww' is not accepted") == 1
    assert "orders.yaml" not in error


def test_a_feed_s_labels_are_the_owner_and_the_tags_of_its_dags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(FEEDS / "orders.yaml", tmp_path)
    (tmp_path / "_defaults.yaml").write_text(
        "labels: {owner: ada, team: data, runbook: 'https://h/(a)'}\ncomplete_within: 2h\n"
    )
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(tmp_path))
    dags = a_bag().dags
    assert len(dags) == 4
    for dag_id, dag in dags.items():
        assert {*dag.tags} == {"tallystick", dag_id.split("_")[0], "owner:ada", "team:data"}
        assert {each.owner for each in dag.tasks} == {"ada"}
        assert "[Runbook](<https://h/(a)>)" in str(dag.doc_md)


@pytest.mark.parametrize(
    "dag_id", ["ingest_orders", "ingest_windowed", "reconcile_orders", "repair_orders"]
)
def test_every_dag_has_the_house_settings(bag: Any, dag_id: str) -> None:
    dag = bag.dags[dag_id]
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert dag.tags == {"tallystick", dag_id.partition("_")[0]}
    assert dag.doc_md
    for task in dag.tasks:
        assert task.owner == "tallystick"
        assert task.retries == 2
        assert task.retry_delay == timedelta(seconds=30)
        assert task.retry_exponential_backoff == 2


def test_landing_waits_in_the_feeds_own_pool(bag: Any) -> None:
    assert bag.dags["ingest_orders"].task_dict["batch.land"].pool == "default_pool"
    assert bag.dags["ingest_windowed"].task_dict["batch.land"].pool == "spark_local"
    assert bag.dags["ingest_windowed"].task_dict["batch.commit_and_publish"].pool == "default_pool"
    tasks = bag.dags["ingest_orders"].task_dict
    assert tasks["batch.land"].max_active_tis_per_dagrun == 4
    assert tasks["batch.commit_and_publish"].max_active_tis_per_dagrun == 4


def test_an_ingest_run_has_an_interval_as_wide_as_its_schedule(bag: Any) -> None:
    from airflow.serialization.encoders import coerce_to_core_timetable
    from airflow.timetables.interval import CronDataIntervalTimetable

    timetable = coerce_to_core_timetable(bag.dags["ingest_windowed"].timetable)
    assert isinstance(timetable, CronDataIntervalTimetable)
    nine = pendulum.datetime(2026, 11, 10, 9, tz="UTC")
    interval = timetable.infer_manual_data_interval(run_after=nine)
    # 00:00 to 06:00 in Berlin.
    assert interval.start == datetime(2026, 11, 9, 23, tzinfo=UTC)
    assert interval.end == datetime(2026, 11, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "dag_id", ["ingest_orders", "ingest_windowed", "reconcile_orders", "repair_orders"]
)
def test_a_dag_survives_the_way_to_the_scheduler(bag: Any, dag_id: str) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    there = DagSerialization.to_dict(bag.dags[dag_id])
    back = DagSerialization.from_dict(json.loads(json.dumps(there)))
    assert {task.task_id for task in back.tasks} == set(bag.dags[dag_id].task_dict)
    assert "password" not in json.dumps(there)


def test_a_broken_feed_file_is_shown_and_takes_no_other_feed_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(FEEDS / "orders.yaml", tmp_path)
    broken = (FEEDS / "windowed.yaml").read_text().replace("until: window_end", "untill: now")
    (tmp_path / "windowed.yaml").write_text(broken)
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(tmp_path))
    bag = a_bag()
    assert set(bag.dags) == {"ingest_orders", "reconcile_orders", "repair_orders"}
    [(file, error)] = bag.import_errors.items()
    assert Path(file).name == "feed_problems.py"
    assert "windowed.yaml:5: plan.untill: unknown key; nearest known key: until" in error


@pytest.mark.parametrize(
    "dag_id", ["ingest_orders", "ingest_windowed", "reconcile_orders", "repair_orders"]
)
def test_a_task_builds_its_own_dag_alone_and_reads_no_other_feeds_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bag: Any, dag_id: str
) -> None:
    from airflow.sdk.definitions._internal.dag_parsing_context import (
        _airflow_parsing_context_manager,
    )

    shutil.copytree(FEEDS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "_defaults.yaml").write_text("spark: {pool: default_pool}\n")
    read: list[str] = []
    really = Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: read.append(str(path.name)) or really(path)
    )
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(tmp_path))
    # Airflow itself leaves them set: they are to be gone with this test.
    for name in ("DAG", "TASK"):
        monkeypatch.setenv(f"_AIRFLOW_PARSING_CONTEXT_{name}_ID", "")
    with _airflow_parsing_context_manager(dag_id=dag_id, task_id="plan"):
        mine = a_bag(DAGS / "tallystick_feeds.py")
    assert mine.import_errors == {}
    assert list(mine.dags) == [dag_id]
    assert [name for name in read if name.endswith(".yaml")] == [
        "_defaults.yaml",
        f"{dag_id.partition('_')[2]}.yaml",
    ]
    assert set(mine.dags[dag_id].task_dict) == set(bag.dags[dag_id].task_dict)


def test_a_missing_folder_of_feeds_is_an_import_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(tmp_path / "nowhere"))
    bag = a_bag()
    assert bag.dags == {}
    assert "nowhere" in "".join(bag.import_errors.values())


def test_parsing_the_dag_files_imports_nothing_heavy() -> None:
    heavy = ["pyspark", "pandas", "numpy", "pyarrow", "confluent_kafka", "kafka", "psycopg", "hdfs"]
    heavy += ["tallystick.wiring", "tallystick.workflows"]  # as a whole, a second for each task
    script = (
        "import sys\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        f"bag = DagBag(dag_folder={str(DAGS)!r}, known_pools={{'default_pool', 'spark_local'}})\n"
        "assert len(bag.dags) == 6, bag.import_errors\n"
        f"print('heavy:', *[name for name in {heavy!r} if name in sys.modules])\n"
    )
    assert said_by_new_python(script).split() == ["heavy:"]
