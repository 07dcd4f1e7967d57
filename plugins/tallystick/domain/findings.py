"""Findings: what reconciliation states, as values with exact offsets, a cause and a next step.

The codes are those of the anomaly table in docs/runbook.md; a test proves the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.domain.generation import GenerationAccount
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.states import Verdict


class FindingCode(StrEnum):
    """One code per anomaly that can be told apart."""

    EXPIRED = "A1"
    PURGED = "A2"
    TRUNCATED = "A3"
    OVERWRITTEN = "A4"
    RECREATED = "A5"
    RESET_SKIP = "A6"
    SHORT_READ = "A7"
    PHANTOM_COMMIT = "A8"
    STRAY_FILE = "A9"
    LEDGER_BEHIND = "A10"
    LEDGER_OVERLAP = "B1"
    LANDED_TWICE = "B2"
    PAYLOAD_TWICE = "B3"
    CONTENT_CHANGED = "C1"
    ABORTED_LANDED = "C2"
    UNREAD_PARTITION = "N1"
    STALLED_STABLE_OFFSET = "N2"
    UNFINISHED_BATCH = "N3"
    LOSS_NEAR = "W1"
    CONTROL_MARKER = "Z1"
    ABORTED_RECORD = "Z2"
    COMPACTED_RECORD = "Z3"
    NOTHING_THERE = "Z4"
    NO_PROGRESS = "Z5"
    COULD_NOT_TELL = "U1"


class Level(StrEnum):
    """How deep the check looked that made the finding."""

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One trouble, named to the offset."""

    code: FindingCode
    verdict: Verdict
    level: Level
    feed: str
    topic: str
    generation: int | None = None
    """Ordinal of the generation; None when the trouble is not of one log."""
    partition: int | None = None
    from_offset: int | None = None
    """Included."""
    until_offset: int | None = None
    """Excluded."""
    cause: str
    next_step: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    subject: str = ""
    """The path or the batch that it is about, where no interval tells two of a code apart."""

    @property
    def key(self) -> tuple[object, ...]:
        """What it is about: the same trouble seen again has the same key, whatever its words.

        A state that lasts is the same one while the log grows: its end is where a look saw the log.
        """
        return (
            self.code,
            self.topic,
            self.generation,
            self.partition,
            self.from_offset,
            None if self.code in GROWING_CODES else self.until_offset,
            self.subject,
        )

    def __str__(self) -> str:
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        if self.from_offset is not None and self.until_offset is not None:
            place += f" [{self.from_offset}, {self.until_offset})"
        return f"{place} {self.code.value} {self.verdict.value}: {self.cause} {self.next_step}"


def finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange | None,
    code: FindingCode,
    verdict: Verdict,
    *,
    level: Level,
    cause: str,
    next_step: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """A finding about one generation; the interval is empty where the rule can't bound it."""
    return Finding(
        code=code,
        verdict=verdict,
        level=level,
        feed=feed,
        topic=account.partition.topic,
        generation=account.ordinal,
        partition=account.partition.partition,
        from_offset=offsets.from_offset if offsets else None,
        until_offset=offsets.until_offset if offsets else None,
        cause=cause,
        next_step=next_step,
        evidence=dict(evidence or {}),
    )


# Everything above what is harmless or accepted: a run's check fails on it, and so does reconcile.
FAILING_VERDICTS: Final = frozenset(
    {Verdict.SUSPECTED, Verdict.UNKNOWN, Verdict.PROVEN_DUP, Verdict.PROVEN_LOSS}
)

# States that last while the log grows behind them.
GROWING_CODES: Final = frozenset(
    {
        FindingCode.UNREAD_PARTITION,
        FindingCode.STALLED_STABLE_OFFSET,
        FindingCode.LOSS_NEAR,
        FindingCode.NO_PROGRESS,
    }
)

# What a run records: its plan with the change that it describes, its batches with what is missing
# in them. The other codes are reconcile's: no news of a run, however lately they were seen.
PLANNING_CODES: Final = frozenset(
    {
        FindingCode.EXPIRED,
        FindingCode.PURGED,
        FindingCode.TRUNCATED,
        FindingCode.OVERWRITTEN,
        FindingCode.RECREATED,
        FindingCode.SHORT_READ,
        FindingCode.NO_PROGRESS,
        FindingCode.COULD_NOT_TELL,
    }
)
