"""A test run that is killed leaves no service behind, and no directory of one."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.clearing_up import ROOT
from tests.support.kafka_topics import wait_until

LEDGER = """
from tests.support.ledger_server import LedgerServer
server = LedgerServer()
server.start()
print(server.port, server.area, flush=True)
input()
"""
SANDBOX = """
import sys
from tests.support.sandbox_fixtures import watched_sandbox
with watched_sandbox(sys.argv[1]) as sandbox:
    sandbox.up(only=["postgres"])
    print(sandbox.home.ports["postgres"], sandbox.postgres.folder, flush=True)
    input()
"""


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("run", [LEDGER, SANDBOX], ids=["ledger", "sandbox"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "ended"])
def test_a_killed_test_run_leaves_no_service_behind(
    tmp_path: Path, run: str, is_killed: bool
) -> None:
    if run is LEDGER and not is_killed:
        run += "server.stop()\n"
    with subprocess.Popen(
        [sys.executable, "-c", run, str(tmp_path / "sandbox")],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}", "PATH": "/usr/bin:/bin:/usr/sbin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout
        port, area = started.stdout.readline().split(maxsplit=1)
        directory = Path(area.strip())
        assert answers(int(port))
        assert directory.is_dir()
        if is_killed:
            started.kill()
        else:
            started.communicate("\n")
    wait_until(lambda: not answers(int(port)) and not directory.exists(), "it is gone", seconds=60)
