"""The JSON documents of `findings`, `explain`, `waive` and `repair`; docs/cli.md describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tallystick.cli.documents import (
    Document,
    ErrorDetails,
    FindingPart,
    Instant,
    Outcome,
    Part,
    RangePart,
)


class WaiverPart(Part):
    """What two people have accepted."""

    state: Literal["in force", "expired", "void"]
    reason: str
    asked_by: str
    approved_by: str
    expires_at: Instant
    """Excluded."""
    evidence_digest: str
    """Of the evidence that was accepted."""


class StoredFindingPart(FindingPart):
    """A finding on record, with its history."""

    state: str
    first_seen_at: Instant
    last_confirmed_at: Instant
    closed_at: Instant | None
    closed_by: str | None
    evidence_digest: str
    """Of the evidence above: `waive` asks for it."""
    waiver: WaiverPart | None
    """The newest one; null for a finding that was never waived."""


class FindingsDocument(Document):
    """`findings`."""

    format: Literal["tallystick-findings-1"] = "tallystick-findings-1"
    feed: str
    findings: Sequence[StoredFindingPart]


class ExplainDocument(Document):
    """`explain`: a finding with its rule."""

    format: Literal["tallystick-explain-1"] = "tallystick-explain-1"
    finding: StoredFindingPart
    compares: str
    not_when: str
    remedy: str


class WaiveDocument(Document):
    """`waive`: the finding as it stands now."""

    format: Literal["tallystick-waive-1"] = "tallystick-waive-1"
    finding: StoredFindingPart
    expires_at: Instant


class LandAgainPart(Part):
    """Files whose offsets are landed again, as one batch."""

    old_batch: str
    files: Sequence[str]
    generation: int
    ranges: Sequence[RangePart]
    gone: Sequence[RangePart]
    findings: Sequence[int]


class PutAsidePart(Part):
    """A stray file that is moved out of the readers' directories."""

    path: str
    quarantine: str
    finding: int


class MoveBackPart(Part):
    """A committed file that somebody has moved, and that goes back to its place."""

    path: str
    target: str
    finding: int


class EndsWithStrayPart(Part):
    """A finding about rows that a stray file holds too, and the stray's finding."""

    finding: int
    stray: int


class NewGenerationPart(Part):
    """A log that is landed anew, after it was cut."""

    partition: int
    generation: int
    first_offset: int
    expired_until: int | None
    """End (excluded) of what expired since; the next plan records it as lost."""
    finding: int


class NotMendedPart(Part):
    """A finding about which nothing is done, and why."""

    finding: int
    reason: str


class RepairBatchPart(Part):
    """What became of one batch of a repair."""

    batch: str
    outcome: Outcome
    rows: int | None
    directory: str | None
    left_to: str | None
    error: ErrorDetails | None


class ClosedPart(Part):
    """A finding that has ended."""

    finding: int
    closed_by: str


class WriteManifestPart(Part):
    """A published directory's manifest that is gone, and is written anew."""

    path: str
    finding: int


class ReadAgainPart(Part):
    """An offset that Spark could not read, and that is tried again."""

    offsets: RangePart
    finding: int


class RepairDocument(Document):
    """`repair`: what is, or would be, done."""

    format: Literal["tallystick-repair-1"] = "tallystick-repair-1"
    feed: str
    topic: str
    is_dry_run: bool
    land_again: Sequence[LandAgainPart]
    put_aside: Sequence[PutAsidePart]
    move_back: Sequence[MoveBackPart]
    end_with_strays: Sequence[EndsWithStrayPart]
    write_manifests: Sequence[WriteManifestPart]
    new_generations: Sequence[NewGenerationPart]
    read_again: Sequence[ReadAgainPart]
    finish: Sequence[int]
    not_mended: Sequence[NotMendedPart]
    batches: Sequence[RepairBatchPart]
    closed: Sequence[ClosedPart]
    errors: Sequence[ErrorDetails]
