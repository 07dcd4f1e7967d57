"""What a person may ask for, and what the ledger's row of an offset means, as tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.whereabouts import (
    LogSeen,
    OffsetRecord,
    Place,
    file_sought,
    offset_sought,
    place_of,
)

ID = "0123456789abcdef"
NOWHERE = OffsetRecord(
    ordinal=1, topic_id="t", has_ended=False, first_offset=5, begins_unseen=True, state=None,
    batch_id=None, loss_code=None, hole=None,
)  # fmt: skip
SEEN = LogSeen(datetime(2026, 11, 1, tzinfo=UTC), 20, 30, 40)


@pytest.mark.parametrize(
    ("text", "topic", "partition", "offset"),
    [
        ("orders-3 41007", "orders", 3, 41007),
        ("a-b-3 41007", "a-b", 3, 41007),
        ("3 41 007", None, 3, 41007),
        ("3:41007", None, 3, 41007),
        ("orders-3 @ 41007", "orders", 3, 41007),
        ("orders-3 [41 007, 41 010)", "orders", 3, 41007),
    ],
)
def test_an_offset_is_taken_as_people_and_pages_write_it(
    text: str, topic: str | None, partition: int, offset: int
) -> None:
    found = offset_sought(text)
    assert found
    assert (found.topic, found.partition, found.offset) == (topic, partition, offset)


@pytest.mark.parametrize(
    "text", ["", "3", "orders", "orders-3", "3 -5", "3 5x", f"3 {2**63}", "2026-11-28 10:00Z", ID]
)
def test_what_names_no_offset_is_none(text: str) -> None:
    assert offset_sought(text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (ID, ""),
        (f"/landing/orders/gen=1/dt=2026-11-01/hour=07/batch={ID}/", ""),
        (f"{ID}-{ID}-00000-c000.zstd.parquet", f"{ID}-{ID}-00000-c000.zstd.parquet"),
        (f"/l/o/gen=1/dt=2026-11-01/hour=07/batch={ID}/part-1.parquet", "part-1.parquet"),
        (f"hdfs://nn:8020/l/_staging/{ID}/{ID[::-1]}/data/p.parquet", "p.parquet"),
    ],
)
def test_a_file_or_a_batch_is_taken_by_its_name_or_its_path(text: str, name: str) -> None:
    found = file_sought(text)
    assert found
    assert (found.batch_id, found.name) == (ID, name)


@pytest.mark.parametrize("text", ["part-1.parquet", "orders", "0123456789ABCDEF", "12345"])
def test_what_names_no_batch_is_none(text: str) -> None:
    assert file_sought(text) is None


@pytest.mark.parametrize(
    ("record", "offset", "place"),
    [
        (replace(NOWHERE, state="committed"), 7, Place.LANDED),
        (replace(NOWHERE, state="committed", hole=HoleClass.ABORTED), 7, Place.HOLE),
        (replace(NOWHERE, state="claimed"), 7, Place.IN_FLIGHT),
        (replace(NOWHERE, state="lost", loss_code="A1"), 7, Place.LOST),
        (replace(NOWHERE, state="unreadable"), 7, Place.UNREADABLE),
        (NOWHERE, 4, Place.BEFORE),
        (replace(NOWHERE, has_ended=True), 4, Place.BEFORE),
        (replace(NOWHERE, has_ended=True), 5, Place.UNKNOWN),
        (NOWHERE, 5, Place.NOT_LANDED),
        (NOWHERE, 39, Place.NOT_LANDED),
        (NOWHERE, 40, Place.NOT_WRITTEN),
    ],
)
def test_each_row_has_its_place(record: OffsetRecord, offset: int, place: Place) -> None:
    assert place_of(offset, record, SEEN)[0] is place


@pytest.mark.parametrize(
    ("offset", "seen", "said"),
    [
        (19, SEEN, "is not landed yet: it waits for a run"),
        (20, SEEN, "a transaction before it was open at 2026-11-01 00:00:00Z"),
        (30, SEEN, "its window was not over"),
        (40, SEEN, "the log ended at 40"),
        (40, None, "has not shown its log"),
    ],
)
def test_what_is_not_landed_says_why(offset: int, seen: LogSeen | None, said: str) -> None:
    assert said in place_of(offset, NOWHERE, seen)[1]


@pytest.mark.parametrize("kind", HoleClass)
def test_a_hole_says_its_cause(kind: HoleClass) -> None:
    words = place_of(7, replace(NOWHERE, state="committed", hole=kind), None)[1]
    assert words.startswith("has no record: ")
    assert len(words) > 30
