"""Which committed files can be replaced together only: neighbours differ in one fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import BatchId
from tallystick.domain.repair.landing_again import sharing_offsets
from tests.support.builders import a_file, a_manifest

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
