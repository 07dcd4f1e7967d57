"""The private directory of a spark-submit: gone afterwards, and gone after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tallystick.spark.kafka_access import SECRETS_FILE
from tallystick.spark.work_directory import work_directory

SECRETS = {"password": "hunter2"}
AT_WORK = """
import sys
from tallystick.spark.work_directory import work_directory
with work_directory({"password": "hunter2"}) as directory:
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def at_work(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process that has its directory, and the directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", AT_WORK],
        env=os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def killed(folder: Path) -> Path:
    """What a process leaves that was killed at work."""
    with at_work(folder) as (process, directory):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (directory / SECRETS_FILE).exists()
    return directory


def test_it_is_this_users_alone_and_gone_afterwards(folder: Path) -> None:
    with work_directory(SECRETS) as directory:
        assert (directory.stat().st_mode & 0o777) == 0o700
        assert ((directory / SECRETS_FILE).stat().st_mode & 0o777) == 0o600
    assert not list(folder.iterdir())


def test_the_next_one_clears_up_behind_a_killed_process(folder: Path) -> None:
    left = killed(folder)

    with work_directory({}) as directory:
        assert list(folder.iterdir()) == [directory]
    assert not left.exists()


def test_a_living_process_keeps_its_directory(folder: Path) -> None:
    with at_work(folder) as (_, theirs), work_directory({}), work_directory({}) as mine:
        assert (theirs / SECRETS_FILE).exists()
        assert len(list(folder.iterdir())) == 3
        assert mine.exists()


def test_another_users_directory_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = killed(folder)

    monkeypatch.setattr(os, "getuid", lambda: left.stat().st_uid + 1)
    with work_directory({}):
        assert (left / SECRETS_FILE).exists()


def test_what_only_looks_like_one_is_left_alone(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    killed(folder).rename(elsewhere)
    (folder / "tallystick-submit-link").symlink_to(elsewhere)
    unowned = folder / "tallystick-submit-unowned"
    unowned.mkdir()

    with work_directory({}):
        assert (elsewhere / SECRETS_FILE).exists()
        assert unowned.exists()
