"""A child whose parent died before Linux knew that both die together ends all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OF_SUBMIT = "from tallystick.spark.submit_runner import die_with_parent as die"
OF_JOB = "from {} import die_with_jvm as die"
FORK = """
import os, time
{}

parent = os.getpid()
if os.fork():
    if {}:
        os.wait()
    os._exit(0)
while os.getppid() == parent and not {}:
    time.sleep(0.01)
die(parent)
print("lives", flush=True)
"""


@pytest.mark.parametrize("die", [OF_SUBMIT, OF_JOB.format("land"), OF_JOB.format("scrub")])
@pytest.mark.parametrize("waits", [True, False], ids=["parent lives", "parent is dead"])
def test_a_child_ends_with_a_parent_that_died_before_it_was_bound(die: str, waits: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK.format(die, waits, waits)],
        env={"PYTHONPATH": f"{ROOT / 'plugins'}:{ROOT / 'spark_jobs'}"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == ("lives\n" if waits else "")
