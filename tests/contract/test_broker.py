"""What every view of a broker promises: the real one, and the scripted one that stories rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.snapshot import EpochEnd, PartitionBounds
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.errors import BrokerUnavailable, TopicUnknown
from tallystick.ports.broker import BrokerView
from tests.support.broker_scenes import NOW, BrokerScene, hash_at

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
CONTROL, ABORTED, COMPACTED = HoleClass.CONTROL, HoleClass.ABORTED, HoleClass.COMPACTED


def bounds(scene: BrokerScene, partition: int = 0) -> PartitionBounds:
    return scene.view.snapshot(scene.topic).partitions[partition]


def explained(
    scene: BrokerScene,
    *holes: tuple[int, int],
    inside: tuple[int, int] = (0, 100),
    isolation: Isolation = COMMITTED,
    cleaned: OffsetRange | None = None,
) -> dict[HoleClass, list[tuple[int, int]]]:
    offsets = OffsetRange(TopicPartition(scene.topic, 0), *inside)
    runs = OffsetRuns.of(holes)
    found = scene.view.explain_holes(offsets, runs, isolation, cleaned=cleaned)
    return {kind: list(runs) for kind, runs in found.items()}


def test_the_list_of_topics_has_this_one_and_none_that_nobody_made(scene: BrokerScene) -> None:
    assert scene.topic in scene.view.topics()
    assert f"{scene.topic}-other" not in scene.view.topics()
    scene.create(f"{scene.topic}-other")
    assert {scene.topic, f"{scene.topic}-other"} <= set(scene.view.topics())


class TestSnapshot:
    def test_a_new_topic_is_empty_and_has_an_identity(self, scene: BrokerScene) -> None:
        found = scene.view.snapshot(scene.topic)
        assert found.topic == scene.topic
        assert found.cluster_id
        assert found.topic_id
        assert found.taken_at == NOW
        assert found.partitions == dict.fromkeys((0, 1), PartitionBounds(0, 0, 0, 0))
        assert found.leaderless == frozenset()
        assert not found.is_compacted
        assert (found.retention_ms, found.retention_bytes) == (None, None)

    def test_records_move_both_ends(self, scene: BrokerScene) -> None:
        scene.write(3, partition=1)
        assert bounds(scene, 0) == PartitionBounds(0, 0, 0, 0)
        assert bounds(scene, 1) == PartitionBounds(0, 3, 3, 0)

    def test_a_purge_moves_the_start_up_to_the_end(self, scene: BrokerScene) -> None:
        scene.write(5)
        scene.purge({0: 2})
        assert bounds(scene) == PartitionBounds(2, 5, 5, 0)
        scene.purge({0: 5})
        assert bounds(scene) == PartitionBounds(5, 5, 5, 0)

    @pytest.mark.parametrize("is_committed", [True, False])
    def test_an_open_transaction_holds_the_stable_end_until_its_marker(
        self, scene: BrokerScene, is_committed: bool
    ) -> None:
        scene.commit(3)
        scene.open(5)
        assert bounds(scene) == PartitionBounds(0, 9, 4, 0)
        assert bounds(scene).readable_until(COMMITTED) == 4
        assert bounds(scene).readable_until(UNCOMMITTED) == 9
        scene.end(is_committed=is_committed)
        assert bounds(scene) == PartitionBounds(0, 10, 10, 0)

    def test_a_purge_inside_an_open_transaction_takes_the_stable_end_along(
        self, scene: BrokerScene
    ) -> None:
        scene.open(5)
        scene.purge({0: 3})
        assert bounds(scene) == PartitionBounds(3, 5, 3, 0)

    def test_a_recreated_topic_has_another_id_and_nothing_of_the_old_one(
        self, scene: BrokerScene
    ) -> None:
        scene.commit(8)
        before = scene.view.snapshot(scene.topic)
        scene.recreate(partitions=1)
        scene.write(4)
        after = scene.view.snapshot(scene.topic)
        assert after.topic_id != before.topic_id
        assert after.cluster_id == before.cluster_id
        assert after.partitions == {0: PartitionBounds(0, 4, 4, 0)}
        assert scene.view.records_at(scene.topic, {0: 7}) == {}
        assert explained(scene, (8, 9)) == {}

    def test_added_partitions_are_in_the_next_one(self, scene: BrokerScene) -> None:
        before = scene.view.snapshot(scene.topic)
        scene.add_partitions(4)
        after = scene.view.snapshot(scene.topic)
        assert after.topic_id == before.topic_id
        assert sorted(after.partitions) == [0, 1, 2, 3]

    def test_the_policy_is_that_of_now(self, scene: BrokerScene) -> None:
        scene.set_compacted(is_compacted=True)
        assert scene.view.snapshot(scene.topic).is_compacted
        scene.set_compacted(is_compacted=False)
        assert not scene.view.snapshot(scene.topic).is_compacted
        scene.keep(seconds=86_400, byte_count=5_000_000)
        found = scene.view.snapshot(scene.topic)
        assert (found.retention_ms, found.retention_bytes) == (86_400_000, 5_000_000)


class TestOffsetsAt:
    def at(self, scene: BrokerScene, seconds: float, partition: int = 0) -> int | None:
        instant = NOW + timedelta(seconds=seconds)
        return scene.view.offsets_at(scene.topic, instant, [partition])[partition]

    def test_it_is_the_first_record_at_or_after_the_instant(self, scene: BrokerScene) -> None:
        scene.write(4, seconds=[0, 1, 2, 3])
        assert [self.at(scene, each) for each in (-5, 0, 1, 3)] == [0, 0, 1, 3]
        assert self.at(scene, 3.001) is None
        assert self.at(scene, 0, partition=1) is None

    def test_a_part_of_a_millisecond_counts(self, scene: BrokerScene) -> None:
        scene.write(2, seconds=[0, 1])
        assert self.at(scene, 0.0001) == 1

    def test_times_out_of_order_give_the_first_offset_not_the_first_time(
        self, scene: BrokerScene
    ) -> None:
        scene.write(5, seconds=[5, 1, 9, 2, 7])
        assert [self.at(scene, each) for each in (0, 5, 6, 9)] == [0, 0, 2, 2]
        assert self.at(scene, 10) is None

    def test_all_partitions_are_answered_and_none_for_none(self, scene: BrokerScene) -> None:
        scene.write(1)
        assert scene.view.offsets_at(scene.topic, NOW, [0, 1]) == {0: 0, 1: None}
        assert scene.view.offsets_at(scene.topic, NOW, []) == {}
        before_all = datetime(1960, 1, 1, tzinfo=UTC)
        assert scene.view.offsets_at(scene.topic, before_all, [0]) == {0: 0}

    def test_what_was_purged_is_no_answer(self, scene: BrokerScene) -> None:
        scene.write(4, seconds=[0, 1, 2, 3])
        scene.purge({0: 2})
        assert self.at(scene, 0) == 2

    def test_what_was_purged_hides_nothing_that_comes_after_it(self, scene: BrokerScene) -> None:
        day = 86_400
        for days in (-20, -10):  # Kafka begins a segment where times are a week apart
            scene.write(1, seconds=[days * day])
        scene.write(2, seconds=[0, 1])
        scene.purge({0: 2})
        assert [self.at(scene, days * day) for days in (-30, -20, -10, 0)] == [2, 2, 2, 2]
        assert self.at(scene, 1) == 3
        assert self.at(scene, day) is None

    def test_a_marker_is_an_answer(self, scene: BrokerScene) -> None:
        scene.commit(1)
        scene.purge({0: 1})
        assert self.at(scene, 0) == 1

    def test_an_open_or_aborted_record_is_an_answer(self, scene: BrokerScene) -> None:
        scene.abort(2)
        scene.open(2, partition=1)
        assert scene.view.offsets_at(scene.topic, NOW, [0, 1]) == {0: 0, 1: 0}


class TestExplainHoles:
    def test_markers_and_aborted_records_are_told_apart(self, scene: BrokerScene) -> None:
        scene.commit(2)
        scene.abort(3)
        scene.commit(1)
        assert explained(scene, (2, 7), (8, 9)) == {
            CONTROL: [(2, 3), (6, 7), (8, 9)],
            ABORTED: [(3, 6)],
        }

    def test_under_read_uncommitted_an_aborted_record_is_data(self, scene: BrokerScene) -> None:
        scene.abort(3)
        assert explained(scene, (0, 4), isolation=UNCOMMITTED) == {CONTROL: [(3, 4)]}

    @pytest.mark.parametrize("isolation", [COMMITTED, UNCOMMITTED])
    def test_a_record_that_is_there_is_never_explained(
        self, scene: BrokerScene, isolation: Isolation
    ) -> None:
        scene.write(3)
        scene.commit(2)
        assert explained(scene, (1, 5), isolation=isolation) == {}

    def test_what_cannot_be_read_yet_is_not_explained(self, scene: BrokerScene) -> None:
        scene.commit(2)
        scene.open(3)
        assert explained(scene, (2, 100)) == {CONTROL: [(2, 3)]}
        assert explained(scene, (2, 100), isolation=UNCOMMITTED) == {CONTROL: [(2, 3)]}
        scene.end(is_committed=False)
        assert explained(scene, (2, 100)) == {CONTROL: [(2, 3), (6, 7)], ABORTED: [(3, 6)]}

    def test_holes_outside_the_range_are_left_out(self, scene: BrokerScene) -> None:
        scene.commit(1)
        scene.commit(1)
        assert explained(scene, (1, 2), (3, 4), inside=(2, 4)) == {CONTROL: [(3, 4)]}
        assert explained(scene, inside=(2, 4)) == {}

    def test_what_lies_below_the_log_start_is_not_explained(self, scene: BrokerScene) -> None:
        scene.abort(3)
        scene.commit(1)
        scene.purge({0: 2})
        assert explained(scene, (0, 4), (5, 6)) == {CONTROL: [(3, 4), (5, 6)], ABORTED: [(2, 3)]}
        scene.purge({0: 6})
        assert explained(scene, (0, 4), (5, 6)) == {}

    @pytest.mark.parametrize("was_cleaned", [False, True])
    def test_nothing_below_the_start_or_beyond_the_end_was_compacted_away(
        self, scene: BrokerScene, was_cleaned: bool
    ) -> None:
        scene.write(2)
        scene.purge({0: 1})
        scene.open(2)
        scene.set_compacted(is_compacted=True)
        cleaned = OffsetRange(TopicPartition(scene.topic, 0), 0, 100) if was_cleaned else None
        assert explained(scene, (0, 1), (2, 100), cleaned=cleaned) == {}


class TestRecordsAt:
    def test_a_record_is_told_by_its_content_and_its_epoch(self, scene: BrokerScene) -> None:
        scene.write(3, seconds=[0, 1, 2])
        scene.write(1, partition=1)
        found = scene.view.records_at(scene.topic, {0: 2, 1: 0})
        assert {each: (at.offset, at.leader_epoch) for each, at in found.items()} == {
            0: (2, 0),
            1: (0, 0),
        }
        assert found[0].content_hash == hash_at(2, seconds=2)
        assert found[1].content_hash == hash_at(0, partition=1)

    def test_uncommitted_and_aborted_records_are_records_and_markers_are_none(
        self, scene: BrokerScene
    ) -> None:
        scene.abort(2)
        scene.open(1)
        found = [scene.view.records_at(scene.topic, {0: offset}).get(0) for offset in range(5)]
        assert [each and each.content_hash for each in found] == [
            hash_at(0),
            hash_at(1),
            None,
            hash_at(3),
            None,
        ]

    def test_a_purged_record_is_gone(self, scene: BrokerScene) -> None:
        scene.write(3)
        scene.purge({0: 2})
        assert scene.view.records_at(scene.topic, {0: 1}) == {}
        assert scene.view.records_at(scene.topic, {0: 2, 1: 0}).keys() == {0}
        assert scene.view.records_at(scene.topic, {}) == {}

    def test_none_is_told_at_the_end_and_beyond_it(self, scene: BrokerScene) -> None:
        scene.write(3)
        assert scene.view.records_at(scene.topic, {0: 3, 1: 0}) == {}
        assert scene.view.records_at(scene.topic, {0: 50}) == {}


class TestBatchHeads:
    def test_a_head_tells_its_offsets_and_its_time(self, scene: BrokerScene) -> None:
        scene.write(1, seconds=[2])
        scene.write(1, seconds=[5])
        head = scene.view.batch_heads(scene.topic, {0: 1})[0]
        assert (head.base_offset, head.until_offset) == (1, 2)
        assert head.max_timestamp_ms == int(NOW.timestamp() * 1000) + 5_000
        assert head.byte_count > 0
        assert head.producer_id is None

    def test_a_head_is_that_of_the_batch_that_holds_the_offset(self, scene: BrokerScene) -> None:
        scene.write(3)
        for offset in range(3):
            head = scene.view.batch_heads(scene.topic, {0: offset})[0]
            assert head.base_offset <= offset < head.until_offset

    def test_open_transactions_and_markers_have_heads_with_their_producer(
        self, scene: BrokerScene
    ) -> None:
        scene.abort(1)
        scene.open(1)
        heads = [scene.view.batch_heads(scene.topic, {0: offset})[0] for offset in (0, 1, 2)]
        assert [each.base_offset for each in heads] == [0, 1, 2]
        assert len({each.producer_id for each in heads}) == 1
        assert heads[0].producer_id is not None

    def test_nothing_is_told_at_the_end_and_below_the_start(self, scene: BrokerScene) -> None:
        scene.write(3)
        assert scene.view.batch_heads(scene.topic, {0: 3, 1: 0}) == {}
        assert scene.view.batch_heads(scene.topic, {0: 50}) == {}
        assert scene.view.batch_heads(scene.topic, {}) == {}
        scene.purge({0: 2})
        assert scene.view.batch_heads(scene.topic, {0: 1}) == {}
        assert scene.view.batch_heads(scene.topic, {0: 2})[0].until_offset == 3


class TestEpochEnds:
    def test_the_newest_epoch_ends_with_the_log_and_a_newer_one_is_not_known(
        self, scene: BrokerScene
    ) -> None:
        scene.write(3)
        scene.open(2, partition=1)
        found = scene.view.epoch_ends(scene.topic, {0: 0, 1: 0})
        assert found == {0: EpochEnd(3, 0), 1: EpochEnd(2, 0)}
        assert scene.view.epoch_ends(scene.topic, {0: 5, 1: 0}) == {1: EpochEnd(2, 0)}
        assert scene.view.epoch_ends(scene.topic, {}) == {}

    def test_an_empty_log_and_a_purged_one_end_where_they_start(self, scene: BrokerScene) -> None:
        scene.write(3)
        scene.purge({0: 3})
        found = scene.view.epoch_ends(scene.topic, {0: 0, 1: 0})
        assert found == {0: EpochEnd(3, 3), 1: EpochEnd(0, 0)}


ASKED: Mapping[str, Callable[[BrokerView, str, int], object]] = {
    "offsets_at": lambda view, topic, partition: view.offsets_at(topic, NOW, [partition]),
    "explain_holes": lambda view, topic, partition: view.explain_holes(
        OffsetRange(TopicPartition(topic, partition), 0, 1), OffsetRuns.of([(0, 1)]), COMMITTED
    ),
    "records_at": lambda view, topic, partition: view.records_at(topic, {partition: 0}),
    "batch_heads": lambda view, topic, partition: view.batch_heads(topic, {partition: 0}),
    "epoch_ends": lambda view, topic, partition: view.epoch_ends(topic, {partition: 0}),
}


class TestWhatIsNotThere:
    @pytest.mark.parametrize("question", ASKED)
    def test_a_topic_that_does_not_exist_is_unknown(
        self, scene: BrokerScene, question: str
    ) -> None:
        with pytest.raises(TopicUnknown, match="'never-made' does not exist"):
            ASKED[question](scene.view, "never-made", 0)

    def test_so_it_is_to_a_snapshot(self, scene: BrokerScene) -> None:
        with pytest.raises(TopicUnknown, match="'never-made' does not exist"):
            scene.view.snapshot("never-made")

    @pytest.mark.parametrize("question", ASKED)
    def test_a_partition_without_a_leader_is_waited_for_and_then_unavailable(
        self, scene: BrokerScene, question: str
    ) -> None:
        with pytest.raises(BrokerUnavailable, match=f"{scene.topic}-7 has no leader"):
            ASKED[question](scene.impatient, scene.topic, 7)


def test_a_transaction_may_stay_open_for_fifteen_minutes_unless_told_otherwise(
    scene: BrokerScene,
) -> None:
    assert scene.view.longest_transaction() == timedelta(minutes=15)


@pytest.fixture
def vanished(scene: BrokerScene) -> BrokerScene:
    """Of three records, the first is gone."""
    scene.lose_the_first_to_compaction()
    return scene


class TestWhatWasCompactedAway:
    """Without a trace: no batch is left of it."""

    def test_no_instant_leads_to_it(self, vanished: BrokerScene) -> None:
        assert vanished.view.offsets_at(vanished.topic, NOW, [0]) == {0: 1}

    def test_it_is_a_hole_by_compaction_while_the_policy_says_so(
        self, vanished: BrokerScene
    ) -> None:
        for isolation in Isolation:
            assert explained(vanished, (0, 2), isolation=isolation) == {COMPACTED: [(0, 1)]}
        vanished.set_compacted(is_compacted=False)
        assert explained(vanished, (0, 2)) == {}

    @pytest.mark.parametrize(("cleaned", "is_explained"), [((0, 1), True), ((1, 3), False)])
    def test_so_it_is_where_an_earlier_policy_may_have_cleaned(
        self, vanished: BrokerScene, cleaned: tuple[int, int], is_explained: bool
    ) -> None:
        vanished.set_compacted(is_compacted=False)
        earlier = OffsetRange(TopicPartition(vanished.topic, 0), *cleaned)
        found = explained(vanished, (0, 2), cleaned=earlier)
        assert found == ({COMPACTED: [(0, 1)]} if is_explained else {})

    def test_it_is_never_replaced_by_the_next(self, vanished: BrokerScene) -> None:
        assert vanished.view.records_at(vanished.topic, {0: 0}) == {}
        assert vanished.view.records_at(vanished.topic, {0: 1}).keys() == {0}

    def test_the_head_of_the_next_batch_is_told_in_its_place(self, vanished: BrokerScene) -> None:
        assert vanished.view.batch_heads(vanished.topic, {0: 0})[0].base_offset == 1
