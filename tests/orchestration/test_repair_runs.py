"""Whole runs of the repair's DAG, in this process: what is landed again, and what is left.

The ledger and the files are real; Kafka and Spark are scripted, for what they do here can't be had
from real ones at will.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tallystick.errors import ApplicationFailed, StorageUnavailable
from tallystick.workflows.services import Services
from tests.orchestration.stage import LANDED, LEFT_OUT, Stage, mapped, run

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    # Airflow's own: it runs a small api-server in this process.
    pytest.mark.filterwarnings("default"),
]


def harmed(stage: Stage, dags: Any) -> Path:
    """All is landed, one file is gone, and reconcile has found that; the file."""
    run(dags["ingest_orders"])
    gone: Path = next(stage.story.directory.joinpath("landing").rglob("*.parquet"))
    gone.unlink()
    assert run(dags["reconcile_orders"]).state == "failed"
    return gone


def test_a_dry_repair_changes_nothing(
    stage: Stage, dags: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gone = harmed(stage, dags)
    found = run(dags["repair_orders"], findings=stage.named)
    assert found.state == "success"
    assert found.tasks == {"begin": "success", "settle": "skipped"} | LEFT_OUT
    assert gone.name in caplog.text
    [shown] = found.shown
    assert [(gone.name in each["text"], each["is_warning"]) for each in shown["lines"]] == [
        (True, False)
    ]
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        [stands] = services.ledger.findings(services.feed_name)
    assert shown["evidence"] == [stands.digest]
    assert run(dags["reconcile_orders"]).state == "failed"


def test_a_repair_lands_again_what_is_missing(stage: Stage, dags: Any) -> None:
    harmed(stage, dags)
    found = run(dags["repair_orders"], dry_run=False, findings=stage.named)
    assert found.state == "success"
    assert found.tasks == mapped(LANDED) | {"begin": "success", "settle": "success"}
    assert stage.story.published_offsets() == {each: list(range(10)) for each in range(3)}
    assert run(dags["reconcile_orders"]).state == "success"
    assert found.shown == []
    nothing = run(dags["repair_orders"], dry_run=True, findings=stage.named)
    assert "There is nothing to mend" in nothing.shown[0]["lines"][0]["text"]
    again = run(dags["repair_orders"], dry_run=False, findings=stage.named)
    assert again.state == "success"
    assert again.tasks["settle"] == "success"


def test_a_repair_of_evidence_that_has_changed_since_it_was_read_does_nothing(
    stage: Stage, dags: Any, caplog: pytest.LogCaptureFixture
) -> None:
    harmed(stage, dags)
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        [found] = services.ledger.findings(services.feed_name)
    number, other = str(found.finding_id), "0badc0de"
    for dry_run in (True, False):
        refused = run(dags["repair_orders"], dry_run=dry_run, findings=number, evidence=other)
        assert (refused.state, refused.tasks["begin"]) == ("failed", "failed")
        assert f"is {found.digest} by now, not {other}" in caplog.text
        caplog.clear()
    done = run(dags["repair_orders"], dry_run=False, findings=number, evidence=found.digest)
    assert done.state == "success"


def test_a_sweep_that_fails_in_a_repair_keeps_no_finding_open(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmed(stage, dags)

    def silent(_: Services) -> int:
        raise StorageUnavailable("/landing/_staging", "connection refused")

    monkeypatch.setattr("tallystick.workflows.repairing.closing.sweep", silent)
    found = run(dags["repair_orders"], dry_run=False, findings=stage.named)
    assert (found.state, found.tasks["settle"]) == ("failed", "failed")
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        assert not services.ledger.findings(services.feed_name)


def test_a_repair_whose_batch_another_owner_has_fails(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    harmed(stage, dags)
    monkeypatch.setattr(
        "tallystick.workflows.repairing.left_undone.still_unfinished",
        lambda *_: iter(["Batch b is landing still."]),
    )
    found = run(dags["repair_orders"], dry_run=False, findings=stage.named)
    assert (found.state, found.tasks["settle"]) == ("failed", "failed")


def test_a_repair_whose_batch_fails_fails_and_changes_nothing(stage: Stage, dags: Any) -> None:
    harmed(stage, dags)
    stage.failures = {
        each: [ApplicationFailed("b", "local-1", "a node died")] * 9 for each in range(3)
    }
    found = run(dags["repair_orders"], dry_run=False, findings=stage.named)
    assert found.state == "failed"
    assert found.tasks["settle"] == "failed"
    stage.failures = {}
    assert run(dags["repair_orders"], dry_run=False, findings=stage.named).state == "success"
    assert run(dags["reconcile_orders"]).state == "success"


def test_a_repair_of_an_unknown_finding_is_refused(stage: Stage, dags: Any) -> None:
    harmed(stage, dags)
    found = run(dags["repair_orders"], dry_run=False, findings="4711")
    assert found.state == "failed"
    assert (found.tasks["begin"], found.tries["begin"]) == ("failed", 1)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_repair_that_could_not_begin_settles_nothing(
    stage: Stage, dags: Any, dry_run: bool
) -> None:
    run(dags["ingest_orders"])
    file: Path = next(stage.story.directory.joinpath("landing").rglob("*.parquet"))
    copy = file.with_name("copy.parquet")
    copy.write_bytes(file.read_bytes())
    assert run(dags["reconcile_orders"]).state == "failed"
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        before = services.ledger.findings(services.feed_name)
        numbers = ",".join(str(each.finding_id) for each in before)
        found = run(dags["repair_orders"], dry_run=dry_run, findings=f"4711,{numbers}")
        assert services.ledger.findings(services.feed_name) == before
    assert (found.state, found.tasks["begin"]) == ("failed", "failed")
    assert (found.tasks["settle"], found.tries["settle"]) == ("failed", 1)
    assert copy.exists()
