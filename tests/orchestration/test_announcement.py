"""What an asset event says of a run."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from tallystick.domain.batches.batch import BatchPlan, PlannedRange
from tallystick.domain.identities import BatchId, FeedName, GenerationId
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition


def a_batch(number: int, *ranges: tuple[int, int, int], ordinal: int = 1) -> BatchPlan:
    """A batch of (partition, from_offset, until_offset)."""
    return BatchPlan(
        batch_id=BatchId(f"{number:032x}"),
        feed=FeedName("orders"),
        root="/landing",
        topic="orders",
        cluster_id="c",
        topic_id="t",
        ordinal=ordinal,
        label=datetime(2026, 11, 1, tzinfo=UTC),
        window=None,
        ranges=tuple(
            PlannedRange(
                GenerationId(partition),
                OffsetRange(TopicPartition("orders", partition), start, until),
            )
            for partition, start, until in ranges
        ),
    )


def test_adjacent_ranges_of_a_generation_are_one() -> None:
    from tallystick.orchestration.ingest import landed_extra

    extra = landed_extra(
        [a_batch(1, (0, 5, 10), (1, 0, 3)), a_batch(2, (0, 0, 5)), a_batch(3, (0, 0, 4), ordinal=2)]
    )
    assert extra == {
        "batches": 3,
        "offsets": 17,
        "ranges": [
            {"generation": 1, "partition": 0, "from_offset": 0, "until_offset": 10},
            {"generation": 1, "partition": 1, "from_offset": 0, "until_offset": 3},
            {"generation": 2, "partition": 0, "from_offset": 0, "until_offset": 4},
        ],
        "ranges_left_out": 0,
    }


def test_ten_thousand_partitions_stay_below_ten_kilobytes() -> None:
    from tallystick.orchestration.ingest import landed_extra

    wide = a_batch(1, *((partition, 10**15, 10**15 + 7) for partition in range(10_000)))
    extra = landed_extra([wide])
    assert len(json.dumps(extra)) < 10_000
    assert extra["offsets"] == 70_000
    assert len(extra["ranges"]) + extra["ranges_left_out"] == 10_000


def test_the_asset_is_named_after_the_feed() -> None:
    from tallystick.orchestration.ingest import asset_of

    assert asset_of("web_orders-2").name == "tallystick://web_orders-2"
