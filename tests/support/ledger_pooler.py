"""PgBouncer before a ledger with TLS: sessions of its own with the server, handed out in turns."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from typing_extensions import override

from sandbox.clusters.ledger_tls import DATABASE, ROLES, TlsPostgres
from sandbox.entry.system import ensure_pooler
from sandbox.ports import HOST
from sandbox.service import Service
from sandbox.services.postgres_programs import server_user

_SETTINGS = """\
[databases]
{database} = host={host} port={server_port} dbname={database}

[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {sessions}
query_wait_timeout = 5
client_tls_sslmode = require
client_tls_cert_file = {server}/server.pem
client_tls_key_file = {server}/server.key
server_tls_sslmode = verify-full
server_tls_ca_file = {server}/ca.pem
"""


class Pooler(Service):
    """Ready when it takes connections. It shares the server's certificate, for tests.

    A query waits 5 s for a server that is away; by default it would wait two minutes.
    """

    def __init__(self, server: TlsPostgres, mode: str, sessions: int) -> None:
        super().__init__(server.home, f"pooler-{mode}", port_names=(f"pooler-{mode}",))
        self._server, self._mode, self._sessions = server, mode, sessions

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports[self.name]}"

    @property
    @override
    def memory(self) -> str:
        return f"default_pool_size={self._sessions}"

    @property
    @override
    def run_as(self) -> str | None:
        return server_user()

    @property
    @override
    def folder(self) -> Path:
        """In its server's area, where the user that both run as can reach it."""
        path = self._server.area / self.name
        path.mkdir(exist_ok=True)
        return path

    def dsn(self, role: str) -> str:
        """Where a role finds the ledger behind it."""
        return self._server.dsn(DATABASE, role=role).replace(self._server.address, self.address)

    @override
    def prepare(self) -> None:
        folder = self.folder
        users = [f'"{role}" "{self._server.password(role)}"' for role in ROLES]
        (folder / "users").write_text("\n".join(users))
        (folder / "settings").write_text(
            _SETTINGS.format(
                database=DATABASE,
                host=HOST,
                server_port=self.home.ports[self._server.name],
                port=self.home.ports[self.name],
                folder=folder,
                mode=self._mode,
                sessions=self._sessions,
                server=self._server.area,
            )
        )
        for each in (folder, *folder.iterdir()):
            self._server.give(each)

    @override
    def command(self) -> Sequence[str]:
        return [ensure_pooler(), str(self.folder / "settings")]

    @override
    def missing(self) -> str | None:
        try:
            socket.create_connection((HOST, self.home.ports[self.name]), timeout=2).close()
        except OSError:
            return "it does not answer"
        return None
