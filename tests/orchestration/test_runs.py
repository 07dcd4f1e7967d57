"""Whole runs of the DAGs, in this process: which tasks run, are skipped or fail, and what is left.

The ledger and the files are real; Kafka and Spark are scripted, for what they do here can't be had
from real ones at will.
"""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.rows.scrub import ScrubResult
from tallystick.errors import (
    ApplicationFailed,
    BrokerUnavailable,
    PublishedDataMissing,
    SourceRefused,
)
from tallystick.ports.spark_runner import ScrubOrder
from tallystick.workflows.committing import publishing, verification
from tallystick.workflows.landing import run as landing
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning import plan as planning
from tallystick.workflows.services import Services
from tests.orchestration.stage import AROUND, LANDED, LEFT_OUT, OTHER, Stage, mapped, run
from tests.orchestration.test_connections import CONNECTIONS
from tests.support.scripted_broker import Kind, ScriptedReader, ScriptedSpark

NOBODY = timedelta(0)

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    # Airflow's own: it runs a small api-server in this process.
    pytest.mark.filterwarnings("default"),
]


def test_a_run_lands_every_batch_and_tells_the_asset(stage: Stage, dags: Any) -> None:
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    assert found.tasks == AROUND | {"announce": "success"} | mapped(*[LANDED] * 3)
    assert stage.story.published_offsets() == {n: list(range(10)) for n in range(3)}
    assert found.events == [
        {
            "batches": 3,
            "offsets": 30,
            "ranges": [
                {"generation": 1, "partition": n, "from_offset": 0, "until_offset": 10}
                for n in range(3)
            ],
            "ranges_left_out": 0,
        }
    ]
    assert stage.story.staged() == []


def test_a_run_of_one_batch_tells_the_asset_of_it(stage: Stage, dags: Any) -> None:
    for number in (0, 2):
        stage.story.broker.logs[number].entries.clear()
    [event] = run(dags["ingest_orders"]).events
    assert (event["batches"], event["offsets"]) == (1, 10)
    assert event["ranges"] == [
        {"generation": 1, "partition": 1, "from_offset": 0, "until_offset": 10}
    ]


def test_nothing_to_land_is_a_green_run_without_an_event(stage: Stage, dags: Any) -> None:
    run(dags["ingest_orders"])
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    assert found.tasks == AROUND | {"announce": "skipped"} | LEFT_OUT
    assert found.events == []


def test_a_dry_run_changes_nothing_and_skips_all_the_rest(stage: Stage, dags: Any) -> None:
    found = run(dags["ingest_orders"], step=timedelta(seconds=1), dry_run=True)
    assert found.state == "success"
    skipped = dict.fromkeys(("announce", "check"), "skipped")
    assert found.tasks == {"finish": "success", "plan": "success"} | LEFT_OUT | skipped
    [shown] = found.shown
    told = [each["text"] for each in shown["lines"]]
    assert "30 offsets are due; 30 offsets in 3 new batches" in told[0]
    assert "puts current records under the old window" in told[1]
    assert ["orders-" + each.split("orders-")[1] for each in told[2:]] == [
        f"orders-{number} [0, 10)" for number in range(3)
    ]
    assert shown["left_out"] == 0
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        assert services.ledger.batches(services.feed_name) == []
        assert services.ledger.generations(services.feed_name) == {}
    assert not stage.story.directory.joinpath("landing").exists()


def test_one_failed_batch_stops_no_other_and_fails_the_run(stage: Stage, dags: Any) -> None:
    stage.failures[1] = [SourceRefused("topic orders", "not authorised")]
    found = run(dags["ingest_orders"])
    failed = dict.fromkeys(LANDED, "upstream_failed") | {"batch.land": "failed"}
    assert found.state == "failed"
    assert found.tasks == (
        AROUND | {"announce": "success", "check": "failed"} | mapped(LANDED, failed, LANDED)
    )
    assert found.tries["batch.land[1]"] == found.tries["check"] == 1
    assert [each["partition"] for each in found.events[0]["ranges"]] == [0, 2]

    assert run(dags["ingest_orders"]).state == "success"
    assert stage.story.published_offsets() == {n: list(range(10)) for n in range(3)}


def test_what_may_pass_is_tried_again_and_lands_once(stage: Stage, dags: Any) -> None:
    stage.failures[2] = [ApplicationFailed("b", "local-1", "a node died")] * 2
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    assert found.tries["batch.land[2]"] == 3
    assert found.tries["batch.land[0]"] == 1
    assert stage.story.published_offsets() == {n: list(range(10)) for n in range(3)}
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        attempts = [len(each.attempts) for each in services.ledger.batches(services.feed_name)]
    assert sorted(attempts) == [1, 1, 3]


def test_a_batch_that_another_run_holds_is_skipped(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = planning.plan_feed

    def plan_then_lose_one(services: Services, *rest: Any) -> planning.PlanReport:
        report = really(services, *rest)
        stage.take_over(report.all_batches[2].batch_id)
        return report

    stage.lease = NOBODY
    monkeypatch.setattr(landing, "plan_feed", plan_then_lose_one)
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    assert found.tasks == (AROUND | {"announce": "success"} | mapped(LANDED, LANDED, LEFT_OUT))
    assert found.tries["batch.land[2]"] == 1
    assert sorted(stage.story.published_offsets()) == [0, 1]


def test_a_batch_that_was_taken_over_is_skipped_before_its_commit(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, lost = verification.verify_and_commit, []

    def lose_the_first(services: Services, attempt: Any) -> Any:
        if not lost:
            lost.append(attempt.batch_id)
            stage.take_over(attempt.batch_id)
        return really(services, attempt)

    stage.lease = NOBODY
    monkeypatch.setattr(verification, "verify_and_commit", lose_the_first)
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    states = sorted(state for task, state in found.tasks.items() if task.startswith("batch.commit"))
    assert states == ["skipped", "success", "success"]
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        assert services.ledger.committed_batch(lost[0]) is None


def committed_only(stage: Stage) -> list[BatchId]:
    """A run that died before it could publish its three batches."""
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        batch_ids = [each.batch_id for each in planning.plan_feed(services, None, OTHER).batches]
        for batch_id in batch_ids:
            attempt = land_batch(services, batch_id, AttemptId(services.new_id()), OTHER)
            assert attempt
            verification.verify_and_commit(services, attempt)
    return batch_ids


def test_what_a_dead_run_has_left_to_publish_is_told_to_the_asset(stage: Stage, dags: Any) -> None:
    committed_only(stage)
    stage.story.broker.logs[1].append(Kind.RECORD, 5)
    found = run(dags["ingest_orders"])
    assert found.state == "success"
    [event] = found.events
    assert event["batches"] == 4
    assert [(each["partition"], each["until_offset"]) for each in event["ranges"]] == [
        (0, 10),
        (1, 15),
        (2, 10),
    ]
    assert run(dags["ingest_orders"]).events == []


def test_one_batch_that_cannot_be_published_hushes_up_no_other(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = committed_only(stage)[1]
    really = publishing.publish

    def publish(services: Services, batch_id: BatchId, owner: Any) -> str:
        if batch_id == sick:
            raise PublishedDataMissing(batch_id, "/landing/_staging/b", "/landing/orders/b")
        return really(services, batch_id, owner)

    monkeypatch.setattr(publishing, "publish", publish)
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert (found.tasks["finish"], found.tasks["announce"]) == ("failed", "success")
    assert [each["partition"] for each in found.events[0]["ranges"]] == [0, 2]


def test_trouble_of_an_earlier_batch_does_not_stop_the_landing(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(services: Services) -> None:
        raise PublishedDataMissing("b", "/landing/_staging/b", "/landing/orders/b")

    committed_only(stage)
    for log in stage.story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    monkeypatch.setattr(publishing, "finish", missing)
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert found.tasks == (
        AROUND
        | {"finish": "failed", "announce": "success", "check": "failed"}
        | mapped(*[LANDED] * 3)
    )


def test_a_plan_that_fails_lands_nothing_and_fails_the_run(stage: Stage, dags: Any) -> None:
    stage.story.broker.topic = "another"
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert found.tries["plan"] == 1
    assert found.tasks == (
        AROUND
        | dict.fromkeys(LANDED, "upstream_failed")
        | {"plan": "failed", "announce": "skipped", "check": "failed"}
    )


def test_a_loss_fails_the_check_after_everything_was_landed(
    stage: Stage, dags: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run(dags["ingest_orders"])
    for log in stage.story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    stage.story.broker.logs[0].log_start_offset = 13
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert found.tasks == (
        AROUND | {"announce": "success", "check": "failed"} | mapped(*[LANDED] * 3)
    )
    assert found.tries["check"] == 1
    assert "Feed orders: PROVEN_LOSS, 1 trouble (finding 1): " in caplog.text
    assert stage.story.published_offsets()[0] == [*range(10), *range(13, 20)]
    assert run(dags["ingest_orders"]).state == "success"


def test_a_row_that_differs_fails_the_check_after_everything_was_landed(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    really, entries = ScriptedReader.read, stage.story.broker.logs[0].entries

    def rewritten(reader: ScriptedReader, *asked: Any) -> Any:
        entries[3] = replace(entries[3], value=b"another")
        return really(reader, *asked)

    monkeypatch.setattr(ScriptedReader, "read", rewritten)
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert found.tasks == (
        AROUND | {"announce": "success", "check": "failed"} | mapped(*[LANDED] * 3)
    )
    assert "Feed orders: PROVEN_LOSS, 1 trouble (finding 1): " in caplog.text


def test_a_run_by_hand_without_an_interval_takes_the_newest_window(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    by_windows = partial(stage.story.services, until="window_end")
    monkeypatch.setattr(stage.story, "services", by_windows)

    done = dags["ingest_orders"].test(logical_date=None)

    assert done.state.value == "success"
    newest = "[2026-11-01T11:00:00+00:00, 2026-11-01T12:00:00+00:00)"
    assert f"No window was given: this is the newest one that is over, {newest}." in caplog.text


def test_half_a_window_fails_the_plan_at_once(stage: Stage, dags: Any) -> None:
    found = run(dags["ingest_orders"], window_start="2026-11-01T00:00:00Z")
    assert found.state == "failed"
    assert (found.tasks["plan"], found.tries["plan"]) == ("failed", 1)


def test_the_forms_window_names_the_batch(stage: Stage, dags: Any) -> None:
    run(
        dags["ingest_orders"],
        window_start="2026-10-03T04:00:00+00:00",
        window_end="2026-10-03T05:00:00+00:00",
    )
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        plans = [each.status.plan for each in services.ledger.batches(services.feed_name)]
    assert {plan.label for plan in plans} == {datetime(2026, 10, 3, 4, tzinfo=UTC)}


def test_a_missing_spark_connection_fails_the_plan_at_once_by_its_name(
    dags: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name, text in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", text)
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    found = run(dags["ingest_orders"])
    assert found.state == "failed"
    assert (found.tasks["plan"], found.tries["plan"]) == ("failed", 1)
    assert "connection 'spark_default' does not exist" in caplog.text


def pushed(dag_id: str) -> list[Any]:
    """What the newest run of the DAG gives as values of its tasks."""
    from airflow import settings
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    found = select(XComModel.value).where(
        XComModel.dag_id == dag_id, XComModel.key == "return_value"
    )
    newest = found.order_by(XComModel.dag_run_id.desc()).limit(1)
    return list(settings.Session().scalars(newest))


def test_reconcile_says_what_it_found(stage: Stage, dags: Any) -> None:
    run(dags["ingest_orders"])
    found = run(dags["reconcile_orders"])
    assert found.state == "success"
    assert found.tasks == {"reconcile": "success", "judge": "skipped"}
    [told] = found.events
    assert (told["verdict"], told["finding_count"]) == ("PROVEN_OK", 0)
    assert told["complete_up_to"]
    assert [each["report"] for each in pushed("reconcile_orders")] == [told["report"]]
    [page] = (stage.story.directory / "landing" / "_reports" / "orders").iterdir()
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_reconcile_fails_at_once_on_a_loss(
    stage: Stage, dags: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run(dags["ingest_orders"])
    gone = next(stage.story.directory.joinpath("landing").rglob("*.parquet"))
    gone.unlink()
    found = run(dags["reconcile_orders"])
    assert found.state == "failed"
    assert found.tasks == {"reconcile": "success", "judge": "failed"}
    assert found.tries == {"reconcile": 1, "judge": 1}
    assert "Feed orders: PROVEN_LOSS, 1 trouble (finding 1): " in caplog.text
    assert [each["verdict"] for each in found.events] == ["PROVEN_LOSS"]


def test_reconcile_asks_a_silent_witness_again(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(dags["ingest_orders"])
    really, asked = stage.story.broker.snapshot, []

    def silent_once(topic: str) -> Any:
        asked.append(topic)
        if len(asked) == 1:
            raise BrokerUnavailable("broker:9092", "timed out")
        return really(topic)

    monkeypatch.setattr(stage.story.broker, "snapshot", silent_once)
    found = run(dags["reconcile_orders"])
    assert found.state == "success"
    assert (found.tries["reconcile"], found.tasks["judge"]) == (2, "skipped")


def test_a_reconcile_that_is_killed_blames_no_witness_and_is_tried_again(
    stage: Stage, dags: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(dags["ingest_orders"])
    really, below = ScriptedSpark.scrub, stage.story.directory / "landing"
    at_work: list[list[Path]] = []

    def killed_once(spark: ScriptedSpark, order: ScrubOrder) -> ScrubResult:
        at_work.append(list((below / "_scrub" / "orders").iterdir()))
        if len(at_work) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return really(spark, order)

    monkeypatch.setattr(ScriptedSpark, "scrub", killed_once)
    found = run(dags["reconcile_orders"])
    assert found.state == "success"
    assert found.tries["reconcile"] == 2
    # The first read was cleared away, and told nobody of anything.
    assert [len(each) for each in at_work] == [1, 1]
    assert [each["finding_count"] for each in found.events] == [0]
    assert len(list((below / "_reports" / "orders").iterdir())) == 1
