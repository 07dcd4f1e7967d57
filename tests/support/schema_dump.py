"""Today's schema of the ledger as one text, as PostgreSQL itself tells it.

`python -m tests.support.schema_dump` writes it to `plugins/tallystick/ledger/schema.sql`.
"""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Final

from sandbox.services.postgres_programs import programs_for
from tests.support.ledger_server import OWNER_ROLE, LedgerServer

SCHEMA: Final = Path(str(files("tallystick.ledger"))) / "schema.sql"
_HEAD: Final = """\
-- The ledger's schema as it is after all migrations: generated, for reading. Its reasons are in
-- sql/migrations. Written anew by: python -m tests.support.schema_dump
"""


def schema_text(dsn: str) -> str:
    """The schema of a migrated database, without what only its restoring needs."""
    program = programs_for(None, copies=Path()) / "pg_dump"
    dumped = subprocess.run(
        [program, "--schema-only", "--no-owner", "--no-privileges", f"--dbname={dsn}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    told: list[str] = []
    for line in dumped.splitlines():
        # What it was dumped by and from, sessions' settings, a key against injected commands.
        if line.startswith(("\\", "-- Dumped", "SET ", "SELECT pg_catalog.set_config")):
            continue
        if line.startswith("--") and not line.startswith("-- Name:"):
            continue
        if line.startswith("-- Name:"):
            line = line.partition("; Schema:")[0].replace("Name: ", "").replace("; Type:", ",")
        if line or (told and told[-1]):
            told.append(line)
    return _HEAD + "\n" + "\n".join(told).strip() + "\n"


if __name__ == "__main__":
    server = LedgerServer()
    try:
        server.start()
        SCHEMA.write_text(schema_text(server.dsn("ledger_template", role=OWNER_ROLE)))
    finally:
        server.stop()
