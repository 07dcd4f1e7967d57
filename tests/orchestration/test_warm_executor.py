"""The executor whose tasks find their libraries imported."""

from __future__ import annotations

from tests.support.repository import said_by_new_python

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
    assert said_by_new_python(START) == "True [] False"
