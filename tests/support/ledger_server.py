"""One embedded PostgreSQL for a test run, and a migrated database for each test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from secrets import token_hex
from typing import Final

import psycopg
from psycopg import sql

from sandbox.services.postgres_programs import (
    ensure_user,
    must_be_copied,
    programs_for,
    server_user,
)
from tallystick.ledger.migrations import Purpose, grant, migrate
from tests.support.clearing_up import LEDGER, Watcher
from tests.support.free_port import free_port

OWNER_ROLE: Final = "tallystick_owner"
RUNNER_ROLE: Final = "tallystick"
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
    """A PostgreSQL server of its own on a free port, and two roles with one password.

    Neither is a superuser. `tallystick_owner` owns each database, `tallystick` has what the ledger
    grants to a role that runs: all tests run as that.
    """

    def __init__(self) -> None:
        self.admin_password, self.password = token_hex(12), token_hex(12)
        self.port = free_port()
        self._user = server_user()
        self.area = Path(
            tempfile.mkdtemp(
                prefix="tallystick-ledger-", dir=_fast_directory(runs=must_be_copied(self._user))
            )
        )
        """Everything of it lies there."""
        self._watcher = Watcher(LEDGER, self.area)
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: psycopg.Connection | None = None
        self._numbers = count(1)

    def start(self) -> None:
        """Initialise, start, and make the migrated template."""
        if self._user:
            ensure_user(self._user)
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
        for role in (OWNER_ROLE, RUNNER_ROLE):
            self.execute("postgres", f"CREATE ROLE {role} LOGIN PASSWORD '{self.password}'")
        # So that a test sees by the owner's eyes who waits for whom.
        self.execute("postgres", f"GRANT pg_read_all_stats TO {OWNER_ROLE}")
        self.create("ledger_template")
        self.migrate("ledger_template")

    def migrate(self, database: str) -> None:
        """Make the ledger's schema as its owner, and let the other role run."""
        migrate(self.dsn(database, role=OWNER_ROLE))
        grant(self.dsn(database, role=OWNER_ROLE), RUNNER_ROLE, Purpose.RUN)

    def stop(self) -> None:
        """Stop at once, and leave nothing behind."""
        if self._admin:
            self._admin.close()
        if self._process:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=_START_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.area, ignore_errors=True)
        self._watcher.call_off()

    def dsn(self, database: str, *, port: int | None = None, role: str = RUNNER_ROLE) -> str:
        """The URL of a database; another port for a proxy in between."""
        return f"postgresql://{role}:{self.password}@127.0.0.1:{port or self.port}/{database}"

    def admin_dsn(self, database: str) -> str:
        """The URL of a database for the superuser."""
        return f"postgresql://postgres:{self.admin_password}@127.0.0.1:{self.port}/{database}"

    def execute(self, database: str, statement: str) -> None:
        """Run this as the superuser."""
        with psycopg.connect(self.admin_dsn(database), autocommit=True) as admin:
            admin.execute(statement.encode())

    def age_waivers(self, database: str) -> None:
        """Say of all waivers and requests that they are two hours older, which nobody else can."""
        self.execute(
            database,
            "SET session_replication_role = replica;"
            " UPDATE waiver SET waived_at = waived_at - interval '2 hours',"
            " expires_at = expires_at - interval '2 hours';"
            " UPDATE waiver_request SET asked_at = asked_at - interval '2 hours',"
            " expires_at = expires_at - interval '2 hours'",
        )

    def create(self, database: str, *, template: str = "template0") -> None:
        """A database owned by `tallystick_owner`."""
        statement = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy")
        names = map(sql.Identifier, (database, OWNER_ROLE, template))
        self._superuser().execute(statement.format(*names))

    def fresh(self, *, template: str = "ledger_template") -> str:
        """The name of a new database, a copy of the template."""
        database = f"ledger_{next(self._numbers)}"
        self.create(database, template=template)
        return database

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        statement = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._superuser().execute(statement.format(sql.Identifier(database)))

    def _superuser(self) -> psycopg.Connection:
        """Kept: a new one takes as long as half of a test's database does."""
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.admin_dsn("postgres"), autocommit=True)
        return self._admin

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
        return str(programs_for(self._user, copies=self.area) / name)


def _fast_directory(*, runs: bool) -> str:
    """Memory where there is enough: copying a template for each test is all small files.

    ``runs``: programs are started from there, which memory often forbids in a container.
    """
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        has_room = shutil.disk_usage(memory).free > _ROOM_BYTES
        if has_room and not (runs and os.statvfs(memory).f_flag & os.ST_NOEXEC):
            return str(memory)
    return "/var/tmp"
