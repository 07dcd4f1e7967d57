"""The task that lands: killed, it leaves no spark-submit behind."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tallystick.ports.spark_runner import LandingOrder
from tests.orchestration.test_connections import CONNECTIONS
from tests.support.story import a_feed

ORDER = LandingOrder("orders", "batch1", "attempt1", "hdfs://nn/plan.json", plan_text="{}")


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The task, where spark-submit writes its process id, names an application, and never ends.

    It says a word now and then, as Spark does: a signal that comes in the instant before a read
    begins is noticed when the read ends.
    """
    from tallystick.orchestration.batch_tasks import LandOperator

    for name, found in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", found)
    program = tmp_path / "spark-submit"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n"
                       "echo tallystick: application local-1\n"
                       "echo tallystick: reading\n"
                       "while sleep 0.2; do echo at work; done\n")  # fmt: skip
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return LandOperator(task_id="land", feed=a_feed(), batch_id="batch1")


def test_a_task_that_is_killed_leaves_its_work_at_once_and_ends_spark_submit(
    task: Any, tmp_path: Path
) -> None:
    from tallystick.orchestration.connections import services_of

    started = threading.Event()

    def kill_once_started() -> None:
        started.wait()
        os.kill(os.getpid(), signal.SIGUSR1)

    # As Airflow does: its handler of SIGTERM calls on_kill, in the thread that does the work.
    before = signal.signal(signal.SIGUSR1, lambda *_: task.on_kill())
    threading.Thread(target=kill_once_started, daemon=True).start()
    try:
        with (
            pytest.raises(SystemExit, match="The task land was killed"),
            services_of(task.feed) as services,
        ):
            services.spark.run(ORDER, started=lambda _: started.set())
    finally:
        signal.signal(signal.SIGUSR1, before)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_the_attempt_is_interrupted_wherever_it_is_before_the_work_is_left(task: Any) -> None:
    told: list[str] = []
    task._interrupt = lambda: told.append("interrupted")

    with pytest.raises(SystemExit):
        task.on_kill()

    assert told == ["interrupted"]
