"""`./tallystick airflow`, and `test changed`: the tests of the rooms that a change touches."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from sandbox import airflow_command
from sandbox.entry import dispatch
from sandbox.entry.changed import changed_files, rooms_of
from sandbox.entry.console import SetupFailed
from sandbox.entry.layout import ROOT


def git(root: Path, *words: str) -> None:
    run = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    subprocess.run(run, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "kept").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tested"),
    [
        ("plugins/tallystick/domain/rules/rule.py", ["tests/unit/domain/rules"]),
        ("plugins/tallystick/workflows/planning/plan.py", ["tests/workflows/planning"]),
        ("plugins/tallystick/ledger/sql/commit.sql", ["tests/contract", "tests/unit/ledger"]),
        ("plugins/tallystick/cli/run.py", ["tests/commands", "tests/unit/cli"]),
        ("sandbox/entry/changed.py", ["tests/unit/sandbox"]),
        ("tests/contract/conftest.py", ["tests/contract"]),
        ("tests/support/rule_tables.py", []),
        ("docs/cli.md", []),
    ],
)
def test_a_file_is_tested_by_the_rooms_of_its_folder(changed: str, tested: list[str]) -> None:
    assert rooms_of([PurePosixPath(changed)]) == sorted([*tested, "tests/repo"])


def test_a_test_that_is_gone_is_not_run() -> None:
    assert rooms_of([PurePosixPath("tests") / "test_gone.py"]) == ["tests/repo"]


def test_what_lies_in_a_room_that_is_tested_is_named_once() -> None:
    rule = PurePosixPath("plugins/tallystick/domain/rules/rule.py")
    its_test = PurePosixPath("tests/unit/domain/rules/test_rules.py")
    assert (ROOT / its_test).exists()
    assert rooms_of([rule, its_test]) == ["tests/repo", "tests/unit/domain/rules"]


def test_all_that_came_since_main_has_changed_and_what_is_in_no_commit(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "branch")
    (repository / "committed").touch()
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "second")
    (repository / "kept").write_text("changed")
    (repository / "new").touch()
    assert sorted(map(str, changed_files(repository))) == ["committed", "kept", "new"]
    git(repository, "branch", "-D", "main")
    assert sorted(map(str, changed_files(repository))) == ["kept", "new"]


def test_without_a_repository_it_says_what_to_run_instead(tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match="tallystick test unit"):
        changed_files(tmp_path)


def test_the_command_runs_the_checks_then_these_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(dispatch, "ensure_environment", lambda: Path("python"))
    monkeypatch.setattr(dispatch, "changed_files", lambda: [PurePosixPath("docs/cli.md")])
    monkeypatch.setattr(dispatch, "_test", lambda _, words: given.append(words) or 0)
    assert dispatch.main(["test", "changed", "-x"]) == 0
    assert given == [["all", "tests/repo", "-x"]]


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
