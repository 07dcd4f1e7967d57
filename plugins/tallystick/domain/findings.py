"""Findings: what reconciliation states, as values with exact offsets, a cause and a next step.

The codes are those of the anomaly table in docs/runbook.md; a test proves the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.domain.states import Verdict


class FindingCode(StrEnum):
    """One code per anomaly that can be told apart."""

    EXPIRED = "A1"
    PURGED = "A2"
    TRUNCATED = "A3"
    OVERWRITTEN = "A4"
    RECREATED = "A5"
    SHORT_READ = "A7"
    PHANTOM_COMMIT = "A8"
    STRAY_FILE = "A9"
    LEDGER_BEHIND = "A10"
    LANDED_TWICE = "B2"
    CONTENT_CHANGED = "C1"
    UNREAD_PARTITION = "N1"
    STALLED_STABLE_OFFSET = "N2"
    UNFINISHED_BATCH = "N3"
    NO_PROGRESS = "Z5"
    COULD_NOT_TELL = "U1"


class Level(StrEnum):
    """How deep the check looked that made the finding."""

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"


@dataclass(frozen=True, slots=True)
class Finding:
    """One trouble, named to the offset."""

    code: FindingCode
    verdict: Verdict
    level: Level
    feed: str
    topic: str
    generation: int | None
    """Ordinal of the generation; None when the trouble is not of one log."""
    partition: int | None
    from_offset: int | None
    """Included."""
    until_offset: int | None
    """Excluded."""
    cause: str
    next_step: str
    evidence: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        if self.from_offset is not None and self.until_offset is not None:
            place += f" [{self.from_offset}, {self.until_offset})"
        return f"{place} {self.code.value} {self.verdict.value}: {self.cause} {self.next_step}"


# A run's check task fails on these; the others are said and counted.
FAILING_VERDICTS: Final = frozenset({Verdict.PROVEN_LOSS, Verdict.PROVEN_DUP, Verdict.UNKNOWN})
