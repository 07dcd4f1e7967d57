"""Feeds through a running Airflow, by REST: landed once, whatever is killed or asked again.

A feed lands by the Spark Connect server unless it names spark-submit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from urllib.parse import urlsplit

import psutil
import pytest

from sandbox import Sandbox
from sandbox.airflow_rest import AirflowRefused
from tallystick.domain.offsets.ranges import overlaps_in
from tests.support.airflow_place import (
    HOUR_BEGAN,
    ROOT,
    AirflowPlace,
    Run,
    a_feed,
    drivers_of,
    until,
)
from tests.support.connect_works import frozen, works_of
from tests.support.kafka_producers import (
    AWKWARD,
    Message,
    TransactionalProducer,
    empty_transaction,
    messages,
    produce,
)
from tests.support.kafka_topics import ANY_TIME, LARGE, create_topic
from tests.support.repository import DOCS, commands_in
from tests.support.repository import ROOT as CHECKOUT

# Airflow starts within the first test, and a test clicks through up to five runs after one another.
pytestmark = pytest.mark.timeout(900)

BY_SUBMIT = {"connection": "spark_submit"}
HARD_TO_PACK = {"root": ROOT, "replication": 1, "compression_level": 19}
# A full read in parts of a kilobyte: its thousands of tasks are not done before they are ended.
READ_IN_CRUMBS = {
    "spark.sql.files.maxPartitionBytes": "1024",
    "spark.sql.files.openCostInBytes": "0",
}
FEEDS = {
    "landed": a_feed("landed"),
    "mended": a_feed("mended"),
    "killed": a_feed("killed", spark=BY_SUBMIT),
    "stopped": a_feed("stopped", spark=BY_SUBMIT),
    "orphaned": a_feed("orphaned", spark={}, target=HARD_TO_PACK),
    "ended": a_feed("ended", spark={}, target=HARD_TO_PACK),
    "reread": a_feed("reread", spark={"conf": READ_IN_CRUMBS}),
    "windowed": a_feed("windowed", plan={"until": "window_end"}),
    # The feed of the documents' commands; by days, so that their four days are four runs.
    "orders": a_feed(
        "orders",
        schedule={"cron": "0 0 * * *", "start_date": "2026-11-01"},
        plan={"until": "window_end"},
    ),
    "misspelled": a_feed("misspelled"),
    "unbound": a_feed("unbound", spark={"connection": "spark_elsewhere"}),
}
ENOUGH = 5_000
SLOW = [Message(random.randbytes(500).hex().encode()) for _ in range(20_000)]
"""Packed at that level they keep a warm server busy for ten seconds."""
GONE_SECONDS = 15.0
"""A driver that nobody ends may end by itself thereafter."""
INTERRUPTED_SECONDS = 60.0
"""What ends sooner by itself is told from it by a log."""


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowPlace]:
    place = AirflowPlace(sandbox, tmp_path_factory.mktemp("feeds"), FEEDS)
    yield place
    place.close()


def test_a_run_lands_what_librdkafka_reads_and_says_so_in_plain_words(place: AirflowPlace) -> None:
    create_topic(place.kafka, "landed", partitions=2, config=ANY_TIME | LARGE)
    producer = TransactionalProducer(place.kafka, "landed")
    producer.commit(messages(500)).abort(messages(100, of="aborted")).commit(messages(500))
    empty_transaction(place.kafka, "landed")
    produce(place.kafka, "landed", AWKWARD, partition=1)
    ends = {0: 1104, 1: len(AWKWARD)}

    dry = place.start("ingest_landed", dry_run=True).succeeds()
    assert dry.states() == {
        "finish": "success",
        "plan": "success",
        **dict.fromkeys(("batch.land", "batch.commit_and_publish"), "skipped"),
        **dict.fromkeys(("announce", "check", "announce_complete"), "skipped"),
    }
    assert "landed-0 [0, 1104)" in dry.log("plan")
    assert "A dry run: nothing was changed" in dry.log("plan")
    assert place.batches("landed") == []
    assert place.rows("landed") == []

    run = place.start("ingest_landed").succeeds()
    assert place.rows("landed") == place.produced("landed", ends)
    assert "1113 offsets in 1 new batches" in run.log("plan")
    assert "Spark has written it" in run.log("batch.land[0]")
    assert "1113 offsets = 1009 rows + 104 proven holes (4 control, 100 aborted)" in run.log(
        "batch.commit_and_publish[0]"
    )
    assert "is published: /airflow-tests/landed/gen=1/dt=" in run.log("batch.commit_and_publish[0]")
    assert "nothing new at levels L0, L1 and L4; from before, nothing is open" in run.log("check")
    [event] = place.rest.get("/assets/events", source_dag_id="ingest_landed")["asset_events"]
    assert event["extra"]["ranges"] == [
        {"generation": 1, "partition": number, "from_offset": 0, "until_offset": end}
        for number, end in ends.items()
    ]

    reconciled = place.start("reconcile_landed").succeeds()
    assert "Feed landed: PROVEN_OK" in reconciled.log("reconcile")

    password = urlsplit(place.env["LEDGER_DSN"]).password
    assert password
    logs = [each.log(task) for each in (dry, run, reconciled) for task in each.ran()]
    assert len(logs) == 12
    assert not any(password in log for log in logs)
    assert not any("deprecated" in log for log in logs)


def test_a_repair_lands_again_what_is_missing_from_hdfs(place: AirflowPlace) -> None:
    create_topic(place.kafka, "mended", partitions=2, config=ANY_TIME)
    for partition in range(2):
        produce(place.kafka, "mended", messages(300), partition=partition)
    place.start("ingest_mended").succeeds()
    produced = place.produced("mended", {0: 300, 1: 300})
    assert place.rows("mended") == produced

    lost = place.lose_a_file("mended")
    run = place.start("reconcile_mended")
    assert run.end() == "failed"
    assert run.states() == {
        "reconcile": "success",
        "judge": "failed",
        "announce_complete": "skipped",
    }
    assert lost in run.log("reconcile")
    told = run.log("judge")
    assert "Feed mended: PROVEN_LOSS, 1 trouble (finding" in told
    assert f"{place.env['AIRFLOW_URL']}/dags/reconcile_mended/runs/" in told
    assert told.index("DAG repair_mended") < told.index("./tallystick repair mended")
    assert "Traceback" not in told
    assert "frames" not in told

    numbers = place.open_findings("mended")
    dry = place.start("repair_mended", findings=numbers).succeeds()
    assert "A dry run: nothing was changed" in dry.log("begin")
    assert place.rows("mended") != produced
    repaired = place.start("repair_mended", dry_run=False, findings=numbers).succeeds()
    assert "findings are closed" in repaired.log("settle")
    assert place.rows("mended") == produced
    place.start("reconcile_mended").succeeds()


def test_a_form_filled_in_wrongly_is_refused_before_a_run_starts(place: AirflowPlace) -> None:
    for conf in ({"dry_run": "yes"}, {"window_start": 5}):
        with pytest.raises(AirflowRefused, match="HTTP 400"):
            place.rest.trigger("ingest_landed", conf)
    with pytest.raises(AirflowRefused, match="HTTP 400"):
        place.rest.trigger("repair_landed", {"findings": "three"})


def test_a_misspelled_dry_run_lands_nothing(place: AirflowPlace) -> None:
    create_topic(place.kafka, "misspelled")
    produce(place.kafka, "misspelled", messages(10))
    run = place.start("ingest_misspelled", dryrun=True)
    assert run.end() == "failed"
    assert "unknown parameter 'dryrun'; nearest known: dry_run" in run.log("finish")
    assert {each.try_number for each in run.tasks().values()} == {0, 1}
    assert place.batches("misspelled") == []


def test_a_killed_task_leaves_no_driver_and_its_retry_lands_once(place: AirflowPlace) -> None:
    create_topic(place.kafka, "killed")
    produce(place.kafka, "killed", messages(ENOUGH))
    run = place.start("ingest_killed")
    jvm, *_ = until("the driver runs", lambda: drivers_of("killed"))
    task = jvm.parent()
    until("its Python runs", lambda: len(drivers_of("killed")) > 1)
    doomed = drivers_of("killed")
    task.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(doomed, timeout=GONE_SECONDS)
    assert alive == []
    assert run.succeeds().tasks()["batch.land[0]"].try_number == 2
    [batch] = place.batches("killed")
    assert [each.attempt.token for each in batch.attempts] == [1, 2]
    assert place.rows("killed") == place.produced("killed", {0: ENOUGH})


def test_a_task_that_is_marked_failed_ends_its_driver_and_the_next_run_lands_the_rest(
    place: AirflowPlace,
) -> None:
    create_topic(place.kafka, "stopped")
    produce(place.kafka, "stopped", messages(ENOUGH))
    run = place.start("ingest_stopped")
    until("the driver runs", lambda: len(drivers_of("stopped")) > 1)
    doomed = drivers_of("stopped")
    mark_failed(place, run, "batch.land/0")
    _, alive = psutil.wait_procs(doomed, timeout=GONE_SECONDS)
    assert alive == []
    assert run.end() == "failed"
    assert "batch.land[0] (failed)" in run.log("check")
    land_the_rest(place, "stopped")
    assert place.rows("stopped") == place.produced("stopped", {0: ENOUGH})


def mark_failed(place: AirflowPlace, run: Run, task: str) -> None:
    """Do what a person does who gives a task of the run up."""
    path = f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/{task}"
    place.rest.patch(path, {"new_state": "failed"}, update_mask="new_state")


def land_the_rest(place: AirflowPlace, feed: str) -> None:
    """Runs, until one has adopted what a killed attempt left: its lease has run out by then."""

    def has_landed() -> bool:
        place.start(f"ingest_{feed}").succeeds()
        return bool(place.rows(feed))

    until("another run has adopted the batch", has_landed)


def work_for(place: AirflowPlace, feed: str) -> set[int]:
    """What the server does for the feed, once it has begun to write."""
    until("a file grows", lambda: any(each.endswith("parquet") for each in place.staged(feed)))
    return set(until("the server works", lambda: works_of(place.spark_connect)))


def was_interrupted(place: AirflowPlace, said: int) -> bool:
    """True once the server's log tells of work that was interrupted, after so many bytes."""
    return b"InterruptedException" in place.spark_connect.log.read_bytes()[said:]


def test_a_killed_task_leaves_its_session_at_work_until_its_retry_ends_it_and_lands_once(
    place: AirflowPlace,
) -> None:
    create_topic(place.kafka, "orphaned")
    slow = SLOW[:10_000]  # the server is frozen meanwhile
    produce(place.kafka, "orphaned", slow)
    server, said = place.spark_connect, place.spark_connect.log.stat().st_size
    run = place.start("ingest_orphaned")
    orphan = work_for(place, "orphaned")
    with frozen(server):  # else it might be done before the retry begins
        pid = run.tasks()["batch.land[0]"].pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        until("the retry begins", lambda: run.tasks()["batch.land[0]"].try_number > 1)
        assert works_of(server) >= orphan
    until("the orphan is gone", lambda: not works_of(server) & orphan)
    until("it did not end by itself", lambda: was_interrupted(place, said))
    assert run.succeeds().tasks()["batch.land[0]"].try_number == 2
    [batch] = place.batches("orphaned")
    assert [each.attempt.token for each in batch.attempts] == [1, 2]
    assert len({each.application_id for each in batch.attempts}) == 2
    assert place.rows("orphaned") == place.produced("orphaned", {0: len(slow)})


def test_a_task_that_is_marked_failed_ends_its_session_and_the_next_run_lands_the_rest(
    place: AirflowPlace,
) -> None:
    create_topic(place.kafka, "ended")
    produce(place.kafka, "ended", SLOW)
    server, said = place.spark_connect, place.spark_connect.log.stat().st_size
    run = place.start("ingest_ended")
    doomed = work_for(place, "ended")
    mark_failed(place, run, "batch.land/0")
    until("its work has ended", lambda: not works_of(server) & doomed, INTERRUPTED_SECONDS)
    until("it did not end by itself", lambda: was_interrupted(place, said))
    assert run.end() == "failed"
    land_the_rest(place, "ended")
    assert place.rows("ended") == place.produced("ended", {0: len(SLOW)})


def test_a_reconcile_that_is_marked_failed_ends_its_full_read(place: AirflowPlace) -> None:
    create_topic(place.kafka, "reread")
    produce(place.kafka, "reread", SLOW)
    place.start("ingest_reread").succeeds()
    server = place.spark_connect
    run = place.start("reconcile_reread")
    until("its session is open", lambda: ": session " in run.log("reconcile"))
    doomed = set(until("the server reads", lambda: works_of(server)))
    mark_failed(place, run, "reconcile")
    until("its work has ended", lambda: not works_of(server) & doomed, INTERRUPTED_SECONDS)
    assert run.end() == "failed"
    until("it did not end by itself", lambda: "Task exited" in run.log("reconcile"))
    assert "batches read in full: 1" not in run.log("reconcile")
    until("it has cleared away", lambda: not place.full_reads("reread"), INTERRUPTED_SECONDS)


def test_backfills_in_any_order_twice_and_beside_the_schedule_land_each_offset_once(
    place: AirflowPlace,
) -> None:
    create_topic(place.kafka, "windowed", partitions=2)
    hours = [HOUR_BEGAN - timedelta(hours=back) for back in (3, 2, 1, 0)]
    for start, end in pairwise(hours):
        middle = int((start + (end - start) / 2).timestamp() * 1000)
        for partition in range(2):
            sent = [Message(b"%d" % n, timestamp_ms=middle + n) for n in range(50)]
            produce(place.kafka, "windowed", sent, partition=partition)
    # The schedule's own run lands the newest window, and all before it that is not landed yet.
    place.rest.pause("ingest_windowed", is_paused=False)
    for is_backwards in (False, True):
        body = {
            "dag_id": "ingest_windowed",
            "from_date": hours[0].isoformat(),
            "to_date": hours[1].isoformat(),
            "reprocess_behavior": "completed",
            "max_active_runs": 2,
            "run_backwards": is_backwards,
        }
        number = place.rest.post("/backfills", body)["id"]
        until(
            "the backfill has ended",
            lambda number=number: place.rest.get(f"/backfills/{number}")["completed_at"],
        )
    runs = [run.succeeds() for run in place.runs("ingest_windowed")]
    assert len(place.backfilled("ingest_windowed")) == 2
    assert len(runs) > 2, "and the schedule's own"
    assert place.rows("windowed") == place.produced("windowed", {0: 150, 1: 150})
    ranges = [each for batch in place.batches("windowed") for each in batch.status.plan.ranges]
    assert overlaps_in([each.offsets for each in ranges]) == ()


def test_the_documented_commands_of_airflow_do_what_the_documents_say(
    place: AirflowPlace, sandbox: Sandbox
) -> None:
    # The documents' days may be long ago: Kafka would delete their records.
    create_topic(place.kafka, "orders", config={"retention.ms": "-1"})
    days = [datetime(2026, 11, day, 12, tzinfo=UTC) for day in range(4, 10)]
    for day in days:
        sent = [Message(b"%d" % n, timestamp_ms=int(day.timestamp() * 1000)) for n in range(10)]
        produce(place.kafka, "orders", sent)
    environment = os.environ | {
        "TALLYSTICK_SANDBOX_DIR": str(sandbox.directory),
        "TALLYSTICK_PYTHON": sys.executable,
    }
    commands = [
        each for file in DOCS.glob("*.md") for each in commands_in(file, "./tallystick airflow")
    ]
    said = {
        command: subprocess.run(
            command, shell=True, cwd=CHECKOUT, env=environment, capture_output=True, text=True
        )
        for command in commands
    }

    assert {command: done.stderr for command, done in said.items() if done.returncode} == {}
    backfills = [done.stdout for command, done in said.items() if " backfill " in command]
    shown, _ = sorted(backfills, key=lambda told: "dry" not in told.lower())
    assert [f"2026-11-0{day}" in shown for day in (4, 5, 6, 7, 8, 9)] == [
        False, True, True, True, True, False,
    ]  # fmt: skip
    runs = until(
        "the backfill has ended",
        lambda: len(found := place.backfilled("ingest_orders")) == 4 and found,
    )
    assert {run.succeeds().end() for run in runs} == {"success"}
    assert place.rows("orders") == place.produced("orders", {0: 60})


def test_a_missing_spark_connection_is_a_clear_error_and_starts_nothing(
    place: AirflowPlace,
) -> None:
    create_topic(place.kafka, "unbound")
    run = place.start("ingest_unbound")
    assert run.end() == "failed"
    plan = run.tasks()["plan"]
    assert (plan.state, plan.try_number) == ("failed", 1)
    assert "connection 'spark_elsewhere' does not exist" in run.log("plan")
    assert run.states()["batch.land"] == "upstream_failed"
    assert place.batches("unbound") == []
