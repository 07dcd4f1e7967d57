"""What a year of hourly runs takes in the ledger: `python bench/ledger_year.py [--partitions N M]`.

Goes through real runs in a ledger of its own: plan, attempt, proof, commit, publication, a look at
the broker, a look at the offsets, a report, and folding. A fifth of the partitions has a hole in
each run, and a file holds 100 slices. No full read has taken fingerprints. Then it lets six weeks
pass and folds again. Prints what each table takes in a year of 10,000 partitions: four days or four
weeks of runs as they are at first, the others as they are when they are old. It measures two
widths, for a run has rows of its own however many partitions it has. The last line is JSON.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.ledger_history import reported
from bench.measured import Bound, print_environment, print_result
from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import LogChanges
from tallystick.ledger.proofs import DirectoryLook
from tests.support.builders import FEED
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import LedgerStory, manifest_of

_YEAR: Final = 24 * 365
_YOUNG_RUNS: Final = 4 * 24
"""At most so many have holes of their own still: of two days, of the day that is not over, and of
the hours until all logs had their turn.
"""
_WHOLE_RUNS: Final = 29 * 24
"""At most so many have their last hashes, looks and reports still."""
_THINNED: Final = frozenset({"verification", "broker_snapshot", "report"})
_WIDE: Final = 10_000
_SLICES: Final = 100
_GIGABYTE: Final = 1e9
_WORTH_A_LINE: Final = 0.01
_AIM_GIGABYTES: Final = 4.0
# What has run in minutes has run hour by hour then: looks and reports are thinned by days.
_SIX_WEEKS_PASS = """
SET session_replication_role = replica;
UPDATE batch SET committed_at = committed_at - interval '6 weeks';
UPDATE report SET recorded_at = recorded_at - interval '6 weeks' - hours * interval '1 hour'
  FROM (SELECT report_id, row_number() OVER (ORDER BY report_id DESC) AS hours FROM report) run
 WHERE run.report_id = report.report_id;
UPDATE broker_snapshot s
   SET begun_at = begun_at - interval '6 weeks' - looks * interval '30 minutes'
  FROM (SELECT snapshot_id, row_number() OVER (ORDER BY look_number DESC) AS looks
          FROM broker_snapshot) run
 WHERE run.snapshot_id = s.snapshot_id;
"""
_SIZES = """
SELECT relname, pg_total_relation_size(oid) FROM pg_class
 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


def main() -> None:
    """Run, measure, print."""
    arguments = _arguments()
    print_environment()
    narrow, wide = sorted(arguments.partitions)
    server = LedgerServer()
    server.start()
    try:
        of_narrow = _gigabytes_a_year(server, narrow, arguments.runs)
        of_wide = _gigabytes_a_year(server, wide, arguments.runs)
    finally:
        server.stop()
    grown = {
        name: size + (size - of_narrow[name]) * (_WIDE - wide) / (wide - narrow)
        for name, size in of_wide.items()
    }
    figures = {}
    for name, gigabytes in sorted(grown.items(), key=lambda each: -each[1]):
        if gigabytes > _WORTH_A_LINE:
            figures[name] = {"gigabytes_a_year": round(gigabytes, 3)}
            print(f"{name:<20}{gigabytes:7.2f} GB in a year of {_WIDE:,} partitions")
    total = sum(grown.values())
    print(f"{'in all':<20}{total:7.2f} GB, the aim is {_AIM_GIGABYTES:.0f}")
    ratios = {"a year": Bound(total, _AIM_GIGABYTES, unit="GB")}
    print_result("ledger_year", arguments.runs, figures, ratios)


def _gigabytes_a_year(server: LedgerServer, partitions: int, runs: int) -> dict[str, float]:
    """By table, of hourly runs over so many partitions, when this many were measured."""
    database = server.fresh()
    year, admin = _Year(LedgerStory(server.dsn(database)), partitions), server.admin_dsn(database)
    year.run(runs)
    year.grow_old(admin)
    before = _sizes(admin)
    year.run(runs)
    young = _sizes(admin)
    year.grow_old(admin)
    old = _sizes(admin)
    server.drop(database)
    return {
        name: ((size - before[name]) * whole + (old[name] - before[name]) * (_YEAR - whole))
        / (runs * _GIGABYTE)
        for name, size in young.items()
        for whole in (_WHOLE_RUNS if name in _THINNED else _YOUNG_RUNS,)
    }


class _Year:
    """Hourly runs, one after the other."""

    def __init__(self, story: LedgerStory, partitions: int) -> None:
        self._story = story
        self._random = random.Random(1)
        self._landed = dict.fromkeys(range(partitions), 0)
        story.open(dict.fromkeys(range(partitions), (0, 0)))

    def run(self, runs: int) -> None:
        for _ in range(runs):
            self._run()

    def grow_old(self, dsn: str) -> None:
        """Six weeks pass, and all is folded that is old then."""
        with psycopg.connect(dsn, autocommit=True) as admin:
            admin.execute(_SIX_WEEKS_PASS)
            left, after = -1, 0
            while left != after:
                left = after
                self._story.ledger.fold(FEED)
                ((after,),) = admin.execute("SELECT count(*) FROM hole").fetchall()

    def _run(self) -> None:
        story, ledger = self._story, self._story.ledger
        ends = {each: at + self._random.randint(500, 1500) for each, at in self._landed.items()}
        bounds = {each: (0, end) for each, end in ends.items()}
        story.change(LogChanges(), bounds)
        batch = story.batch_of(*((each, at, ends[each]) for each, at in self._landed.items()))
        story.freeze(batch)
        attempt = story.begin(batch.batch_id)
        ledger.record_verified(attempt, self._proof(batch, attempt, ends))
        ledger.commit(attempt)
        ledger.mark_published(batch.batch_id)
        story.change(LogChanges(), bounds)  # what a reconcile sees
        ledger.record_offsets_look(batch.batch_id, is_clean=True)
        seen = {batch.batch_id: DirectoryLook(self._random.randbytes(32))}
        ledger.note_directory_looks(seen, [], compared_at=ledger.clock())
        ledger.store_report(reported(ledger))
        ledger.fold(FEED)
        self._landed = ends

    def _proof(self, batch: BatchPlan, attempt: Attempt, ends: Mapping[int, int]) -> Manifest:
        """With hashes that can't be compressed, as real ones can't."""
        holes = {
            each: {HoleClass.CONTROL: OffsetRuns.of([(end - 1, end)])}
            for each, end in ends.items()
            if each % 5 == 0
        }
        proof = manifest_of(batch, attempt, holes=holes)
        files = [
            LandedFile(
                name=proof.files[first].name,
                length_bytes=self._random.randrange(10**9),
                checksum=f"COMPOSITE-CRC32C:{self._random.randbytes(4).hex()}",
                slices=tuple(
                    each for one in proof.files[first : first + _SLICES] for each in one.slices
                ),
            )
            for first in range(0, len(proof.files), _SLICES)
        ]
        ranges = [
            replace(
                each, anchor=each.anchor and replace(each.anchor, content_hash=self._random_hash())
            )
            for each in proof.ranges
        ]
        return replace(proof, files=tuple(files), ranges=tuple(ranges))

    def _random_hash(self) -> bytes:
        return self._random.randbytes(16)


def _sizes(dsn: str) -> dict[str, int]:
    """Bytes of each table with its indexes, once it is as small as it gets."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("VACUUM FULL")
        return dict(admin.execute(_SIZES).fetchall())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs=2, default=[200, 1000])
    parser.add_argument(
        "--runs",
        type=int,
        default=168,
        help="before the measure, and in it; a folded row holds a week of holes",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
