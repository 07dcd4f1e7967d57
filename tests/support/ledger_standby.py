"""A standby of a ledger's server: it streams what the server writes, until it is promoted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Final

from psycopg.conninfo import make_conninfo
from typing_extensions import override

from sandbox.clusters.ledger_tls import TlsPostgres
from sandbox.errors import ServiceFailed
from sandbox.services.postgres import SUPERUSER

APPLICATION: Final = "standby"


class Standby(TlsPostgres):
    """Made from its server as that runs; ready when it answers, for it may be read."""

    def __init__(self, primary: TlsPostgres, name: str) -> None:
        super().__init__(primary.home, name)
        self.primary = primary

    @override
    def initialise(self) -> None:
        conninfo = make_conninfo(
            self.primary.dsn("postgres", role=SUPERUSER),
            sslrootcert=str(self.primary.area / "ca.pem"),
            application_name=APPLICATION,
        )
        argv = [self.program("pg_basebackup"), "--write-recovery-conf", "--checkpoint=fast"]
        argv += ["--no-sync", "--pgdata", str(self.data)]
        argv += ["--dbname", conninfo]
        with self.log.open("ab") as out:
            done = subprocess.run(
                argv,
                cwd=self.area,
                env=self.environment(),
                stdout=out,
                stderr=out,
                check=False,
                user=self.run_as,
                group=self.run_as,
                extra_groups=None if self.run_as is None else [],
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, "could not copy its server", self.log)

    @override
    def provision(self) -> None:
        """Everything comes from the server."""

    @property
    @override
    def settings(self) -> Mapping[str, str]:
        # A promoted standby waits for none of its own.
        return {**super().settings, "synchronous_standby_names": ""}

    @override
    def environment(self) -> Mapping[str, str]:
        # libpq looks for keys in a home that the server's user may not enter.
        return {**os.environ, "HOME": str(self.area)}
