"""What a repair does about several findings, files that share offsets, and batches to adopt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tallystick.domain.batches.batch import BatchStatus, CommittedFile
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.repair.facts import NotMended, NumberedFinding, RepairFacts
from tallystick.domain.repair.finishing import Adopt, adopted, finish
from tallystick.domain.repair.landing_again import LATER, sharing_offsets
from tallystick.domain.repair.quarantining import EndsWithStray, Quarantine
from tallystick.domain.rules.n3_unfinished_batch import LEFT_BEHIND
from tests.support.builders import (
    BATCH,
    a_batch,
    a_file,
    a_finding,
    a_manifest,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    planned,
)
from tests.support.repair_facts import (
    ACCOUNT,
    BARE,
    BESIDE,
    CHANGED,
    CUT,
    DIFFERS,
    FIRST,
    HELD,
    MANIFEST,
    MANIFEST_GONE,
    MISSING,
    NAMED,
    NOT_FINISHED,
    NOT_READ,
    OF_ROWS,
    PATH,
    ROOT,
    SECOND,
    SILENT,
    STAGED,
    STOPPED,
    STRAY,
    accounts,
    log,
    of_file,
    plan,
)


class TestSeveralFindings:
    def test_rows_of_a_stray_end_with_the_stray(self) -> None:
        moved = plan(BESIDE, STRAY)
        assert moved.end_with_strays == (EndsWithStray(1, 2),)
        assert [each.finding_id for each in moved.quarantined] == [2]
        assert not moved.not_mended

    def test_and_with_the_directory_that_is_moved_as_a_whole(self) -> None:
        directory = replace(BARE, subject=PATH.rpartition("/")[0])
        assert plan(BESIDE, directory, **NAMED).end_with_strays == (EndsWithStray(1, 2),)

    def test_files_are_given_up_as_far_as_a_finding_names_them(self) -> None:
        both = replace(HELD, evidence={"held_in": {STAGED: "no.", f"{ROOT}/_staging/b2": "no."}})
        unproven = f"{ROOT}/_quarantine/orders/unproven"
        assert plan(both, **NAMED).quarantined == (
            Quarantine(STAGED, f"{unproven}/batch=b1/attempt=a1", 1),
            Quarantine(f"{ROOT}/_staging/b2", f"{unproven}/batch=b2", 1),
        )

    def test_findings_about_one_file_are_one_landing(self) -> None:
        [again] = plan(MISSING, CHANGED, **NAMED).land_again
        assert (again.replaces, again.finding_ids) == ((FIRST,), (1, 2))

    def test_files_of_one_partition_are_two_batches(self) -> None:
        both = plan(MISSING, of_file(FindingCode.CONTENT_CHANGED, SECOND), **NAMED).land_again
        assert [each.replaces for each in both] == [(FIRST,), (SECOND,)]

    def test_batches_beyond_the_most_are_left_to_the_next_repair(self) -> None:
        both = plan(MISSING, of_file(FindingCode.CONTENT_CHANGED, SECOND), most_batches=1, **NAMED)
        assert [each.finding_ids for each in both.land_again] == [(1,)]
        assert both.not_mended == (NotMended(2, LATER),)


# One row of each of two partitions, in a file each.
APART = a_manifest(
    AccountedRange(planned(0, 1), 1),
    AccountedRange(planned(0, 1, partition=1), 1),
    files=(a_file("first", FileSlice(0, 0, 0, 1)), a_file("second", FileSlice(1, 0, 0, 1))),
)
TWO_LOGS = {
    "accounts": Accounts({0: ACCOUNT, 1: an_account(partition=1, frontier=10)}, []),
    "snapshot": a_snapshot({0: bounds(0, 20), 1: bounds(0, 20)}),
    "manifests": {BATCH: APART},
}


@pytest.mark.parametrize(("most_partitions", "batches"), [(2, 1), (1, 2)])
def test_files_of_two_partitions_are_one_batch_if_it_may_hold_both(
    most_partitions: int, batches: int
) -> None:
    findings = (MISSING, of_file(FindingCode.CONTENT_CHANGED, SECOND))
    again = plan(*findings, most_partitions=most_partitions, **TWO_LOGS, **NAMED).land_again
    assert len(again) == batches
    assert [number for each in again for number in each.finding_ids] == [1, 2]


OTHER = BatchId("00000000000000b2")


def overlapping(first_offset: int, *, partition: int = 0) -> dict[str, Any]:
    """Beside the batch, another one with offsets of the same rows up to 7."""
    held = planned(first_offset, 8, partition=0)
    ranges = [AccountedRange(held, held.offsets.span)]
    slices = [FileSlice(0, first_offset, 7, held.offsets.span)]
    if partition:
        ranges.append(AccountedRange(planned(0, 1, partition=partition), 1))
        slices.append(FileSlice(partition, 0, 0, 1))
    batch = a_batch(*(each.planned for each in ranges), batch_id=OTHER)
    other = replace(MANIFEST, plan=batch, ranges=tuple(ranges), files=(a_file("other", *slices),))
    return TWO_LOGS | {"manifests": {BATCH: MANIFEST, OTHER: other}}


class TestFilesThatShareOffsets:
    def test_they_are_replaced_together(self) -> None:
        [again] = plan(MISSING, **overlapping(4), **NAMED).land_again
        assert again.replaces == (FIRST, SECOND, CommittedFile(OTHER, "other"))
        assert again.ranges == (planned(0, 9),)

    def test_a_neighbour_that_shares_none_stays(self) -> None:
        [again] = plan(MISSING, **overlapping(5), **NAMED).land_again
        assert again.replaces == (FIRST,)

    def test_one_that_can_not_be_replaced_holds_all_of_them(self) -> None:
        held = plan(MISSING, in_staging={SECOND}, **overlapping(4), **NAMED)
        [left] = held.not_mended
        assert left.reason.startswith("3 committed files share offsets")
        assert "not published yet" in left.reason

    @pytest.mark.parametrize(("most_partitions", "is_landed"), [(2, True), (1, False)])
    def test_their_batch_holds_no_more_partitions_than_any(
        self, most_partitions: int, is_landed: bool
    ) -> None:
        facts = overlapping(4, partition=1)
        found = plan(MISSING, most_partitions=most_partitions, **facts, **NAMED)
        assert bool(found.land_again) is is_landed
        assert [
            "plan.max_partitions_per_batch is 1" in each.reason for each in found.not_mended
        ] == [True] * (not is_landed)

    def test_no_batch_takes_their_place_where_other_batches_fill_gaps_between_them(self) -> None:
        """Both hold offset 0 of partition 1, and of partition 0 what lies apart."""
        files = (
            a_file("first", FileSlice(0, 0, 1, 2), FileSlice(1, 0, 0, 1)),
            a_file("second", FileSlice(0, 5, 6, 2), FileSlice(1, 0, 0, 1)),
        )
        apart = TWO_LOGS | {"manifests": {BATCH: replace(MANIFEST, files=files)}}
        [left] = plan(MISSING, **apart, **NAMED).not_mended
        assert "has gaps that other batches fill" in left.reason


def test_every_finding_is_in_the_plan_exactly_once() -> None:
    findings = [MISSING, CHANGED, DIFFERS, SILENT, OF_ROWS, STRAY, BARE, BESIDE, MANIFEST_GONE]
    findings += [NOT_FINISHED, NOT_READ, CUT]
    for changes in ({}, NAMED, log(), log(9, 20), accounts(STOPPED) | NAMED):
        found = plan(*findings, **changes)
        numbers = [number for each in found.land_again for number in each.finding_ids]
        numbers += [
            each.finding_id
            for part in (
                found.quarantined,
                found.end_with_strays,
                found.write_manifests,
                found.new_generations,
                found.read_again,
                found.adopt,
                found.not_mended,
            )
            for each in part
        ]
        assert sorted(numbers) == list(range(1, len(findings) + 1))


A, B, C = (CommittedFile(BatchId(name), "rows") for name in "abc")


def held(
    file: CommittedFile, *spans: tuple[int, int], partition: int = 0, ordinal: int = 1
) -> Manifest:
    """A batch with one file, which holds these offsets, the last ones included."""
    slices = (FileSlice(partition, first, last, last + 1 - first) for first, last in spans)
    whole = a_manifest(files=(a_file(file.name, *slices),))
    return replace(whole, plan=replace(whole.plan, batch_id=file.batch_id, ordinal=ordinal))


@pytest.mark.parametrize(
    ("manifests", "groups"),
    [
        pytest.param([held(A, (0, 4)), held(B, (5, 9))], [{A}, {B}], id="side by side"),
        pytest.param([held(A, (0, 5)), held(B, (5, 9))], [{A, B}], id="one offset in both"),
        pytest.param([held(A, (0, 9)), held(B, (3, 4))], [{A, B}], id="one within the other"),
        pytest.param([held(A, (3, 4)), held(B, (3, 4))], [{A, B}], id="the same offsets"),
        pytest.param(
            [held(A, (0, 5)), held(B, (5, 9), partition=1)], [{A}, {B}], id="two partitions"
        ),
        pytest.param(
            [held(A, (0, 5)), held(B, (5, 9), ordinal=2)], [{A}, {B}], id="two generations"
        ),
        pytest.param(
            [held(A, (0, 5)), held(B, (5, 9)), held(C, (9, 12))],
            [{A, B, C}],
            id="one through another",
        ),
        pytest.param(
            [held(A, (0, 5)), held(B, (5, 9)), held(C, (10, 12))],
            [{A, B}, {C}],
            id="and a third beside them",
        ),
        pytest.param(
            [held(A, (0, 9)), held(B, (1, 2)), held(C, (8, 12))],
            [{A, B, C}],
            id="behind one that ends early",
        ),
        pytest.param(
            [held(A, (0, 1), (20, 29)), held(B, (10, 20)), held(C, (1, 2))],
            [{A, B, C}],
            id="through two slices of one file",
        ),
    ],
)
def test_files_that_share_an_offset_are_bound(
    manifests: list[Manifest], groups: list[set[CommittedFile]]
) -> None:
    expected = {file: tuple(sorted(group)) for group in groups for file in group}
    assert sharing_offsets(manifests, replaced=()) == expected
    assert sharing_offsets(reversed(manifests), replaced=()) == expected


def test_what_was_replaced_binds_nothing() -> None:
    manifests = [held(A, (0, 5)), held(B, (5, 9)), held(C, (9, 12))]
    assert sharing_offsets(manifests, replaced={B}) == {A: (A,), C: (C,)}


def test_two_files_of_one_batch_are_bound_too() -> None:
    first, second = FileSlice(0, 0, 5, 6), FileSlice(0, 5, 9, 5)
    batch = a_manifest(files=(a_file("first", first), a_file("second", second)))
    files = tuple(CommittedFile(batch.plan.batch_id, name) for name in ("first", "second"))
    assert sharing_offsets([batch], replaced=()) == dict.fromkeys(files, files)


MINE, ANOTHER, REPAIR = (BatchId(each * 16) for each in "abc")
BY_NAME = Adopt(MINE, 1)


def status(batch_id: BatchId) -> BatchStatus:
    """An unfinished batch; that of a repair replaces a file."""
    found = a_status(planned(0, 5), batch_id=batch_id, lease_seconds_left=60.0)
    if batch_id == REPAIR:
        replaces = (CommittedFile(MINE, "part-0.parquet"),)
        return replace(found, plan=replace(found.plan, replaces=replaces))
    return found


def facts(*adoptable: BatchId) -> RepairFacts:
    """Three unfinished batches, one of them an earlier repair's; these may be adopted."""
    return RepairFacts(
        accounts=Accounts({}, [status(each) for each in (MINE, ANOTHER, REPAIR)]),
        snapshot=a_snapshot({}),
        manifests={},
        missing=(),
        in_staging=(),
        replaced=(),
        stopping={},
        cut_at={},
        roots=(),
        is_operators_word=False,
        is_ledger_behind=False,
        adoptable=adoptable,
    )


@pytest.mark.parametrize(
    ("named", "free", "most", "expected"),
    [
        ([], (MINE, ANOTHER, REPAIR), 5, (REPAIR,)),
        ([BY_NAME], (MINE, ANOTHER, REPAIR), 5, (MINE, ANOTHER, REPAIR)),
        ([BY_NAME], (ANOTHER,), 5, (ANOTHER,)),
        ([BY_NAME], (MINE, ANOTHER, REPAIR), 2, (MINE, ANOTHER)),
        ([BY_NAME], (MINE, ANOTHER, REPAIR), 0, ()),
        ([BY_NAME], (MINE, ANOTHER, REPAIR), -1, ()),
    ],
    ids=["repairs alone", "all with N3", "none that is held", "two fit", "full", "over full"],
)
def test_what_is_adopted(
    named: Sequence[Adopt], free: Sequence[BatchId], most: int, expected: Sequence[BatchId]
) -> None:
    assert adopted(named, facts(*free), most_batches=most) == expected


def left_behind(batch_id: BatchId) -> NumberedFinding:
    """The finding N3 about this batch."""
    found = a_finding(
        "N3", name=LEFT_BEHIND, partition=None, evidence={"batch": batch_id}, subject=batch_id
    )
    return NumberedFinding(1, found)


def test_a_batch_that_nobody_holds_is_adopted() -> None:
    assert finish(left_behind(MINE), facts(MINE)) == BY_NAME


def test_a_batch_that_somebody_holds_is_left_to_him() -> None:
    said = finish(left_behind(MINE), facts(ANOTHER))
    assert isinstance(said, NotMended)
    assert "held by run 1 for 60 s more" in said.reason
