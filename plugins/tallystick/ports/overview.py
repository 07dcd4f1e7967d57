"""What is asked of the ledger for people who look at many feeds: heads, counts, pages of a list.

No proof is read, a report where one is named, and every answer but a report and the lists by
partition has a bounded size, however long the history is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner, PlanId
from tallystick.domain.report.standing import Heard, verdict_now
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.ports.findings import StoredFinding
from tallystick.ports.reports import LogTotals


@dataclass(frozen=True, slots=True)
class ReportHead:
    """A stored report in a few words."""

    number: int
    taken_at: datetime
    verdict: Verdict
    complete_up_to: datetime | None
    made_by: Owner | None
    """The run that has made it; None for one that was made by hand."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """One plan of a feed, and what became of its batches."""

    plan_id: PlanId
    owner: Owner
    window: Window | None
    planned_at: datetime
    batches: int
    """Planned and adopted."""
    published: int
    abandoned: int
    rows: int
    """Of those that are committed."""


@dataclass(frozen=True, slots=True)
class FeedHead:
    """One feed by its newest rows."""

    feed: FeedName
    topic: str
    partitions: int
    report: ReportHead | None
    looked_at: datetime | None
    """The newest look at the broker."""
    lag: int | None
    """Offsets below that look's high watermarks that are not landed; None where it can't tell."""
    lost_at: datetime | None
    """When retention may take the first of what the newest report saw waiting; None if unknown."""
    heard: Heard
    standing: Mapping[Verdict, int]
    """Findings that stand; those that two people accept count as WAIVED."""
    runs: Sequence[RunHead]
    """The newest first."""

    @property
    def verdict(self) -> Verdict:
        """What is said of the feed now."""
        reported = self.report.verdict if self.report else None
        return verdict_now(reported, self.heard, self.standing)

    @property
    def complete_up_to(self) -> datetime | None:
        """As the newest report says; None before the first one, and where it can't tell."""
        return self.report.complete_up_to if self.report else None

    def seconds_to_loss(self, now: datetime) -> float | None:
        """The least time until retention may take what is not landed; None where nobody knows.

        Zero: it may be gone at any moment, or nobody has looked for so long.
        """
        if not self.lag or self.lost_at is None:
            return None
        return max(0.0, (self.lost_at - now).total_seconds())


@dataclass(frozen=True, slots=True)
class LogHead:
    """The newest life of a partition's log."""

    generation_id: GenerationId
    partition: int
    ordinal: int
    state: str
    topic_id: str
    first_offset: int
    frontier: int


@dataclass(frozen=True, slots=True)
class BatchHead:
    """One batch without its ranges."""

    number: int
    """Grows from batch to batch."""
    batch_id: BatchId
    label: datetime
    window: Window | None
    state: BatchState
    attempts: int
    planned_by: Owner
    committed_by: Owner | None
    """Whose attempt it was."""
    published_by: Owner | None
    holder: Owner | None
    """None while nobody's lease runs."""
    last_outcome: str | None
    """Of the newest attempt; None while it lives, or was killed."""
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    rows: int | None
    holes: int | None
    length_bytes: int | None
    files: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the ledger knows of one run of a feed."""

    windows: Sequence[Window | None]
    """Of its plans, in their order."""
    planned_at: datetime | None
    """Its first plan; None where it has frozen none."""
    batches: Sequence[BatchHead]
    """Planned or adopted by it, or published; newest first."""
    findings: Sequence[StoredFinding]
    """First seen from its plan until another run's next one."""
    report: int | None
    """The number of the newest report that it has made."""


class OverviewRecord(Protocol):
    """The part of the ledger that pages are made of; raises what `Ledger` raises."""

    def feed_heads(self, feed: FeedName | None = None, *, most_runs: int) -> Sequence[FeedHead]:
        """Every feed that was ever planned, or this one alone, by name."""
        ...

    def last_heard(self, feed: FeedName) -> Heard:
        """When each witness of the feed answered last, by its stored reports."""
        ...

    def newest_logs(self, feed: FeedName) -> Sequence[LogHead]:
        """The newest life of each partition's log, by partition."""
        ...

    def standing_by_partition(self, feed: FeedName) -> Mapping[int | None, Verdict]:
        """The worst verdict of the findings that stand; None for those of no single partition."""
        ...

    def totals_of_logs(self, logs: Sequence[GenerationId]) -> Mapping[GenerationId, LogTotals]:
        """What is accounted for of these generations."""
        ...

    def batch_heads(
        self, feed: FeedName, *, before: int | None = None, most: int
    ) -> Sequence[BatchHead]:
        """The feed's newest batches, or those before a number; newest first."""
        ...

    def run_record(self, feed: FeedName, owner: Owner, *, most: int) -> RunRecord:
        """What this run has planned, landed, published, found and reported; so many batches at
        most.
        """
        ...

    def findings_ended(
        self, feed: FeedName, since: datetime, until: datetime | None, *, most: int
    ) -> Sequence[StoredFinding]:
        """The feed's findings that ended from one instant to another, which counts; by number.

        Nothing is read of all the others but when they ended.
        """
        ...

    def report_heads(
        self, feed: FeedName, *, before: int | None = None, most: int
    ) -> Sequence[ReportHead]:
        """The feed's newest stored reports, or those before a number; newest first."""
        ...

    def report_head(self, feed: FeedName, number: int) -> ReportHead | None:
        """The feed's report of this number; None where it has none."""
        ...

    def report_value(self, feed: FeedName, number: int) -> Mapping[str, Any] | None:
        """What the next method's text says, as plain values."""
        ...

    def report_text(self, feed: FeedName, number: int) -> str | None:
        """The very text of the feed's report of this number; None where it has none."""
        ...
