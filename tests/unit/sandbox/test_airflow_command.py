"""`./tallystick airflow`: Airflow's own command line, where the sandbox's Airflow runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox import airflow_command
from sandbox.entry import dispatch


def test_without_a_running_sandbox_it_says_how_to_start_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TALLYSTICK_SANDBOX_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["airflow", "dags", "list"])

    with pytest.raises(SystemExit) as ended:
        airflow_command.main()

    assert ended.value.code == 2
    assert "Next: ./tallystick sandbox up" in capfd.readouterr().err


def test_every_word_is_airflows(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(os, "execve", lambda _, argv, __: started.append(argv))

    dispatch.main(["airflow", "backfill", "create", "--help"])

    assert started == [
        ["python", "-P", "-m", "sandbox.airflow_command", "backfill", "create", "--help"]
    ]
