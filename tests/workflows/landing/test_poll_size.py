"""How many records a poll may bring: fewer where they are large, as usual where they are small."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.identities import Owner
from tallystick.errors import LogUnreadable
from tallystick.workflows.landing.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import Story

MIB = 1 << 20


class Unreadable(ScriptedBroker):
    def bytes_per_record(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, float]:
        raise LogUnreadable("a batch", "it has the unknown version 3")


Polled = Callable[[ScriptedBroker], str | None]


@pytest.fixture
def polled(ledger_databases: Callable[[], str], tmp_path: Path) -> Polled:
    """Lands ten records of this broker; says what bounds a poll."""

    def polled(broker: ScriptedBroker) -> str | None:
        broker.logs[0].append(Kind.RECORD, 10)
        services = Story(ledger_databases(), tmp_path, broker).services()
        spark, plans = ScriptedSpark(broker, services.store), list[LandingPlan]()
        spark.before_write = plans.append
        assert not land_feed(replace(services, spark=spark), None, Owner("one")).errors
        [plan] = plans
        return plan.kafka_options.get("kafka.max.poll.records")

    return polled


@pytest.mark.parametrize(
    ("record_bytes", "most"), [(100.0, None), (3_000.0, None), (MIB, "64"), (200.0 * MIB, "1")]
)
def test_a_poll_of_large_records_brings_64_mebibytes(
    polled: Polled, record_bytes: float, most: str | None
) -> None:
    broker = ScriptedBroker("orders")
    broker.record_bytes = record_bytes
    assert polled(broker) == most


def test_where_nobody_can_tell_records_are_taken_to_be_large(polled: Polled) -> None:
    assert polled(Unreadable("orders")) == "671"
