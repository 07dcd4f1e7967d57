"""What a Spark application is told: which slices to read, how to pack them into files, where to
write.

1. The scans of a landing plan hold every planned offset exactly once.
2. It holds no secret: it is written to HDFS and read there.
3. `LandingPlan.from_json(p.to_json()) == p`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.domain.plain_json import from_line, to_line

FORMAT: Final = "tallystick-landing-2"


@dataclass(frozen=True, slots=True)
class Scan:
    """One read of Kafka, and into how many files its slices go.

    Either big slices, split by `max_records_per_file`, or small ones, packed into `file_count`.
    """

    ranges: tuple[OffsetRange, ...]
    max_records_per_file: int | None
    file_count: int | None
    max_poll_records: int | None = None
    """A poll brings no more records than this; None: what the options say."""

    def __post_init__(self) -> None:
        if (self.max_records_per_file is None) == (self.file_count is None):
            raise ValueError("a scan is either split or packed")


@dataclass(frozen=True, slots=True)
class LandingPlan:
    """All that the landing function knows."""

    batch_id: str
    attempt_id: str
    topic: str
    isolation: Isolation
    scans: tuple[Scan, ...]
    output: str
    """Full URI of the directory to write, which must not exist."""
    kafka_options: Mapping[str, str]
    """Options of Spark's Kafka source, bootstrap servers among them; never a secret."""
    compression: str
    compression_level: int | None
    replication: int | None
    """None: the file system's default."""
    leader_epochs: Mapping[int, int | None]
    """By partition, just before the read: a record of a later epoch was written under our hands."""

    @property
    def file_prefix(self) -> str:
        """Beginning of every file's name: says which batch and attempt wrote it."""
        return f"{self.batch_id}-{self.attempt_id}"

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """All that is read, sorted; what a scan or two share of a partition is one range."""
        return union_of(each for scan in self.scans for each in scan.ranges)

    def to_json(self) -> str:
        """The plan as text, on one line."""
        return to_line(FORMAT, self)

    @classmethod
    def from_json(cls, text: str) -> LandingPlan:
        """The plan again; ValueError when the text is none."""
        return from_line(cls, FORMAT, text)
