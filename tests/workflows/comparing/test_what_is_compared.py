"""What counts as compared: the batch's own log, and only what both sides can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import NO_TIMESTAMP, SeenRecord, SliceRead
from tallystick.domain.rules.findings import Level
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.scripted_broker import Kind, Log, ScriptedReader
from tests.support.story import Story
from tests.workflows.comparing.test_second_reader import (
    C3,
    differing,
    land,
    log,
    looked,
    samples,
    story,
    with_reader,
)

__all__ = ["log", "story"]


@pytest.mark.parametrize("change", ["recreated", "cut"])
def test_a_log_that_changes_between_look_and_read_is_no_difference(
    story: Story, log: Log, change: str
) -> None:
    log.append(Kind.RECORD, 10)
    land(story)

    def changed() -> None:
        if change == "recreated":
            story.broker.recreate(1)
        else:
            log.cut(5)
        story.broker.logs[0].append(Kind.RECORD, 20, value=b"new")

    services, _ = with_reader(story, before=changed)
    report = looked(story, services)

    assert differing(report.findings) == []
    assert report.second_read is not None
    assert report.second_read.batches == 0
    assert "meanwhile" in report.second_read.not_compared[0]


class Untimed:
    """Shows no time where it is 0, as librdkafka does for records of format 1."""

    def __init__(self, story: Story) -> None:
        self._inner = ScriptedReader(story.broker)

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        return [
            replace(each, records=tuple(self._shown(one) for one in each.records))
            for each in self._inner.read(slices, isolation)
        ]

    @staticmethod
    def _shown(record: SeenRecord) -> SeenRecord:
        if record.head.timestamp_ms:
            return record
        return SeenRecord.of(
            partition=0,
            offset=record.offset,
            timestamp_ms=NO_TIMESTAMP,
            timestamp_type=NO_TIMESTAMP,
            key=record.head.key,
            value=record.head.value,
            headers=(),
        )


def test_a_record_whose_time_the_reader_cannot_show_is_not_compared(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 5)
    log.append(Kind.RECORD, 1, at=datetime(1970, 1, 1, tzinfo=UTC))
    log.append(Kind.RECORD, 5)

    services = replace(story.services(), second_reader=Untimed(story))
    land(story, services)

    [kept] = samples(story)
    assert kept["offsets"] == 10
    assert "time" in kept["not_compared"]
    assert C3 not in {each.code for each in reconcile(services, Level.L4).findings}
