"""What a Spark application is told: read again as it was written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.states import Isolation
from tests.support.builders import ATTEMPT, BATCH, TOPIC, a_landing, a_range
from tests.support.strategies import range_lists

PLAN = a_landing(a_range(0, 5))

scans = st.builds(
    lambda ranges, count, is_split, most: Scan(
        tuple(ranges), count if is_split else None, None if is_split else count, most
    ),
    range_lists,
    st.integers(1, 9),
    st.booleans(),
    st.none() | st.integers(1, 9),
)


@given(
    st.builds(
        replace,
        st.just(PLAN),
        isolation=st.sampled_from(Isolation),
        scans=st.lists(scans, max_size=3).map(tuple),
        kafka_options=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
        compression_level=st.none() | st.integers(1, 9),
        replication=st.none() | st.integers(1, 3),
        leader_epochs=st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 9), max_size=3),
    )
)
def test_a_landing_plan_is_read_again_as_it_was_written(plan: LandingPlan) -> None:
    # Invariant 3 of `landing`.
    text = plan.to_json()

    assert LandingPlan.from_json(text) == plan
    assert "\n" not in text


@pytest.mark.parametrize("text", ['{"format": "tallystick-landing-1"}', "{}"])
def test_another_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no LandingPlan: format"):
        LandingPlan.from_json(text)


@pytest.mark.parametrize(("per_file", "count"), [(None, None), (10, 1)])
def test_a_scan_is_either_split_or_packed(per_file: int | None, count: int | None) -> None:
    with pytest.raises(ValueError, match="either split or packed"):
        Scan((a_range(0, 5),), per_file, count)


def test_every_file_says_who_wrote_it() -> None:
    assert PLAN.file_prefix == f"{BATCH}-{ATTEMPT}"


def test_the_text_is_plain_json() -> None:
    document = json.loads(PLAN.to_json())

    assert document["format"] == "tallystick-landing-2"
    [scan] = document["scans"]
    assert scan["ranges"] == [
        {"partition": {"topic": TOPIC, "partition": 0}, "from_offset": 0, "until_offset": 5}
    ]
    assert document["isolation"] == "read_committed"
