"""Files that no committed batch owns: what they may be, and what is told of them (A9, A8, B2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a9_stray_file import stray_files
from tallystick.domain.rules.b2_landed_twice import shared_with_stray
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.storage_witness import missing_or_changed
from tallystick.domain.rules.u1_could_not_tell import STRAY as UNREAD_STRAY
from tallystick.domain.rules.u1_could_not_tell import unread_paths
from tallystick.domain.rules.waivers import as_far_as_asked
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, TOPIC, a_file, a_manifest

PATH = "/landing/orders/gen=1/dt=2026-11-01/hour=07/copy.parquet"
TEN = OffsetRuns.of([(0, 10)])
MANIFEST = a_manifest(files=(a_file("one.parquet", FileSlice(0, 0, 9, 10)),))

# Held, committed, kept: may it be the only copy, is it news to the ledger, what is there twice.
ROWS: list[tuple[str, Mapping[int, OffsetRuns] | None, OffsetRuns, OffsetRuns, bool, bool, int]] = [
    ("a copy", {0: TEN}, TEN, TEN, False, False, 1),
    ("a copy of a file that is gone", {0: TEN}, TEN, OffsetRuns(), True, False, 0),
    ("rows that nobody knows", {0: TEN}, OffsetRuns(), OffsetRuns(), True, True, 0),
    ("one row more", {0: OffsetRuns.of([(0, 11)])}, TEN, TEN, True, True, 1),
    ("no Parquet", {}, OffsetRuns(), OffsetRuns(), False, False, 0),
    ("half a Parquet file", None, OffsetRuns(), OffsetRuns(), True, True, 0),
]


@pytest.mark.parametrize(
    ("held", "committed", "kept", "is_sole", "is_news", "twice"),
    [pytest.param(*rest, id=name) for name, *rest in ROWS],
)
def test_what_a_stray_is(
    held: Mapping[int, OffsetRuns] | None,
    committed: OffsetRuns,
    kept: OffsetRuns,
    is_sole: bool,
    is_news: bool,
    twice: int,
) -> None:
    stray = StrayFile(PATH, held, {0: committed}, {0: kept} if kept else {})
    assert (stray.may_be_only_copy, stray.is_news_to_ledger) == (is_sole, is_news)
    assert len(list(shared_with_stray(FEED, TOPIC, stray))) == twice
    assert bool(stray.words) is is_sole


def test_a_stray_is_suspected_and_never_deleted() -> None:
    (found,) = stray_files(FEED, TOPIC, [StrayFile(PATH, {})])
    assert (found.code, found.verdict) == (FindingCode.STRAY_FILE, Verdict.SUSPECTED)
    assert "moves it to quarantine" in found.next_step
    assert found.evidence == {"path": PATH, "length_bytes": 0, "changed_ms": 0}


def test_one_that_may_be_the_only_copy_is_moved_by_its_number() -> None:
    sole, unread = stray_files(
        FEED, TOPIC, [StrayFile(PATH, {3: TEN}), StrayFile(f"{PATH}.2", None)]
    )
    assert sole.evidence["sole_rows"] == [
        {
            "partition": 3,
            "offsets": 10,
            "runs": 1,
            "first_runs": [[0, 10]],
            "runs_sha256": TEN.digest,
        }
    ]
    assert unread.evidence["sole_rows"] == "unreadable"
    assert all(f"repair {FEED} NUMBER" in each.next_step for each in (sole, unread))
    assert sole.key != unread.key


def test_a_stray_that_could_not_be_asked_is_unknown_and_stays_what_it_was() -> None:
    """Its rows were read before; or a committed file that may hold them too could not be asked."""
    [before] = stray_files(FEED, TOPIC, [StrayFile(PATH, {3: TEN}, length_bytes=9)])
    for held in ({3: TEN}, None):
        now = StrayFile(PATH, held, trouble="no DataNode.", length_bytes=9)
        [found] = stray_files(FEED, TOPIC, [now])
        [unread] = unread_paths(UNREAD_STRAY, FEED, TOPIC, {PATH: "no DataNode."})
        assert as_far_as_asked(found, [before]) == before
        assert (unread.code.value, unread.subject) == ("U1", PATH)
        [anew] = stray_files(FEED, TOPIC, [replace(now, changed_ms=1)])
        assert as_far_as_asked(anew, [before]) == anew


def missing() -> Finding:
    (found,) = missing_or_changed(MANIFEST, "/d", dict[str, StoredFile]())
    return found


def test_the_runs_that_a_stray_doubles_are_counted_in_full_and_named_up_to_a_hundred() -> None:
    held = OffsetRuns.of((first, first + 2) for first in range(9, 9 + 3 * 101, 3))
    stray = StrayFile("/d/gen=1/copy.parquet", {0: held, 1: held}, kept={0: held})
    [found] = shared_with_stray(FEED, TOPIC, stray)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 9, 311)
    assert (found.evidence["offsets"], found.evidence["runs"]) == (202, 101)
    assert found.evidence["first_runs"] == [list(run) for run in held][:100]
