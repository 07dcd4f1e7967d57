"""A run's configuration: with a key that nobody knows, or a wrong value, a run does nothing.

Airflow itself takes every key, so `dryrun: true` would be a run that lands for real.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.errors import ConfigurationError, RunParameterUnknown
from tests.orchestration.stage import LANDED, Stage, run

BATCH_NOT_REACHED = dict.fromkeys(LANDED, "upstream_failed")
# Airflow's own: it runs a small api-server in this process.
pytestmark = pytest.mark.filterwarnings("default")


def a_context(dag: Any, conf: dict[str, Any] | None, **params: object) -> dict[str, Any]:
    known = {name: dag.params[name] for name in dag.params}
    return {"dag": dag, "dag_run": SimpleNamespace(conf=conf), "params": known | params}


@pytest.mark.parametrize(
    ("dag_id", "conf", "words"),
    [
        ("ingest_orders", {"dryrun": True}, "'dryrun'; nearest known: dry_run"),
        (
            "ingest_orders",
            {"windw_start": "2026-11-01T06:00:00Z"},
            "'windw_start'; nearest known: window_start",
        ),
        (
            "ingest_orders",
            {"password": "secret"},
            "'password'; known: window_start, window_end, dry_run",
        ),
        ("repair_orders", {"finding": "3"}, "'finding'; nearest known: findings"),
        (
            "repair_orders",
            {"window_start": None},
            "'window_start'; known: findings, evidence, dry_run",
        ),
        ("reconcile_orders", {"dry_run": True}, "'dry_run'; known: none"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(
    dags: Any, dag_id: str, conf: dict[str, Any], words: str
) -> None:
    from tallystick.orchestration.run_context import require_known_conf

    with pytest.raises(RunParameterUnknown) as caught:
        require_known_conf(a_context(dags[dag_id], conf, **conf))
    assert words in str(caught.value)
    assert dag_id in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not caught.value.retry


@pytest.mark.parametrize("conf", [None, {}, {"dry_run": True}, {"findings": None}])
def test_known_keys_and_none_at_all_are_taken(dags: Any, conf: dict[str, Any] | None) -> None:
    from tallystick.orchestration.run_context import require_known_conf

    require_known_conf(a_context(dags["repair_orders"], conf, **(conf or {})))


def test_an_airflow_that_ignores_a_runs_configuration_does_not_run_it_for_real(dags: Any) -> None:
    from tallystick.orchestration.run_context import require_known_conf

    with pytest.raises(ConfigurationError, match="dag_run_conf_overrides_params"):
        require_known_conf(a_context(dags["ingest_orders"], {"dry_run": True}))


@pytest.mark.parametrize(
    ("dag_id", "conf", "tasks"),
    [
        (
            "ingest_orders",
            {"dryrun": True},
            dict.fromkeys(("finish", "plan", "announce", "check"), "failed") | BATCH_NOT_REACHED,
        ),
        (
            "repair_orders",
            {"dry_run": False, "finding": "1"},
            dict.fromkeys(("begin", "settle"), "failed") | BATCH_NOT_REACHED,
        ),
        ("reconcile_orders", {"level": 1}, {"reconcile": "failed", "judge": "upstream_failed"}),
    ],
)
def test_a_run_with_an_unknown_key_does_nothing_at_all(
    stage: Stage,
    dags: Any,
    caplog: pytest.LogCaptureFixture,
    dag_id: str,
    conf: dict[str, Any],
    tasks: dict[str, str],
) -> None:
    found = run(dags[dag_id], **conf)
    assert found.state == "failed"
    assert found.tasks == tasks
    assert {number for name, number in found.tries.items() if tasks[name] == "failed"} == {1}
    assert "nearest known: " in caplog.text or "known: none" in caplog.text
    assert found.events == []
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        assert services.ledger.generations(services.feed_name) == {}
    assert not stage.story.directory.joinpath("landing").exists()


def test_a_wrong_window_does_nothing_at_all(stage: Stage, dags: Any) -> None:
    found = run(dags["ingest_orders"], window_start="yesterday", window_end="2026-11-01T07:00:00Z")
    assert (found.state, found.tasks["finish"], found.tasks["check"]) == ("failed",) + (
        ("failed",) * 2
    )
    assert not stage.story.directory.joinpath("landing").exists()


@pytest.mark.parametrize(
    ("dag_id", "conf"),
    [
        ("repair_orders", {"findings": None, "dry_run": False}),
        ("repair_orders", {"findings": ""}),
        ("repair_orders", {"findings": "3, 4"}),
        ("ingest_orders", {"window_start": None, "window_end": None, "dry_run": False}),
    ],
)
def test_a_form_that_is_left_empty_can_be_submitted(
    dags: Any, dag_id: str, conf: dict[str, Any]
) -> None:
    assert as_the_server_validates(dags[dag_id], conf)["dry_run"] in (True, False)


@pytest.mark.parametrize(
    ("dag_id", "conf"),
    [
        ("repair_orders", {"findings": "three"}),
        ("repair_orders", {"findings": 3}),
        ("repair_orders", {"findings": [3]}),
        ("repair_orders", {"dry_run": "no"}),
        ("repair_orders", {"dry_run": None}),
        ("ingest_orders", {"dry_run": 1}),
        ("ingest_orders", {"window_start": 5}),
    ],
)
def test_a_value_of_a_wrong_type_starts_no_run(
    dags: Any, dag_id: str, conf: dict[str, Any]
) -> None:
    from airflow.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError, match=next(iter(conf))):
        as_the_server_validates(dags[dag_id], conf)


def as_the_server_validates(dag: Any, conf: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a run that is triggered with this configuration, as the api-server asks."""
    from airflow.serialization.serialized_objects import DagSerialization

    there = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    found: dict[str, Any] = there.params.deep_merge(conf).validate()
    return found
