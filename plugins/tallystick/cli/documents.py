"""The JSON documents of the command line, one model each. docs/cli.md describes every field.

A field that is here stays: programs read it. New ones may be added. Offsets are half-open:
`from_offset` is included, `until_offset` is not. Instants are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, PlainSerializer, computed_field

Instant = Annotated[
    datetime, PlainSerializer(lambda instant: instant.astimezone(UTC).isoformat(), str)
]


class Part(BaseModel):
    """A part of a document."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Document(Part):
    """One whole document; `format` names it and its version."""

    def as_json(self) -> str:
        """The document on several lines, keys in a fixed order."""
        return self.model_dump_json(by_alias=True, indent=2, fallback=str)


class WindowPart(Part):
    """A data interval [from, until)."""

    from_instant: Instant
    until_instant: Instant


class RangePart(Part):
    """Offsets of one partition."""

    partition: int
    from_offset: int
    until_offset: int


class AccountedRangePart(RangePart):
    """Offsets of one partition; rows and holes are null before the commit."""

    rows: int | None
    holes: Mapping[str, int] | None
    """By class: control, aborted, compacted."""


class FindingPart(Part):
    """One trouble; generation, partition and offsets are null where it is not of one log."""

    code: str
    name: str
    verdict: str
    level: str
    feed: str
    topic: str
    generation: int | None
    partition: int | None
    from_offset: int | None
    until_offset: int | None
    cause: str
    next_step: str
    evidence: Mapping[str, Any]
    subject: str
    """Path or batch; empty where the offsets say it."""
    number: int | None = None
    """Its number in the ledger; null while it is not on record."""


class OpenFindingPart(FindingPart):
    """One finding that stands open from before."""

    first_seen_at: Instant


class ErrorDetails(Part):
    """What stopped a command, or one batch."""

    kind: str
    what: str
    next_step: str
    may_retry: bool
    problems: Sequence[str] = ()
    """Of feed files, one line each."""


class ErrorDocument(Document):
    """Instead of the command's own document, when it could not be made."""

    format: Literal["tallystick-error-1"] = "tallystick-error-1"
    error: ErrorDetails
    exit_code: int


class ProblemPart(Part):
    """One problem of a feed file."""

    file: str
    line: int | None
    key: str
    what: str
    value: str | None
    accepted: str | None
    nearest: str | None


class FeedPart(Part):
    """One feed in a few words."""

    feed: str
    file: str
    topic: str
    cron: str
    timezone: str
    until: str
    root: str


class FeedListDocument(Document):
    """`feed list`."""

    format: Literal["tallystick-feed-list-1"] = "tallystick-feed-list-1"
    folder: str
    feeds: Sequence[FeedPart]
    problems: Sequence[ProblemPart]


class FeedCheckDocument(Document):
    """`feed check`."""

    format: Literal["tallystick-feed-check-1"] = "tallystick-feed-check-1"
    folder: str
    feeds: Sequence[str]
    problems: Sequence[ProblemPart]


class FeedShowDocument(Document):
    """`feed show`: the feed's file with every default written out."""

    format: Literal["tallystick-feed-show-1"] = "tallystick-feed-show-1"
    file: str
    feed: Mapping[str, Any]


class PlannedBatchPart(Part):
    """One batch of a plan."""

    batch: str | None
    """Null while it is only planned for show."""
    generation: int
    window: WindowPart | None
    """Its records' own; null where the run has none."""
    offsets: int
    ranges: Sequence[RangePart]


class HeldBatchPart(Part):
    """An unfinished batch that another run holds."""

    batch: str
    offsets: int
    held_by: str | None
    seconds_left: float
    """Without a sign of life from its holder, a run adopts it after this time."""


class PlanDocument(Document):
    """`plan`: what a run would do now."""

    format: Literal["tallystick-plan-1"] = "tallystick-plan-1"
    feed: str
    topic: str
    window: WindowPart | None
    wanted: int
    planned: int
    batches: Sequence[PlannedBatchPart]
    adopted: Sequence[PlannedBatchPart]
    held: Sequence[HeldBatchPart]
    findings: Sequence[FindingPart]
    warnings: Sequence[str]
    """What the run would do that its operator may not want."""


Outcome = Literal["published", "left", "failed", "nothing"]


class LandedBatchPart(Part):
    """What became of one batch in this run."""

    batch: str
    is_adopted: bool
    outcome: Outcome
    rows: int | None
    holes: Mapping[str, int] | None
    files: int | None
    directory: str | None
    left_to: str | None
    error: ErrorDetails | None


class LandDocument(Document):
    """`land`: what a run did."""

    format: Literal["tallystick-land-1"] = "tallystick-land-1"
    feed: str
    topic: str
    window: WindowPart | None
    plan: int | None
    is_resumed: bool
    wanted: int
    planned: int
    batches: Sequence[LandedBatchPart]
    held: Sequence[HeldBatchPart]
    findings: Sequence[FindingPart]
    """What is new, and what lasts."""
    open_findings: Sequence[OpenFindingPart]
    """What stands open from before."""
    errors: Sequence[ErrorDetails]
    """Of the steps around the batches: finish, sweep, check."""
    warnings: Sequence[str]
    """What the run did that its operator may not want; said on standard error before it did."""


class AttemptPart(Part):
    """One try to carry out a batch."""

    attempt: str
    token: int
    owner: str
    application: str | None
    started_at: Instant
    ended_at: Instant | None
    outcome: str | None


class BatchPart(Part):
    """One batch as the ledger has it."""

    batch: str
    state: str
    generation: int
    window: WindowPart | None
    planned_at: Instant
    committed_at: Instant | None
    published_at: Instant | None
    held_by: str | None
    directory: str
    offsets: int
    rows: int | None
    holes: Mapping[str, int] | None
    ranges: Sequence[AccountedRangePart]
    attempts: Sequence[AttemptPart]


class BatchesDocument(Document):
    """`batches`."""

    format: Literal["tallystick-batches-1"] = "tallystick-batches-1"
    feed: str
    batches: Sequence[BatchPart]


class FilePart(Part):
    """What one committed file holds of one partition."""

    path: str
    partition: int
    from_offset: int
    until_offset: int
    rows: int
    bytes: int
    """Of the whole file, whatever it holds of other partitions."""
    published: bool
    generation: int
    batch: str
    checksum: str

    @computed_field(alias="from")  # type: ignore[prop-decorator]
    @property
    def short_from(self) -> int:
        """`from_offset` under the short name of the command's table."""
        return self.from_offset

    @computed_field(alias="until")  # type: ignore[prop-decorator]
    @property
    def short_until(self) -> int:
        """`until_offset` under the short name of the command's table."""
        return self.until_offset


class FilesDocument(Document):
    """`files`: one entry for each file and partition."""

    format: Literal["tallystick-files-1"] = "tallystick-files-1"
    feed: str
    files: Sequence[FilePart]


class PartitionPart(Part):
    """One partition as ledger, broker and storage show it; the broker's part is null without it."""

    partition: int
    generation: int
    state: str
    verdict: str
    first_offset: int
    frontier: int
    log_start_offset: int | None
    readable_until: int | None
    lag: int | None
    rows: int
    holes: Mapping[str, int]
    lost: int


class FullReadsPart(Part):
    """What a look at level 3 has read in full, and what waits for it."""

    batches_read: int
    bytes_read: int
    fingerprints_taken: int
    """Of slices that were never read before."""
    batches_due: int
    batches_never_read: int
    batches: int
    """All that are published."""


class SecondReaderPart(Part):
    """What a look at level 4 has compared with another Kafka client, and what waits for it."""

    batches_compared: int
    offsets_compared: int
    batches_due: int
    """Which the broker still has, and which were not compared this time."""
    not_compared: Sequence[str]
    """What could not be compared, and why; the first ones."""


class ReconcileDocument(Document):
    """`reconcile`."""

    format: Literal["tallystick-reconcile-1"] = "tallystick-reconcile-1"
    feed: str
    topic: str
    taken_at: Instant
    levels: Sequence[str]
    verdict: str
    is_complete: bool
    full_reads: FullReadsPart | None
    """None below level 3."""
    second_reader: SecondReaderPart | None
    """None below level 4, and where the feed has none."""
    findings: Sequence[FindingPart]
    partitions: Sequence[PartitionPart]


class AcceptedPart(Part):
    """A standing finding that two people have accepted; offsets are null where it names none."""

    finding: int
    code: str
    verdict: str
    """As it was found."""
    topic: str
    generation: int | None
    partition: int | None
    from_offset: int | None
    until_offset: int | None
    expires_at: Instant | None
    """When the waiver ends (excluded)."""


class CompleteDocument(Document):
    """`complete`."""

    format: Literal["tallystick-complete-1"] = "tallystick-complete-1"
    feed: str
    at: Instant | None
    """Null when nobody has looked at the broker yet."""
    proof: Literal["proven", "not proven", "unknown"]
    complete_up_to: Instant | None
    complete_window_end: Instant | None
    newest_look_at: Instant | None
    partitions_behind: int
    held_back_by: Sequence[str]
    accepted: Sequence[AcceptedPart]
    """What would hold it back, had not two people accepted it."""


class LedgerStatusDocument(Document):
    """`ledger status`."""

    format: Literal["tallystick-ledger-status-1"] = "tallystick-ledger-status-1"
    ledger: str
    schema_found: int
    schema_needed: int
    is_current: bool


class LedgerMigrateDocument(Document):
    """`ledger migrate`."""

    format: Literal["tallystick-ledger-migrate-1"] = "tallystick-ledger-migrate-1"
    ledger: str
    applied: Sequence[str]
    schema_now: int


class RebuiltBatchPart(Part):
    """A published batch that the ledger did not know."""

    batch: str
    generation: int
    directory: str
    offsets: int
    rows: int
    holes: Mapping[str, int]
    files: int
    notes: Sequence[str]
    """What differs between the directory and its manifest, and leaves its offsets proven."""


class OpenedLogPart(Part):
    """A log that the ledger did not know."""

    partition: int
    generation: int
    topic_id: str
    first_offset: int


class LeftOutPart(Part):
    """A directory that is not entered."""

    directory: str
    batch: str | None
    reasons: Sequence[str]


class LedgerRebuildDocument(Document):
    """`ledger rebuild`."""

    format: Literal["tallystick-ledger-rebuild-1"] = "tallystick-ledger-rebuild-1"
    feed: str
    topic: str
    is_dry_run: bool
    entered: Sequence[RebuiltBatchPart]
    opened: Sequence[OpenedLogPart]
    abandoned: Sequence[str]
    """Unfinished batches that were in the way."""
    left_out: Sequence[LeftOutPart]
    findings: Sequence[FindingPart]
    staged: Sequence[str]
    """Proven attempts that stay in staging: others hold their offsets."""
    not_known: Sequence[str]
    """What no manifest holds, in sentences."""


class LedgerExportDocument(Document):
    """`ledger export --out`."""

    format: Literal["tallystick-ledger-export-1"] = "tallystick-ledger-export-1"
    ledger: str
    feed: str | None
    out: str
    rows: Mapping[str, int]
    """By table."""
