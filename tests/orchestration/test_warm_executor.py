"""The executor whose tasks find their libraries imported."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.orchestration.conftest import ROOT

START = """
import sys
from airflow.executors.local_executor import LocalExecutor
from tallystick.orchestration.warm_executor import LIBRARIES, WarmExecutor

def lacking():
    return [each for each in LIBRARIES if each not in sys.modules]

before = lacking()
ours = "tallystick.wiring"
LocalExecutor.start = lambda self: print(len(before) > 3, lacking(), ours in sys.modules)
WarmExecutor(parallelism=1).start()
"""


def test_tasks_find_their_libraries_imported_and_none_of_our_own_code() -> None:
    done = subprocess.run(
        [sys.executable, "-c", START],
        env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "True [] False"
