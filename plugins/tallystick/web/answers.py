"""What the routes answer, as documents: docs/page.md describes every field.

A field that is there stays: programs read it. Offsets are half-open, instants in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallystick.cli.documents import Instant, Part, ShownFinding, WindowPart
from tallystick.domain.verdicts import Verdict


class ReportPart(Part):
    """The newest stored report."""

    number: int
    taken_at: Instant
    verdict: Verdict


class PlannedRunPart(Part):
    """One plan of a feed, and what became of it."""

    owner: str
    """`<DAG>/<run>`, or who has landed by hand."""
    window: WindowPart | None
    planned_at: Instant
    batches: int
    published: int
    abandoned: int
    rows: int


class FeedAnswer(Part):
    """One feed in a few words."""

    feed: str
    topic: str
    verdict: Verdict
    """The worst of what stands now, and of what only the newest report could say."""
    complete_up_to: Instant | None
    """By the newest report."""
    lag: int | None
    """Offsets that the newest look showed and that are not landed; null where it can't tell."""
    seconds_to_loss: float | None
    """Until retention may take the oldest of them, at least."""
    partitions: int
    looked_at: Instant | None
    report: ReportPart | None
    findings: Mapping[str, int]
    """How many stand, by verdict; accepted ones as WAIVED."""
    open_findings: int
    runs: Sequence[PlannedRunPart]


class FeedsAnswer(Part):
    """All feeds that the user may see, worst first."""

    feeds: Sequence[FeedAnswer]


class PartitionAnswer(Part):
    """One partition's newest log."""

    partition: int
    generation: int
    state: str
    verdict: Verdict
    first_offset: int
    frontier: int
    log_start_offset: int | None
    high_watermark: int | None
    lag: int | None
    rows: int
    holes: Mapping[str, int]
    lost: int


class PartitionsAnswer(Part):
    """A page of a feed's partitions, worst first, then by lag."""

    feed: str
    total: int
    matching: int
    offset: int
    partitions: Sequence[PartitionAnswer]


class BatchAnswer(Part):
    """One batch."""

    number: int
    batch: str
    window: WindowPart | None
    label: Instant
    state: str
    attempts: int
    holder: str | None
    planned_by: str
    committed_by: str | None
    published_by: str | None
    last_outcome: str | None
    planned_at: Instant
    committed_at: Instant | None
    published_at: Instant | None
    rows: int | None
    holes: int | None
    length_bytes: int | None
    files: int


class BatchesAnswer(Part):
    """A page of a feed's batches, newest first."""

    feed: str
    batches: Sequence[BatchAnswer]
    before: int | None
    """To ask for the next page; null on the last one."""


class FindingsAnswer(Part):
    """A page of a feed's standing findings, worst first."""

    feed: str
    total: int
    offset: int
    findings: Sequence[ShownFinding]


class FindingAnswer(Part):
    """A finding with its rule."""

    finding: ShownFinding
    compares: str
    not_when: str
    remedy: str


class RunAnswer(Part):
    """What one run has planned, landed, proven and found."""

    feed: str
    owner: str
    windows: Sequence[WindowPart | None]
    planned_at: Instant | None
    batches: Sequence[BatchAnswer]
    findings: Sequence[ShownFinding]
    report: ReportPart | None
    """The report that it has made; its findings are told as they stand now."""
    complete_up_to: Instant | None
    """By that report."""


class CoverageAnswer(Part):
    """The parts of a stored report that are drawn, as the report has them."""

    feed: str
    report: int
    taken_at: str
    coverage: Mapping[str, Any]
    columns: Sequence[Mapping[str, Any]]
    band: Sequence[Mapping[str, Any]]
    ages: Sequence[Mapping[str, Any]]
    normal: Sequence[Mapping[str, Any]]
    held_back_by: Sequence[str]
