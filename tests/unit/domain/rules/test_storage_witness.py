"""What a full read of landed files means: every case, and what is taken for the next time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.standing_batch import (
    DueBatch,
    SliceKey,
    StandingBatch,
    files_to_read,
    within_budget,
)
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.batches.stored_file import StoredFile, while_read
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import BoundedRuns, ReadFile, ReadSlice
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.storage_witness import BatchJudgement, judged, missing_or_changed
from tallystick.domain.verdicts import Verdict
from tests.support.builders import BATCH, a_batch, an_attempt, planned

# One batch: [0, 10) of partition 0 in two files, the second with [5, 9) of partition 1 beside it.
HOLES = {HoleClass.CONTROL: OffsetRuns.of([(4, 5)]), HoleClass.ABORTED: OffsetRuns.of([(8, 9)])}
FIRST = LandedFile("a.parquet", 100, "x:1", (FileSlice(0, 0, 5, 5),))
SECOND = LandedFile("b.parquet", 70, "x:2", (FileSlice(0, 6, 9, 3), FileSlice(1, 5, 8, 4)))
RANGES = (planned(0, 10), planned(5, 9, partition=1))
MANIFEST = Manifest(
    a_batch(*RANGES),
    an_attempt(),
    Isolation.READ_COMMITTED,
    (AccountedRange(RANGES[0], 8, HOLES), AccountedRange(RANGES[1], 4)),
    (FIRST, SECOND, LandedFile("empty.parquet", 9, "x:3", ())),
)
KEY = SliceKey("a.parquet", 0)
TAKEN = Fingerprint(5, 11, (1, 2), 0, 5)
DIRECTORY = "/data/landing/orders/gen=1/dt=2026-11-01/hour=12/batch=00000000000000b1"


def standing(
    fingerprints: Mapping[SliceKey, Fingerprint] | None = None, *names: str
) -> StandingBatch:
    return StandingBatch(
        MANIFEST,
        frozenset(names or ("a.parquet", "b.parquet", "empty.parquet")),
        fingerprints or {},
    )


def runs(*pairs: tuple[int, int]) -> BoundedRuns:
    return BoundedRuns.of(OffsetRuns.of(pairs))


def a_read(fingerprint: Fingerprint = TAKEN, **offsets: BoundedRuns) -> ReadFile:
    return ReadFile("a.parquet", (ReadSlice(0, fingerprint, **offsets),))


OTHER = ReadFile("b.parquet", (ReadSlice(0, TAKEN), ReadSlice(1, TAKEN)))


STORED = {each.name: StoredFile(each.length_bytes, each.checksum) for each in (FIRST, SECOND)}
CHANGED = StoredFile(101, "x:9")
UNASKED = StoredFile(100, None, "no DataNode")


def judgement(
    read: ReadFile, batch: StandingBatch | None = None, first: StoredFile | None = None
) -> BatchJudgement:
    files = {each.name: each for each in (read, OTHER)}
    return judged(batch or standing(), files, STORED | ({"a.parquet": first} if first else {}))


def told(findings: tuple[Finding, ...], level: Level = Level.L3) -> list[tuple[Any, ...]]:
    assert all(each.level is level for each in findings)
    assert all(each.evidence["batch"] == BATCH for each in findings)
    assert all(each.generation == 1 for each in findings)
    return [
        (
            each.code,
            each.verdict,
            each.evidence["file"],
            (each.partition, each.from_offset, each.until_offset),
        )
        for each in findings
    ]


def test_a_first_clean_read_takes_every_fingerprint() -> None:
    found = judgement(a_read())
    assert found.findings == ()
    assert found.is_clean
    assert found.taken == {
        KEY: TAKEN,
        SliceKey("b.parquet", 0): TAKEN,
        SliceKey("b.parquet", 1): TAKEN,
    }


def test_a_later_read_that_says_the_same_takes_nothing() -> None:
    known = dict(judgement(a_read()).taken)
    found = judgement(a_read(), standing(known))
    assert found.is_clean
    assert found.taken == {}


A8, B2, C1, U1 = (
    FindingCode.COMMITTED_FILE_MISSING,
    FindingCode.LANDED_TWICE,
    FindingCode.CONTENT_CHANGED,
    FindingCode.COULD_NOT_TELL,
)
LOSS, DUP, SUSPECTED, UNKNOWN = (
    Verdict.PROVEN_LOSS,
    Verdict.PROVEN_DUP,
    Verdict.SUSPECTED,
    Verdict.UNKNOWN,
)


@pytest.mark.parametrize(
    ("read", "expected", "complete"),
    [
        (
            a_read(missing=runs((1, 2), (3, 4))),
            [(A8, LOSS, "a.parquet", (0, 1, 2)), (A8, LOSS, "a.parquet", (0, 3, 4))],
            True,
        ),
        (a_read(doubled=runs((2, 4))), [(B2, DUP, "a.parquet", (0, 2, 4))], True),
        (a_read(foreign=runs((6, 8))), [(B2, SUSPECTED, "a.parquet", (0, 6, 8))], True),
        (
            a_read(missing=runs((0, 1)), doubled=runs((5, 6))),
            [(A8, LOSS, "a.parquet", (0, 0, 1)), (B2, DUP, "a.parquet", (0, 5, 6))],
            True,
        ),
        (
            ReadFile("a.parquet", failure="CRC", is_damaged=True),
            [(C1, LOSS, "a.parquet", (0, 0, 6))],
            True,
        ),
        (ReadFile("a.parquet", failure="no block"), [(U1, UNKNOWN, "a.parquet", (0, 0, 6))], False),
        (ReadFile("x.parquet"), [(U1, UNKNOWN, "a.parquet", (0, 0, 6))], False),
    ],
    ids=["missing", "doubled", "foreign", "both", "damaged", "unread", "not named"],
)
def test_what_is_wrong_is_named_to_the_offset(
    read: ReadFile, expected: list[tuple[Any, ...]], complete: bool
) -> None:
    found = judgement(read)
    assert told(found.findings) == expected
    assert found.is_complete == complete
    assert not found.is_clean
    assert KEY not in found.taken, "nothing is taken from what is wrong"
    assert SliceKey("b.parquet", 1) in found.taken, "and the other file is not hidden"


@pytest.mark.parametrize("stored", [CHANGED, UNASKED])
def test_no_fingerprint_is_taken_of_bytes_that_are_not_those_of_the_commit(
    stored: StoredFile,
) -> None:
    # Invariant 4 of `storage_witness`.
    found = judgement(a_read(), first=stored)
    assert KEY not in found.taken
    assert SliceKey("b.parquet", 1) in found.taken
    assert not found.is_clean
    assert found.is_complete is (stored is CHANGED)


def test_rows_that_are_right_in_other_bytes_are_well_and_not_clean() -> None:
    found = judgement(a_read(), standing(dict(judgement(a_read()).taken)), CHANGED)
    assert (found.is_well, found.is_clean) == (True, False)


def test_other_rows_in_the_bytes_of_the_commit_prove_one_witness_wrong() -> None:
    now = Fingerprint(5, 11, (1, 3), 0, 5)
    [found] = judgement(a_read(now), standing({KEY: TAKEN})).findings
    assert (found.code, found.verdict) == (C1, UNKNOWN)
    assert "one of the two is wrong" in found.cause
    assert "--level 4" in found.next_step


def test_other_rows_in_a_file_that_could_not_be_asked_are_unknown() -> None:
    now = Fingerprint(5, 11, (1, 3), 0, 5)
    found = judgement(a_read(now), standing({KEY: TAKEN}), UNASKED)
    assert told(found.findings) == [(U1, UNKNOWN, "a.parquet", (0, 0, 6))]
    assert not found.is_complete


def test_a_file_that_changes_while_it_is_read_could_not_be_asked() -> None:
    after = while_read(
        {"same": CHANGED, "other": CHANGED, "unasked": UNASKED, "gone": CHANGED},
        {"same": CHANGED, "other": STORED["a.parquet"], "unasked": UNASKED, "new": CHANGED},
    )
    assert after["same"] == CHANGED
    assert after["unasked"] == UNASKED
    for name in ("other", "new"):
        assert after[name].checksum is None
        assert after[name].trouble == "it was changed while it was read"
    assert "gone" not in after


def test_another_content_at_the_same_offsets_is_named_with_both_fingerprints() -> None:
    now = Fingerprint(5, 11, (1, 3), 0, 5)
    found = judgement(a_read(now), standing({KEY: TAKEN}), CHANGED)
    assert told(found.findings) == [(C1, LOSS, "a.parquet", (0, 0, 6))]
    [finding] = found.findings
    assert "hashes over place and content" in finding.cause
    assert finding.evidence["fingerprint"]["hash_sums"] == [1, 2]  # type: ignore[index]
    assert finding.evidence["fingerprint_now"]["hash_sums"] == [1, 3]  # type: ignore[index]
    assert KEY not in found.taken


def test_the_same_trouble_has_the_same_evidence_at_every_look() -> None:
    one, other = (judgement(a_read(doubled=runs((2, 4)))).findings for _ in range(2))
    assert one == other


def test_wrong_offsets_are_not_told_as_other_content_too() -> None:
    now = Fingerprint(4, 10, (1, 3), 0, 5)
    found = judgement(a_read(now, missing=runs((1, 2))), standing({KEY: TAKEN}))
    assert told(found.findings) == [(A8, LOSS, "a.parquet", (0, 1, 2))]


def test_a_file_that_storage_says_is_gone_is_a_committed_file_missing() -> None:
    read = ReadFile("b.parquet", failure="PATH_NOT_FOUND")
    here = {"a.parquet": STORED["a.parquet"]}
    found = judged(standing(), {"a.parquet": a_read(), "b.parquet": read}, here)
    assert told(found.findings, Level.L2) == [
        (A8, LOSS, "b.parquet", (0, 6, 10)),
        (A8, LOSS, "b.parquet", (1, 5, 9)),
    ]
    assert tuple(missing_or_changed(MANIFEST, DIRECTORY, here)) == found.findings
    assert found.is_complete


def test_a_retracted_file_is_nobody_s_trouble_any_more() -> None:
    damaged = ReadFile("a.parquet", failure="CRC", is_damaged=True)
    found = judgement(damaged, standing(None, "b.parquet"))
    assert found.is_clean


def test_too_many_runs_are_told_at_once_with_their_totals() -> None:
    many = runs(*((each, each + 1) for each in range(0, 1000, 2)))
    found = judgement(a_read(missing=many))
    assert told(found.findings) == [(A8, LOSS, "a.parquet", (0, 0, 999))]
    [finding] = found.findings
    assert (finding.evidence["offsets"], finding.evidence["runs"]) == (500, 500)
    assert finding.evidence["first_runs"][:2] == [[0, 1], [2, 3]]  # type: ignore[index]
    assert "500 of them, in 500 runs" in finding.cause


def test_rows_of_a_partition_that_nobody_committed_are_a_suspicion() -> None:
    read = ReadFile("a.parquet", (ReadSlice(0, TAKEN), ReadSlice(7, TAKEN, foreign=runs((0, 2)))))
    found = judgement(read)
    assert told(found.findings) == [(B2, SUSPECTED, "a.parquet", (7, 0, 2))]
    assert SliceKey("a.parquet", 7) not in found.taken


def test_what_is_read_are_the_standing_files_with_the_holes_of_each_slice() -> None:
    batch = standing(None, "b.parquet", "empty.parquet")
    [file] = files_to_read(batch, lambda path: f"hdfs://nn{path}")
    assert file.uri == f"hdfs://nn{DIRECTORY}/b.parquet"
    assert (file.length_bytes, file.record_count) == (70, 7)
    assert [(each.partition, list(each.holes)) for each in file.slices] == [(0, [(8, 9)]), (1, [])]

    whole = files_to_read(standing(), lambda path: path)
    assert [list(each.slices[0].holes) for each in whole] == [[(4, 5)], [(8, 9)]]
    assert [each.slices[0].record_count for each in whole] == [5, 3]


@pytest.mark.parametrize(
    ("sizes", "budget", "chosen"),
    [
        ([], 10, 0),
        ([100], 10, 1),  # else it would never be read
        ([5, 5, 1], 10, 2),
        ([5, 6, 1], 10, 1),  # the order is kept: a small one does not overtake
        ([1, 1, 1], 10, 3),
    ],
)
def test_a_scrub_reads_the_first_ones_that_the_budget_allows(
    sizes: list[int], budget: int, chosen: int
) -> None:
    at = datetime(2026, 11, 1, tzinfo=UTC)
    due = [DueBatch(BatchId(str(n)), size, at) for n, size in enumerate(sizes)]
    assert within_budget(due, budget) == tuple(due[:chosen])
