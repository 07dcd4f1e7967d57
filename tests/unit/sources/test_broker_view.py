"""A log that moves between two questions of one answer: no broker does it on demand."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.sources import leader_connections
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_batches import COMMIT, a_batch, a_marker
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part

PLACE = TopicPartition("orders", 0)
LOG = b"".join(
    [
        a_batch(0, 3, producer=7, is_transactional=True),
        a_marker(3, 7, COMMIT),
        a_batch(4, 6, producer=7, is_transactional=True),
        a_marker(6, 7, COMMIT),
    ]
)


@pytest.mark.parametrize(
    ("log_start_offset", "explained"),
    [(0, [(3, 4), (6, 7)]), (3, [(3, 4), (6, 7)]), (4, [(6, 7)]), (7, [])],
)
def test_what_expires_between_the_walk_and_its_end_is_not_explained(
    monkeypatch: pytest.MonkeyPatch, log_start_offset: int, explained: list[tuple[int, int]]
) -> None:
    start = SimpleNamespace(partition_index=0, error_code=0, offset=log_start_offset)
    client = ScriptedClient(
        metadata=[metadata({0: (1, 0)})],
        fetch=[fetched(part(records=LOG, stable=7))],
        offsets=[SimpleNamespace(topics=[SimpleNamespace(partitions=[start])])],
    )
    monkeypatch.setattr(leader_connections, "open_client", lambda config: client)
    view = KafkaBrokerView(
        {"bootstrap.servers": "one:9092"}, now=lambda: datetime(2026, 11, 1, tzinfo=UTC)
    )
    found = view.explain_holes(
        OffsetRange(PLACE, 0, 7), OffsetRuns.of([(3, 4), (6, 7)]), Isolation.READ_COMMITTED
    )
    expected = {HoleClass.CONTROL: OffsetRuns.of(explained)} if explained else {}
    assert found == expected
    assert client.asked("fetch") == client.asked("offsets") == [1]
