"""What a look at storage asks when nothing has changed: `python bench/unchanged_feed.py`.

Puts a feed of so many small files, 100 in each batch, into a ledger and a local directory of its
own, and looks at them twice: the first look compares every file, the second one finds them as they
were. Prints what each look asks of the file system, how many rows the ledger gives it, and how long
it takes. The last line is JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.filled_hours import fill_hours
from bench.measured import Bound, print_environment, print_result
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.workflows.reconciling.storage_check import storage_findings
from tests.support.ledger_server import LedgerServer
from tests.support.scripted_broker import ScriptedBroker
from tests.support.story import FEED, Story

_FILES: Final = 100
"""Of one batch."""
_CONTENT: Final = b"a landed file"
_MANIFEST: Final = "a manifest"
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FILL: Final = """
INSERT INTO file (batch_id, name, length_bytes, checksum, record_count)
SELECT batch_id, number || '.parquet', {length}, 'sha256:{checksum}', 1
  FROM batch CROSS JOIN generate_series(1, {files}) number;
ANALYZE;
"""


class Asked:
    """A port that counts its questions, and what it answers."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.questions: Counter[str] = Counter()
        self.listed: list[str] = []
        """The directories that were listed."""
        self.rows: Counter[str] = Counter()
        """How many rows each question has brought."""

    def __getattr__(self, name: str) -> Any:
        self.questions[name] += 1
        asked = getattr(self._port, name)

        def counted(*args: Any, **named: Any) -> Any:
            answer = asked(*args, **named)
            if name == "entries":
                self.listed.append(args[0])
            elif name == "directories":
                self.rows["files"] += sum(len(each.files) for each in answer)
            elif name == "batch_places":
                self.rows["batches"] += len(answer)
            return answer

        return counted if callable(asked) else asked


def main() -> None:
    """Fill, look, print."""
    arguments = _arguments()
    print_environment()
    server = LedgerServer()
    server.start()
    figures: dict[str, dict[str, float]] = {}
    try:
        with tempfile.TemporaryDirectory() as directory:
            database = server.fresh()
            story = Story(server.dsn(database), Path(directory), ScriptedBroker(FEED))
            _fill(story, server.admin_dsn(database), arguments.files // _FILES)
            for look in ("first", "second"):
                figures[look] = _look(story)
                print(f"{look:<8}{figures[look]}", flush=True)
    finally:
        server.stop()
    again = {
        name: Bound(figures["second"][key] / figures["first"][key], 0.0)
        for name, key in (
            ("checksums_asked_again", "checksum"),
            ("batches_listed_again", "listings_of_batches"),
            ("files_of_the_ledger_again", "files_of_ledger"),
        )
    }
    print_result("unchanged_feed", 1, figures, again)


def _fill(story: Story, dsn: str, batches: int) -> None:
    script = _FILL.format(files=_FILES, length=len(_CONTENT), checksum=sha256(_CONTENT).hexdigest())
    with psycopg.connect(dsn, autocommit=True) as admin:
        manifest = _MANIFEST.encode()
        fill_hours(admin, FEED, _START, batches, records=_FILES, holes=0, manifest=manifest)
        admin.execute(script.encode())
    for number in range(batches):
        hour = _START + timedelta(hours=number)
        name = f"gen=1/dt={hour:%Y-%m-%d}/hour={hour:%H}/batch={number + 1:016x}"
        place = story.directory / "landing" / FEED / name
        place.mkdir(parents=True)
        (place / MANIFEST_NAME).write_text(_MANIFEST)
        for file in range(1, _FILES + 1):
            (place / f"{file}.parquet").write_bytes(_CONTENT)
        # Landed long ago: a time of the last hour does not tell of the next change.
        os.utime(place, (hour.timestamp(), hour.timestamp()))


def _look(story: Story) -> dict[str, float]:
    services = story.services()
    store, ledger = Asked(services.store), Asked(services.ledger)
    services = replace(services, store=store, ledger=ledger)  # type: ignore[arg-type]  # it counts
    wall, own = time.perf_counter(), time.process_time()
    found = storage_findings(services, services.ledger.batch_places(FEED))
    assert not found, found[0]
    of_batches = sum("/batch=" in each for each in store.listed)
    return {
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - own, 2),
        "listings_of_batches": of_batches,
        "other_listings": len(store.listed) - of_batches,
        **{verb: store.questions[verb] for verb in ("checksum", "read")},
        "batches_of_ledger": ledger.rows["batches"],
        "files_of_ledger": ledger.rows["files"],
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
