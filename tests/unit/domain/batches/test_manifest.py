"""A batch's own account of itself: read again as it was written, refused when it doesn't add up."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.landed import FileSlice, LateRows
from tallystick.domain.batches.manifest import AccountedRange, Manifest, TailAnchor
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.window import Window
from tests.support.builders import (
    ANCHOR_HASH,
    NOON,
    a_file,
    a_manifest,
    an_attempt,
    planned,
    read_back_of,
)

anchors = st.none() | st.builds(
    TailAnchor,
    offset=st.integers(0, 2**62),
    leader_epoch=st.none() | st.integers(0, 9),
    content_hash=st.binary(min_size=16, max_size=16),
)


@st.composite
def accounted_ranges(draw: st.DrawFn, partition: int) -> AccountedRange:
    """A range whose offsets are rows or holes, one by one."""
    first = draw(st.integers(0, 5))
    fates = draw(st.lists(st.sampled_from([None, *HoleClass]), min_size=1, max_size=12))
    holes = {
        kind: OffsetRuns.of(
            (first + place, first + place + 1) for place, fate in enumerate(fates) if fate is kind
        )
        for kind in HoleClass
        if kind in fates
    }
    return AccountedRange(
        planned=planned(first, first + len(fates), partition=partition),
        record_count=fates.count(None),
        holes=holes,
        anchor=draw(anchors),
    )


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    partitions = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
    ranges = [draw(accounted_ranges(partition)) for partition in partitions]
    window = draw(st.sampled_from([None, Window(NOON, NOON + timedelta(hours=1))]))
    slices = draw(st.lists(st.builds(FileSlice, *[st.integers(0, 9)] * 4), min_size=1, max_size=2))
    late = st.none() | st.builds(LateRows, st.integers(1, 9), st.datetimes(timezones=st.just(UTC)))
    file = replace(a_file("part-0.parquet", *slices), late=draw(late))
    return a_manifest(*ranges, files=(file,), window=window)


@given(manifests())
def test_a_manifest_is_read_again_as_it_was_written(manifest: Manifest) -> None:
    # Invariants 1 and 2 of `manifest`.
    text = manifest.to_json()

    assert Manifest.from_json(text) == manifest
    assert Manifest.from_json(text).to_json() == text
    assert text.count("\n") == 1


@given(manifests())
def test_counts_add_up_to_the_span(manifest: Manifest) -> None:
    assert manifest.record_count + manifest.hole_count == manifest.plan.span


def test_the_text_says_what_a_person_looks_for() -> None:
    document = json.loads(a_manifest().to_json())

    assert document["format"] == "tallystick-manifest-1"
    assert (document["records"], document["holes"]) == (9, 1)
    assert document["ranges"][0]["holes"] == {"control": [[9, 10]]}
    assert document["generation"] == 1
    assert document["attempt"] == an_attempt().attempt_id


@pytest.mark.parametrize(
    ("records", "holes", "unaccounted"),
    [
        pytest.param(9, {}, 1, id="one offset forgotten"),
        pytest.param(11, {}, -1, id="one row too many"),
        pytest.param(9, {HoleClass.CONTROL: [(5, 7)]}, -1, id="one offset counted twice"),
        pytest.param(
            8, {HoleClass.CONTROL: [(5, 6)]}, 1, id="a hole explains itself, not its neighbour"
        ),
    ],
)
def test_a_range_that_does_not_add_up_is_refused(
    records: int, holes: dict[HoleClass, list[tuple[int, int]]], unaccounted: int
) -> None:
    runs = {kind: OffsetRuns.of(pairs) for kind, pairs in holes.items()}

    with pytest.raises(ValueError, match=rf" {unaccounted} offsets unaccounted for"):
        AccountedRange(planned(0, 10), records, runs)


def test_a_range_of_holes_only_needs_no_row() -> None:
    holes = {HoleClass.COMPACTED: OffsetRuns.of([(0, 10)])}

    assert AccountedRange(planned(0, 10), 0, holes).hole_count == 10


def _without(key: str) -> str:
    document = json.loads(a_manifest().to_json())
    del document[key]
    return json.dumps(document)


def _with(key: str, value: object) -> str:
    return json.dumps(json.loads(a_manifest().to_json()) | {key: value})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Expecting value"),
        ("no json", "Expecting value"),
        (a_manifest().to_json()[:-5], "delimiter"),
        ("[]", "no manifest"),
        ("null", "no manifest"),
        ("{}", "no manifest: KeyError"),
        (_with("format", "tallystick-manifest-2"), "is not 'tallystick-manifest-1'"),
        (_with("ranges", None), "no manifest"),
        (_with("ranges", [[]]), "no manifest"),
        (_without("ranges"), "no manifest: KeyError"),
        (_without("window"), "no manifest: KeyError"),
        (_with("isolation", "read_everything"), "is not a valid Isolation"),
        (_with("window", [NOON.isoformat()]), "no manifest"),
    ],
)
def test_a_text_that_is_no_manifest_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Manifest.from_json(text)


def test_the_builders_agree_with_themselves() -> None:
    assert a_manifest().isolation is Isolation.READ_COMMITTED
    assert a_manifest().ranges[0].anchor == TailAnchor(8, 0, ANCHOR_HASH)
    assert isinstance(a_manifest().ranges[0].planned, PlannedRange)


def test_files_and_what_was_read_back_count_their_rows() -> None:
    file = a_file("part-0.parquet", FileSlice(0, 0, 4, 5), FileSlice(1, 7, 9, 2))
    found = read_back_of({0: [(0, 5)]})

    assert file.record_count == 7
    assert found.record_count == 0
    assert type(found)((file, file), {}, {}).record_count == 14


def test_a_label_keeps_its_instant() -> None:
    manifest = a_manifest()

    assert Manifest.from_json(manifest.to_json()).plan.label == datetime(
        2026, 11, 1, 12, tzinfo=UTC
    )
