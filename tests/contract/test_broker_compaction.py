"""What every view of a broker promises of a record that was compacted away without a trace."""

from __future__ import annotations

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.broker_scenes import NOW, BrokerScene


@pytest.fixture
def vanished(scene: BrokerScene) -> BrokerScene:
    """Of three records, the first is gone."""
    scene.lose_the_first_to_compaction()
    return scene


def test_no_instant_leads_to_it(vanished: BrokerScene) -> None:
    assert vanished.view.offsets_at(vanished.topic, NOW, [0]) == {0: 1}


def test_it_is_a_hole_by_compaction_while_the_policy_says_so(vanished: BrokerScene) -> None:
    offsets = OffsetRange(TopicPartition(vanished.topic, 0), 0, 3)
    holes = OffsetRuns.of([(0, 2)])
    for isolation in Isolation:
        assert vanished.view.explain_holes(offsets, holes, isolation) == {
            HoleClass.COMPACTED: OffsetRuns.of([(0, 1)])
        }
    vanished.set_compacted(is_compacted=False)
    assert vanished.view.explain_holes(offsets, holes, Isolation.READ_COMMITTED) == {}


@pytest.mark.parametrize(("cleaned", "explained"), [((0, 1), True), ((1, 3), False)])
def test_so_it_is_where_an_earlier_policy_may_have_cleaned(
    vanished: BrokerScene, cleaned: tuple[int, int], explained: bool
) -> None:
    vanished.set_compacted(is_compacted=False)
    log = TopicPartition(vanished.topic, 0)
    found = vanished.view.explain_holes(
        OffsetRange(log, 0, 3),
        OffsetRuns.of([(0, 2)]),
        Isolation.READ_COMMITTED,
        cleaned=OffsetRange(log, *cleaned),
    )
    assert found == ({HoleClass.COMPACTED: OffsetRuns.of([(0, 1)])} if explained else {})


def test_it_is_never_replaced_by_the_next(vanished: BrokerScene) -> None:
    assert vanished.view.records_at(vanished.topic, {0: 0}) == {}
    assert vanished.view.records_at(vanished.topic, {0: 1}).keys() == {0}


def test_the_head_of_the_next_batch_is_told_in_its_place(vanished: BrokerScene) -> None:
    assert vanished.view.batch_heads(vanished.topic, {0: 0})[0].base_offset == 1
