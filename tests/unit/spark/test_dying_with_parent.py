"""A child ends with its parent, also with one that died before Linux knew; gRPC kills none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tallystick.spark.parent_death import dying_with_parent

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


STARTER = """
import subprocess, sys, time
from tallystick.spark.parent_death import dying_with_parent

child = subprocess.Popen(dying_with_parent(["sleep", "60"]))
print(child.pid, flush=True)
time.sleep(60)
"""
CALLING = """
import subprocess, sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc
from tallystick.spark.parent_death import dying_with_parent

server = grpc.server(ThreadPoolExecutor(4))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
ask = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary("/nobody/asked")

def asks_on():
    while True:
        try:
            ask(b"", timeout=1)
        except grpc.RpcError:
            pass

for _ in range(3):
    threading.Thread(target=asks_on, daemon=True).start()
with ThreadPoolExecutor(4) as pool:
    argv = dying_with_parent(["true"])
    def one(_):
        return subprocess.run(argv, capture_output=True).returncode
    codes = list(pool.map(one, range(150)))
print(*codes, flush=True)
"""


def started(program: str) -> subprocess.Popen[str]:
    env = {"PYTHONPATH": str(ROOT / "plugins"), "PATH": os.environ["PATH"]}
    return subprocess.Popen(
        [sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True
    )


def test_what_a_process_has_started_so_ends_when_it_is_killed() -> None:
    with started(STARTER) as starter:
        assert starter.stdout is not None
        child = psutil.Process(int(starter.stdout.readline()))
        starter.kill()
    psutil.wait_procs([child], timeout=60)
    assert not child.is_running()


def test_no_child_is_lost_while_grpc_is_busy() -> None:
    """After a true fork one in twenty died: gRPC misses the threads that the fork has ended."""
    with started(CALLING) as process:
        told, _ = process.communicate(timeout=120)
    assert Counter(told.split()) == {"0": 150}


def test_a_program_that_is_not_there_is_told_before_anything_is_started() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        dying_with_parent(["no-such-program"])
