"""Where a batch lies: written and parsed by the same types. The numbers are the module's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.identities import BatchId, FeedName
from tests.support.builders import ATTEMPT, BATCH, NOON, a_batch, planned

ROOTS = ["/data/landing", "/a", "", "/dt=1999-01-01/hour=01", "/landing/orders/gen=1"]
FEEDS = ["orders", "o", "Orders_2.eu-west", "gen=1"]


@st.composite
def batch_paths(draw: st.DrawFn) -> BatchPath:
    return BatchPath(
        root=draw(st.sampled_from(ROOTS)),
        feed=FeedName(draw(st.sampled_from(FEEDS))),
        ordinal=draw(st.integers(1, 1_000)),
        hour=NOON + timedelta(hours=draw(st.integers(-400_000, 4_000_000))),
        batch_id=BatchId(draw(st.from_regex(r"[0-9a-f]{16,32}", fullmatch=True))),
    )


@given(batch_paths())
def test_a_batch_path_is_parsed_as_it_was_written(path: BatchPath) -> None:
    assert BatchPath.parse(str(path)) == path


@given(batch_paths())
def test_readers_skip_no_part_of_a_batch_path(path: BatchPath) -> None:
    # Invariant 2 of `paths`.
    below = str(path).removeprefix(path.root)

    assert not any(part.startswith(("_", ".")) for part in below.split("/"))
    assert ":" not in str(path)


HOUR = "/data/orders/gen=1/dt=2026-11-01/hour=07"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no batch directory"),
        ("/data/landing/orders", "no batch directory"),
        (HOUR, "no batch directory"),
        (f"{HOUR}/batch=xyz", "no batch directory"),
        (f"{HOUR}/batch={BATCH}/", "no batch directory"),
        (f"{HOUR}/batch={BATCH}/part-0.parquet", "no batch directory"),
        (f"{HOUR[1:]}/batch={BATCH}", "no batch directory"),
        (f"/data/orders/gen=one/dt=2026-11-01/hour=07/batch={BATCH}", "no batch directory"),
        (f"/data/orders/dt=2026-11-01/hour=07/gen=1/batch={BATCH}", "no batch directory"),
        (f"/data/orders/gen=1/dt=2026-13-01/hour=07/batch={BATCH}", "does not match format"),
        (f"/data/orders/gen=1/dt=2026-11-01/hour=24/batch={BATCH}", "unconverted data"),
    ],
)
def test_a_foreign_path_is_none_of_ours(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        BatchPath.parse(text)


def test_a_batch_lies_under_its_label_generation_and_feed() -> None:
    batch = a_batch(planned(0, 1), label=datetime(2026, 11, 1, 7, 59, 59, 9, UTC), ordinal=2)
    path = BatchPath.of(batch)

    assert str(path) == f"/data/landing/orders/gen=2/dt=2026-11-01/hour=07/batch={BATCH}"
    assert str(path).startswith(f"{path.parent}/")
    assert path.manifest == f"{path}/_tally.json"


def test_staging_is_below_a_directory_that_readers_skip() -> None:
    # Invariants 1 and 2 of `paths`.
    staging = StagingPath("/data/landing", BATCH, ATTEMPT)

    assert str(staging) == f"/data/landing/_staging/{BATCH}/{ATTEMPT}"
    assert str(staging).startswith(f"{staging.batch_directory}/")
    assert staging.plan == f"{staging}/plan.json"
    assert staging.data == f"{staging}/data"
    assert staging.manifest == f"{staging.data}/_tally.json"


def test_attempts_share_no_directory() -> None:
    one = StagingPath("/r", BATCH, ATTEMPT)
    other = StagingPath("/r", BATCH, type(ATTEMPT)("00000000000000a2"))

    assert not str(one).startswith(str(other))
    assert one.batch_directory == other.batch_directory


def test_labels_within_one_hour_share_a_parent() -> None:
    labels = [datetime(2026, 11, 1, 7, tzinfo=UTC) + timedelta(minutes=m) for m in (0, 59)]
    parents = {BatchPath.of(a_batch(planned(0, 1), label=at)).parent for at in labels}

    assert parents == {"/data/landing/orders/gen=1/dt=2026-11-01/hour=07"}
