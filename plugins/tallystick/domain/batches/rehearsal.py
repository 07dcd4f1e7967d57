"""A landing in small, before anything is claimed: what Spark is asked to do, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.plain_json import from_line, to_line

_PLAN_FORMAT: Final = "tallystick-rehearsal-1"
_SAID_FORMAT: Final = "tallystick-rehearsed-1"


@dataclass(frozen=True, slots=True)
class RehearsalPlan:
    """One partition of each broker is read from its end; one small file is written."""

    output: str
    """Full URI of the directory, which must not exist."""
    topic: str
    kafka_options: Mapping[str, str]
    from_offsets: Mapping[int, int]
    """By partition: as far as the log could be read a moment ago."""
    replication: int | None

    def to_json(self) -> str:
        """On one line."""
        return to_line(_PLAN_FORMAT, self)

    @classmethod
    def from_json(cls, text: str) -> RehearsalPlan:
        """What `to_json` has made."""
        return from_line(cls, _PLAN_FORMAT, text)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What Spark has written: who it is, and why it can't read from a broker if it can't."""

    spark: str
    scala: str
    java: str
    user: str
    """As whom it writes to HDFS."""
    unread: str | None
    """Kafka's words, in one line; None where every broker was reached."""

    def to_json(self) -> str:
        """On one line."""
        return to_line(_SAID_FORMAT, self)

    @classmethod
    def from_json(cls, text: str) -> Rehearsed:
        """What `to_json` has made."""
        return from_line(cls, _SAID_FORMAT, text)
