"""A child whose parent died before Linux knew that both die together ends all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FORK = """
import os, time
from tallystick.spark.parent_death import die_with_parent

parent = os.getpid()
if os.fork():
    if {}:
        os.wait()
    os._exit(0)
while os.getppid() == parent and not {}:
    time.sleep(0.01)
die_with_parent(parent)
print("lives", flush=True)
"""


@pytest.mark.parametrize("waits", [True, False], ids=["parent lives", "parent is dead"])
def test_a_child_ends_with_a_parent_that_died_before_it_was_bound(waits: bool) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FORK.format(waits, waits)],
        env={"PYTHONPATH": str(ROOT / "plugins")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == ("lives\n" if waits else "")
