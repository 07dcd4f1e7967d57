"""What is asked of the ledger about batches and their files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus, WaitingBatch
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.planning.feed_edits import FeedOnRecord


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch after its commit, with all that publishing needs."""

    manifest: Manifest
    manifest_text: str | None
    """The very text that was proven: the `_tally.json` that travels with the data. None for an old
    batch: the text is the manifest's own, once it has the hashes of its last rows again."""
    manifest_sha256: bytes
    """Of the text's bytes."""
    account: str
    """The text without the hashes of last records, which the chain of commits binds. It is the
    manifest of an old batch whose last rows a repair has landed again."""
    attempt_id: AttemptId
    state: BatchState
    """COMMITTED or PUBLISHED."""

    @property
    def plan(self) -> BatchPlan:
        """What was landed."""
        return self.manifest.plan


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt as `tallystick batches` shows it."""

    attempt: Attempt
    started_at: datetime
    application_id: str | None
    ended_at: datetime | None
    outcome: str | None
    """`committed`, `failed: ...`, or None while it lives or after it was killed."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch as `tallystick batches` shows it."""

    status: BatchStatus
    attempts: Sequence[AttemptRecord]
    ranges: Sequence[AccountedRange]
    """Empty before the commit."""
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One committed file, as `tallystick files` shows it."""

    batch_id: BatchId
    attempt_id: AttemptId
    plan: BatchPlan
    file: LandedFile
    is_published: bool


class BatchesRecord(Protocol):
    """Batches, from their plan to their directory."""

    def batch(self, batch_id: BatchId) -> BatchStatus:
        """The batch as it stands now; raises BatchUnknown."""
        ...

    def committed_batch(self, batch_id: BatchId) -> CommittedBatch | None:
        """What publishing needs; None before the commit."""
        ...

    def unpublished(self, feed: FeedName) -> Sequence[CommittedBatch]:
        """Batches that are committed and not published, in the order of their commits."""
        ...

    def mark_published(self, batch_id: BatchId, owner: Owner | None = None) -> None:
        """Committed -> published, by this run; a second call changes nothing."""
        ...

    def published_by(self, feed: FeedName, owner: Owner) -> Sequence[BatchId]:
        """The feed's batches that this owner has published, in all its tries."""
        ...

    def batches_over(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and published or abandoned.

        That never changes again: nothing in their staging directories can be committed under their
        ids any more.
        """
        ...

    def committed_among(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and committed or published."""
        ...

    def record_move(
        self, batch_ids: Collection[BatchId], from_root: str, to_root: str, by: Owner
    ) -> None:
        """Published batches lie below another root by now; their manifests keep the former one.

        One that does not lie below `from_root` stays as it is.
        """
        ...

    def roots(self, feed: FeedName, *, with_former: bool = False) -> Sequence[str]:
        """Every root below which the feed has batches: it may have been moved.

        With the former ones, from which whole batches were moved: dead attempts lie there still.
        """
        ...

    def on_record(self, feed: FeedName, topic: str) -> FeedOnRecord:
        """What the feed's file is compared with; `topic` is the one that the file names."""
        ...

    def waiting(self, feed: FeedName) -> Sequence[WaitingBatch]:
        """The feed's unfinished batches that nobody holds; each with how long that has been so.

        One that is committed is held until it is published, or on record as not published (N3).
        """
        ...

    def batches(self, feed: FeedName) -> Sequence[BatchRecord]:
        """All batches of the feed, oldest first."""
        ...

    def files(self, feed: FeedName) -> Sequence[FileRecord]:
        """All committed files of the feed, in the order of commit, then by name."""
        ...

    def committed_manifests(self, feed: FeedName) -> Sequence[Manifest]:
        """The proofs on record, in the order of their commits."""
        ...

    def bytes_per_record(self, feed: FeedName) -> float | None:
        """Landed bytes per row over the feed's newest batches; None before the first."""
        ...
