"""Which of Airflow's runs the demo waits for, and by which it judges.

Airflow is scripted: a schedule that fires in the second in which our run ends can't be had on
demand. The real demo runs before every change lands (.ci/run).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox.airflow_rest import AirflowRest, Task
from sandbox.demo import Demo, _rows_since
from sandbox.stack import Sandbox

OURS = {"reconcile_orders": "ours", "reconcile_clicks": "ours"}
SCHEDULED = "scheduled"

States = Mapping[str, Sequence[str | None]]
"""By run: what each look finds, None before the run is there; the last one stays."""


class ScriptedAirflow(AirflowRest):
    """Airflow with the given life of every run of reconcile_clicks; reconcile_orders ends well."""

    def __init__(self, clicks: States) -> None:
        self._lives = {"reconcile_orders": {"ours": ["success"]}, "reconcile_clicks": clicks}
        self._looks = 0

    def wait_for_dag(self, dag_id: str, seconds: float = 0) -> None:
        assert dag_id in self._lives

    def due_interval(self, dag_id: str) -> tuple[datetime, datetime] | None:
        assert dag_id in self._lives
        return None

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, object] | None = None,
        interval: tuple[datetime, datetime] | None = None,
    ) -> str:
        return OURS[dag_id]

    def pause(self, dag_id: str, is_paused: bool) -> None:
        assert dag_id in self._lives

    def runs(self, dag_id: str) -> Mapping[str, str]:
        if dag_id == "reconcile_clicks":
            self._looks += 1
        found = {run: self._at(life) for run, life in self._lives[dag_id].items()}
        return {run: state for run, state in found.items() if state is not None}

    def run_state(self, dag_id: str, run_id: str) -> str:
        state = self._at(self._lives[dag_id][run_id])
        assert state is not None
        return state

    def tasks(self, dag_id: str, run_id: str) -> Sequence[Task]:
        return []

    def _at(self, life: Sequence[str | None]) -> str | None:
        return life[min(max(self._looks - 1, 0), len(life) - 1)]


def is_good(tmp_path: Path, clicks: States) -> bool:
    """What the demo says of two reconcile runs."""
    return Demo(Sandbox(tmp_path))._carry_out(ScriptedAirflow(clicks), "reconcile")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox.demo.POLL_SECONDS", 0.0)


def test_all_runs_ended_well(tmp_path: Path) -> None:
    assert is_good(tmp_path, {"ours": ["queued", "running", "success"]})


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_scheduled_run_behind_ours_may_still_be_under_way(tmp_path: Path, state: str) -> None:
    assert is_good(tmp_path, {"ours": ["running", "success"], SCHEDULED: [None, state]})


def test_our_run_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not is_good(tmp_path, {"ours": ["running", "failed"]})
    assert "reconcile_clicks ended as failed: run ours" in capsys.readouterr().err


def test_a_scheduled_run_before_ours_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clicks = {SCHEDULED: ["running", "failed"], "ours": ["queued", "queued", "success"]}
    assert not is_good(tmp_path, clicks)
    assert "reconcile_clicks ended as failed: run scheduled" in capsys.readouterr().err


def test_what_was_committed_before_or_not_at_all_is_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = [(5, "2026-11-01T05:59:59Z"), (7, "2026-11-01T06:00:00Z"), (None, None)]
    batches = [{"rows": rows, "committed_at": at} for rows, at in times]
    done = subprocess.CompletedProcess([], 0, stdout=json.dumps({"batches": batches}))
    monkeypatch.setattr("sandbox.demo._tallystick", lambda *_, **__: done)
    assert _rows_since(datetime(2026, 11, 1, 6, tzinfo=UTC), "orders") == 7


def test_each_feeds_report_is_shown_in_turn_and_what_a_failed_one_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reconcile(command: str, feed: str) -> subprocess.CompletedProcess[str]:
        code = int(feed == "clicks")
        return subprocess.CompletedProcess([], code, f"{command} of {feed}\n", f"why {feed}")

    monkeypatch.setattr("sandbox.demo._tallystick", reconcile)
    assert not Demo._report()
    told = capsys.readouterr()
    lines = [each for each in told.out.splitlines() if each]
    assert lines == [
        "$ ./tallystick reconcile orders",
        "reconcile of orders",
        "$ ./tallystick reconcile clicks",
        "reconcile of clicks",
    ]
    assert told.err.splitlines() == [
        "why clicks",
        "./tallystick reconcile clicks ended with exit code 1",
    ]
