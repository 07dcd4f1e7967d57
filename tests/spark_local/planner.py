"""Landing plans against the services of a test run."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition

Ranges = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans that read from `kafka` and write to `hdfs_url`."""

    kafka: str
    hdfs_url: str
    webhdfs_url: str

    def plan(self, topic: str, scans: Sequence[Scan], **changes: Any) -> LandingPlan:
        """A plan with a fresh output directory."""
        values: dict[str, Any] = {
            "batch_id": uuid.uuid4().hex[:16],
            "attempt_id": uuid.uuid4().hex[:16],
            "topic": topic,
            "isolation": Isolation.READ_COMMITTED,
            "scans": tuple(scans),
            "output": f"{self.hdfs_url}/spark/_staging/{uuid.uuid4().hex}/data",
            "kafka_options": {"kafka.bootstrap.servers": self.kafka},
            "compression": "zstd",
            "compression_level": 1,
            "replication": 1,
            "leader_epochs": {},
        }
        return LandingPlan(**(values | changes))

    def directory(self, plan: LandingPlan) -> str:
        """The output directory without scheme and authority."""
        return plan.output.removeprefix(self.hdfs_url)


def packed(topic: str, ranges: Ranges, file_count: int = 1) -> Scan:
    """A scan of small ranges, packed into files."""
    return Scan(_offset_ranges(topic, ranges), None, file_count)


def split(topic: str, ranges: Ranges, max_records: int) -> Scan:
    """A scan of big ranges, split into files."""
    return Scan(_offset_ranges(topic, ranges), max_records, None)


def _offset_ranges(topic: str, ranges: Ranges) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange(TopicPartition(topic, p), a, b) for p, (a, b) in ranges.items())
