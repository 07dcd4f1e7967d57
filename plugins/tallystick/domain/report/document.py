"""A feed's report: what reconciliation states at one instant, whole, as plain values.

It is what is stored, and what every face shows; it knows no form but JSON. All that is decided here
is which pages of old reports may go.

1. `ReportDocument.from_json(d.to_json()) == d`.
2. What is not known is None or UNKNOWN, never left out.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.paths import page_taken_at
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.coverage_map import CoverageMap
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.looks import CameLate
from tallystick.domain.verdicts import Verdict

FORMAT: Final = "tallystick-report-1"
# Of one partition; their number and offsets are whole beside them.
MOST_GAPS: Final = 20
KEPT_FOR: Final = timedelta(days=28)
"""Four times as long as Kafka keeps records unless told otherwise; nothing younger is thinned."""


@dataclass(frozen=True, slots=True)
class GapPart:
    """Offsets beyond the frontier that nothing covers, before others that are covered."""

    from_offset: int
    until_offset: int


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """One partition's newest log, as the three witnesses show it."""

    partition: int
    generation: int
    state: str
    verdict: Verdict
    complete_up_to: datetime | None
    first_offset: int
    frontier: int
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    lag: int | None
    """Readable offsets that are not landed yet."""
    seconds_to_loss: float | None
    """Until retention may take the record at the frontier; None when nothing waits, or unknown."""
    rows: int
    """Of all generations."""
    holes: Mapping[str, int]
    """By class, of all generations."""
    lost: int
    """Offsets recorded as lost, of all generations."""
    gap_offsets: int
    """In `gaps`, and below a frontier: there are none, or the ledger is damaged."""
    gaps: tuple[GapPart, ...]
    """The first ones."""
    checked_at: Mapping[str, datetime | None]
    """By level: since when every batch was looked at so; None when one never was."""


@dataclass(frozen=True, slots=True)
class ColumnPart:
    """What was produced, landed and found without a record, between two edges of the map."""

    produced: int | None
    """Offsets, by the broker's high watermarks; None where two looks can't be compared."""
    landed_rows: int
    """Of the batches whose window begins in this column."""
    landed_offsets: int
    """Rows and holes together."""
    holes: Mapping[str, int]
    batches: int


@dataclass(frozen=True, slots=True)
class BandPart:
    """All partitions' offsets added up, as one look showed them."""

    looked_at: datetime
    log_start: int
    frontier: int | None
    """By what was committed and recorded as lost since; None for a look at an earlier log."""
    last_stable: int
    high_watermark: int
    is_whole: bool
    """False when a partition could not be asked."""


@dataclass(frozen=True, slots=True)
class AgePart:
    """Batches by the time since they were looked at, at one level."""

    level: str
    from_seconds: int | None
    """Included; None for batches that never were."""
    until_seconds: int | None
    """Excluded; None without a bound."""
    batches: int
    rows: int


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """What a second reader has compared with the broker."""

    batches: int
    """Of which something was compared."""
    offsets: int
    """Compared, on both sides."""
    batches_due: int
    """Which the broker still has, and which were not compared this time."""
    not_compared: tuple[str, ...]
    """What could not be compared, and why; the first ones."""


@dataclass(frozen=True, slots=True)
class ReportDocument:
    """One feed at one instant."""

    feed: str
    topic: str
    taken_at: datetime
    verdict: Verdict
    complete_up_to: datetime | None
    """Everything before this instant is proven to be landed, once."""
    complete_window_end: datetime | None
    """The newest end of a window at or before it."""
    complete_by: CompleteBy
    held_back_by: tuple[str, ...]
    """Why it is not later, in a few sentences."""
    levels: tuple[str, ...]
    """What was asked."""
    deepest: str
    """The level that was asked for: beyond the others, where there was nobody to ask."""
    silent: tuple[str, ...]
    """Levels at which a witness did not answer."""
    is_complete: bool
    """False when a witness was silent."""
    unheard: tuple[str, ...]
    """Which one, and why."""
    findings: tuple[FindingPart, ...]
    """Worst first."""
    partitions: tuple[PartitionPart, ...]
    coverage: CoverageMap
    columns: tuple[ColumnPart, ...]
    """One for each column of the map."""
    band: tuple[BandPart, ...]
    ages: tuple[AgePart, ...]
    second_reader: ComparedPart | None = None
    """None where no second reader was asked."""
    late: CameLate | None = None
    """By record time, what came too late for its own window."""
    warnings: tuple[str, ...] = ()
    """What the feed's file says otherwise than the ledger."""
    format: str = field(default=FORMAT)

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format!r} is not {FORMAT!r}")

    @property
    def seconds_to_loss(self) -> float | None:
        """The least of all partitions; None where nothing waits, or nobody knows."""
        known = (each.seconds_to_loss for each in self.partitions)
        return min((each for each in known if each is not None), default=None)

    @property
    def worst_first(self) -> tuple[PartitionPart, ...]:
        """The partitions, the worst first, then by lag."""
        return tuple(
            sorted(
                self.partitions,
                key=lambda each: (-each.verdict.severity, -(each.lag or 0), each.partition),
            )
        )

    def to_json(self) -> str:
        """The document on one line."""
        return json.dumps(to_plain(self), separators=(",", ":"), ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> ReportDocument:
        """The document; ValueError for anything else."""
        return from_plain(cls, json.loads(text))


def perhaps_thinned(names: Iterable[str], now: datetime) -> list[str]:
    """The old pages but the last one of each day, which stays whatever the ledger has forgotten.

    A ledger that was made anew knows none of the reports that were before it.
    """
    until = (now - KEPT_FOR).replace(hour=0, minute=0, second=0, microsecond=0)
    days: defaultdict[object, list[tuple[datetime, str]]] = defaultdict(list)
    for name in names:
        taken_at = page_taken_at(name)
        if taken_at is not None and taken_at < until:
            days[taken_at.date()].append((taken_at, name))
    return [name for pages in days.values() for _, name in sorted(pages)[:-1]]
