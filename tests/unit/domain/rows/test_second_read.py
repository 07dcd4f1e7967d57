"""Two readers' records against each other, and which offsets are compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.sampling import FIRST_SAMPLE, SampleSize, rotation_size, sampled
from tallystick.domain.rows.second_read import HEAD_BYTES, SeenRecord, SliceRead, differences
from tallystick.domain.rules.c3_rows_differ import (
    ComparedPlace,
    ComparedSlice,
    compared_again,
    differing_rows,
    ranges_to_read,
    slices_to_read_again,
)
from tallystick.domain.rules.findings import Finding
from tests.support.builders import BATCH, a_file, a_manifest, a_range, an_account, by_partition

FIELDS: dict[str, Any] = {
    "partition": 0,
    "offset": 5,
    "timestamp_ms": 7,
    "timestamp_type": 0,
    "key": b"k",
    "value": b"v",
    "headers": (("a", b"1"), ("b", None)),
}


def seen(**changed: Any) -> SeenRecord:
    return SeenRecord.of(**(FIELDS | changed))


def read(*records: SeenRecord, **more: Any) -> SliceRead:
    bounds = {"from_offset": 0, "until_offset": 10} | more
    return SliceRead(a_range(0, 10), records, **bounds)


@pytest.mark.parametrize(
    "changed",
    [
        {"offset": 6},
        {"partition": 1},
        {"timestamp_ms": 8},
        {"timestamp_type": 1},
        {"key": None},
        {"key": b""},
        {"value": None},
        {"value": b"w"},
        {"headers": ()},
        {"headers": (("b", None), ("a", b"1"))},
        {"headers": (("a", b"1"), ("b", b""))},
        {"headers": (("a", b"1"), ("c", None))},
        {"headers": (("a", b"1"), ("b", None), ("b", None))},
    ],
)
def test_every_field_counts(changed: dict[str, Any]) -> None:
    assert seen().is_same_as(seen())
    assert not seen().is_same_as(seen(**changed))


def test_a_head_is_bounded_whatever_the_record_holds() -> None:
    many = tuple((f"{n}" * 500, b"x" * 9_999) for n in range(50))
    head = seen(key=b"k" * 999, value=b"v" * 10**6, headers=many).head
    assert (head.key, head.key_bytes, head.value_bytes) == (b"k" * HEAD_BYTES, 999, 10**6)
    assert (len(head.header_names), head.header_count) == (10, 50)
    assert max(len(each) for each in head.header_names) <= 64


AT5, OTHER = seen(), seen(value=b"w")


@pytest.mark.parametrize(
    ("served", "landed", "is_compacted", "offsets", "why"),
    [
        (read(AT5), [AT5], False, [], "the same"),
        (read(OTHER), [AT5], False, [5], "another value"),
        (read(OTHER), [AT5], True, [5], "a cleaner rewrites nothing"),
        (read(), [], False, [], "a hole on both sides"),
        (read(), [AT5], False, [5], "the broker has none"),
        (read(), [AT5], True, [], "it was cleaned"),
        (read(from_offset=5), [AT5, seen(offset=9)], True, [9], "only what was there then was"),
        (read(AT5), [], False, [5], "nobody landed it"),
        (read(AT5), [], True, [5], "nobody landed it, and it is there"),
        (read(from_offset=5), [AT5], False, [5], "the log begins with it"),
        (read(from_offset=6), [AT5], False, [], "it has expired"),
        (read(AT5, from_offset=6), [AT5], False, [], "it has expired since it was read"),
        (read(OTHER, until_offset=5), [], False, [], "it was read past the answer's end"),
        (read(until_offset=6), [AT5], False, [5], "the answer reaches past it"),
        (read(until_offset=5), [AT5], False, [], "the answer ends before it"),
        (read(not_shown=frozenset({5})), [AT5], False, [], "the client can't show it"),
        (read(not_shown=frozenset({4})), [AT5], False, [5], "it can't show another one"),
    ],
)
def test_only_what_both_sides_answer_for_can_differ(
    served: SliceRead, landed: list[SeenRecord], is_compacted: bool, offsets: list[int], why: str
) -> None:
    found = differences(served, landed, a_range(0, 9) if is_compacted else None)
    assert [each.offset for each in found] == offsets, why


FILES = (a_file("one.parquet", FileSlice(0, 0, 4, 5)), a_file("two.parquet", FileSlice(0, 5, 8, 4)))
MANIFEST = a_manifest(files=FILES)


def compared(from_offset: int, until_offset: int, *differing: int, value: bytes = b"w") -> Any:
    landed = [seen(offset=each) for each in differing]
    served = tuple(seen(offset=each, value=value) for each in differing)
    told = SliceRead(a_range(from_offset, until_offset), served, from_offset, until_offset)
    return ComparedSlice(told, differences(told, landed))


def found(*slices: ComparedSlice) -> list[Finding]:
    return list(differing_rows(MANIFEST, MANIFEST.files, slices))


def test_a_finding_names_each_file_with_the_slices_that_differ() -> None:
    first, second = found(compared(0, 3), compared(3, 8, 4, 5), compared(8, 9, 8))

    assert [(each.from_offset, each.until_offset) for each in (first, second)] == [(0, 5), (5, 10)]
    assert (first.evidence["file"], second.evidence["file"]) == ("one.parquet", "two.parquet")
    assert (first.evidence["slices"], second.evidence["slices"]) == ([[3, 8]], [[3, 8], [8, 9]])
    assert (first.evidence["differences"], second.evidence["differences"]) == (1, 2)
    assert "2 of 6 compared offsets differ, 5 to 8" in second.cause


def test_a_hole_is_told_with_the_file_that_answers_for_it() -> None:
    [only] = found(compared(9, 10, 9))
    assert (only.from_offset, only.until_offset) == (5, 10)
    assert only.evidence["file"] == "two.parquet"


def test_offsets_of_a_batch_without_a_file_are_named_with_their_range() -> None:
    manifest = a_manifest()
    [only] = differing_rows(manifest, manifest.files, [compared(9, 10, 9)])
    assert (only.from_offset, only.until_offset) == (0, 10)
    assert "file" not in only.evidence


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (FILES, {"one.parquet": [(0, 5)], "two.parquet": [(5, 10)]}),
        ([("a", 1, 3), ("b", 6, 8)], {"a": [(0, 6)], "b": [(6, 10)]}),
        ([("b", 1, 3), ("a", 6, 8)], {"b": [(0, 6)], "a": [(6, 10)]}),
        ([("a", 1, 8), ("b", 3, 6)], {"a": [(1, 9)], "b": [(3, 10)]}),
        ([("b", None, None), ("a", None, None)], {"a": [(0, 10)], "b": []}),
        ([("a", None, None), ("b", 2, 3)], {"a": [], "b": [(0, 10)]}),
        ([], {}),
    ],
    ids=["whole", "holes", "another order", "one in another", "no rows", "an empty file", "none"],
)
def test_every_hole_has_one_file_that_answers_for_it(files: Any, expected: Any) -> None:
    made = [
        each
        if isinstance(each, LandedFile)
        else a_file(each[0], *([] if each[1] is None else [FileSlice(0, each[1], each[2], 1)]))
        for each in files
    ]
    spans = spans_of(a_manifest(files=tuple(made)))
    assert {
        name: [(each.from_offset, each.until_offset) for each in ranges]
        for name, ranges in spans.items()
    } == expected


STANDING = found(compared(3, 5, 4))
PLACE = ComparedPlace(BATCH, "one.parquet", 0)


@pytest.mark.parametrize(
    ("slices", "ends", "why"),
    [
        ([compared(3, 5)], True, "compared again, equal"),
        ([compared(0, 9)], True, "within a larger slice"),
        ([compared(3, 5, 4)], False, "it differs still"),
        ([compared(3, 5, 3)], False, "its neighbour differs now"),
        ([compared(4, 5)], False, "a part of it only"),
        ([compared(0, 3), compared(5, 9)], False, "others"),
        ([], False, "nothing"),
    ],
)
def test_a_finding_ends_when_its_slices_are_compared_again_and_equal(
    slices: list[ComparedSlice], ends: bool, why: str
) -> None:
    assert compared_again(BATCH, STANDING, slices) == (frozenset({PLACE}) if ends else frozenset())


def test_slices_of_standing_findings_are_read_again_as_far_as_they_can_be() -> None:
    whole = [a_range(4, 10)]
    assert slices_to_read_again(MANIFEST.plan, STANDING, whole) == (a_range(4, 5),)
    assert slices_to_read_again(MANIFEST.plan, STANDING, [a_range(6, 10)]) == ()
    others = [replace(STANDING[0], evidence={**STANDING[0].evidence, "batch": "c" * 16})]
    assert slices_to_read_again(MANIFEST.plan, others, whole) == (a_range(4, 5),), "landed again"
    former = [replace(STANDING[0], generation=(STANDING[0].generation or 0) + 1)]
    assert slices_to_read_again(MANIFEST.plan, former, whole) == ()


@pytest.mark.parametrize(
    ("slices", "stays", "why"),
    [
        ([compared(3, 5, 4)], True, "the same is so"),
        ([compared(0, 9, 4)], True, "a larger slice has nothing more"),
        ([compared(0, 2), compared(3, 5, 4), compared(6, 8)], True, "other samples are equal"),
        ([compared(0, 2, 1), compared(3, 5, 4)], False, "another sample differs"),
        ([compared(0, 2, 1)], False, "another sample differs, and this one was not asked for"),
        ([compared(3, 5, 3, 4)], False, "its neighbour differs too"),
        ([compared(3, 5, 4, value=b"x")], False, "it differs in another way"),
        ([compared(4, 5, 4)], True, "what is left of the slice differs as it did"),
    ],
)
def test_evidence_stays_while_it_is_so_and_nothing_more_is_seen_to_differ(
    slices: list[ComparedSlice], stays: bool, why: str
) -> None:
    [again] = differing_rows(MANIFEST, MANIFEST.files, slices, STANDING)
    assert (again == STANDING[0]) is stays, why
    assert stays or again.evidence["digests"] != STANDING[0].evidence["digests"]


def test_more_slices_than_are_on_record_are_never_all_compared_again() -> None:
    many = [compared(each, each + 1, each) for each in range(5)]
    [whole] = found(*many)
    assert compared_again(BATCH, [whole], [compared(0, 5)])
    cut = replace(whole, evidence={**whole.evidence, "more_slices": 1})
    assert compared_again(BATCH, [cut], [compared(0, 5)]) == frozenset()


@pytest.mark.parametrize(
    ("account", "starts", "standing", "expected", "why"),
    [
        (an_account(), {0: 0}, 2, [a_range(0, 10)], "all of it"),
        (an_account(), {0: 4}, 2, [a_range(4, 10)], "the log begins within"),
        (an_account(), {0: 10}, 2, [], "the log begins behind it"),
        (an_account(), {}, 2, [], "no leader"),
        (an_account(), {0: 0}, 1, [a_range(0, 5)], "a repair has the other file"),
        (replace(an_account(), ordinal=2), {0: 0}, 2, [], "another life of the log"),
        (replace(an_account(), topic_id="other"), {0: 0}, 2, [], "another topic"),
        (replace(an_account(), state=GenerationState.STOPPED), {0: 0}, 2, [], "it is known as cut"),
    ],
)
def test_only_the_batchs_own_log_is_read(
    account: GenerationAccount,
    starts: dict[int, int],
    standing: int,
    expected: list[OffsetRange],
    why: str,
) -> None:
    names = frozenset(each.name for each in FILES[:standing])
    batch = StandingBatch(MANIFEST, names, {})
    assert list(ranges_to_read(batch, by_partition(account), starts)) == expected, why


SAMPLED = BatchId("b" * 16)
ids = st.text("0123456789abcdef", min_size=16, max_size=16).map(BatchId)
spans = st.lists(st.tuples(st.integers(0, 9_999), st.integers(1, 50_000)), min_size=1, max_size=80)
sizes = st.builds(SampleSize, st.integers(2, 60), st.integers(1, 300))


def ranges(*bounds: tuple[int, int]) -> list[OffsetRange]:
    """One range of each partition, as first offset and span."""
    return [
        OffsetRange(TopicPartition("orders", number), first, first + span)
        for number, (first, span) in enumerate(bounds)
    ]


@given(batch=ids, turn=st.integers(0, 50), bounds=spans, size=sizes)
def test_slices_lie_apart_inside_the_ranges_and_are_never_too_many(
    batch: BatchId, turn: int, bounds: list[tuple[int, int]], size: SampleSize
) -> None:
    whole = ranges(*bounds)
    slices = sampled(batch, turn, whole, size)

    assert 0 < len(slices) <= size.slices
    assert sum(each.span for each in slices) <= size.offsets
    for each in slices:
        assert each.intersection(whole[each.partition.partition]) == each
    pairs = pairwise(slices)
    assert all(
        one.partition < other.partition or one.until_offset < other.from_offset
        for one, other in pairs
    )


@given(batch=ids, turn=st.integers(0, 50), bounds=spans, size=sizes)
def test_a_batch_and_a_turn_give_the_same_slices_in_whatever_order_ranges_come(
    batch: BatchId, turn: int, bounds: list[tuple[int, int]], size: SampleSize
) -> None:
    whole = ranges(*bounds)
    assert sampled(batch, turn, whole, size) == sampled(batch, turn, whole[::-1], size)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ([(0, 2_000_000)], "one partition"),
        ([(1_000, 300_000)] * 3, "three"),
        ([(0, 5_000)] * 6, "as many as there is room for"),
        ([(7, 1)] + [(0, 90_000)] * 3, "one record alone"),
    ],
)
def test_both_ends_of_every_range_are_compared_where_they_fit(
    bounds: list[tuple[int, int]], why: str
) -> None:
    whole = ranges(*bounds)
    slices = sampled(SAMPLED, 0, whole, FIRST_SAMPLE)
    for each in whole:
        mine = [one for one in slices if one.partition == each.partition]
        assert mine[0].from_offset == each.from_offset, why
        assert mine[-1].until_offset == each.until_offset, why


def test_a_small_batch_is_compared_as_a_whole() -> None:
    whole = ranges((0, 40), (3, 40), (9, 42))
    assert sampled(SAMPLED, 0, whole, FIRST_SAMPLE) == tuple(whole)


def test_thousands_of_partitions_cost_no_more_than_one() -> None:
    slices = sampled(SAMPLED, 0, ranges(*[(0, 1_000)] * 5_000), FIRST_SAMPLE)
    assert len(slices) <= FIRST_SAMPLE.slices
    other = sampled(SAMPLED, 1, ranges(*[(0, 1_000)] * 5_000), FIRST_SAMPLE)
    assert {each.partition for each in slices} != {each.partition for each in other}


def test_other_turns_and_other_batches_compare_other_slices() -> None:
    whole = ranges((0, 1_000_000))
    found = {sampled(SAMPLED, turn, whole, FIRST_SAMPLE) for turn in range(20)}
    assert len(found) == 20
    assert sampled(BatchId("c" * 16), 0, whole, FIRST_SAMPLE) not in found
    assert len({(each[0], each[-1]) for each in found}) == 1, "the ends are in each of them"


def test_nothing_is_compared_of_nothing() -> None:
    assert sampled(SAMPLED, 0, [], FIRST_SAMPLE) == ()


@pytest.mark.parametrize(
    ("budget", "batches", "expected"),
    [
        (100_000, 0, 100_000),
        (100_000, 1, 100_000),
        (100_000, 50, 2_000),
        (100_000, 51, 2_000),
        (500, 1, 2_000),
    ],
)
def test_a_budget_is_shared_among_batches_down_to_what_is_worth_a_visit(
    budget: int, batches: int, expected: int
) -> None:
    assert rotation_size(budget, batches).offsets == expected
