"""What a look at storage asks when nothing has changed: `python bench/unchanged_feed.py`.

Puts a feed of so many small files, 100 in each batch, into a ledger and a local directory of its
own, and looks at them twice: the first look compares every file, the second one finds them as they
were. Prints what each look asks of the file system, and how long it takes. The last line is JSON.
"""

from __future__ import annotations

import argparse
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
    """A store that counts its questions."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.questions: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.questions[name] += 1
        return getattr(self._store, name)


def main() -> None:
    """Fill, look, print."""
    arguments = _arguments()
    print_environment()
    server = LedgerServer()
    server.start()
    figures: dict[str, object] = {}
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
    asked = [figures[look]["checksum"] for look in ("second", "first")]  # type: ignore[index]
    print_result(
        "unchanged_feed", 1, figures, {"checksums_asked_again": Bound(asked[0] / asked[1], 0.0)}
    )


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


def _look(story: Story) -> dict[str, float]:
    services = story.services()
    store = Asked(services.store)
    services = replace(services, store=store)
    wall, own = time.perf_counter(), time.process_time()
    found = storage_findings(services, services.ledger.directories(FEED))
    assert not found, found[0]
    return {
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - own, 2),
        **{verb: store.questions[verb] for verb in ("entries", "checksum", "read")},
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
