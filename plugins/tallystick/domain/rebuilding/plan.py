"""A rebuild as a value: what it rests on, and what it is to do. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import BatchPlan, BatchStatus, CommittedFile
from tallystick.domain.batches.coverage import Held
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import HoleClass, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import CutClaim, OpenedGeneration
from tallystick.domain.rules.findings import Finding

Logs = Mapping[tuple[int, int], GenerationAccount]
"""By partition and ordinal."""


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What the ledger knows of the feed before it is rebuilt."""

    logs: Logs
    committed: Collection[BatchId] = ()
    """Committed batches among those that the published ones replace files of."""
    held: Sequence[Held] = ()
    """What of the published batches' offsets is committed already: `committed_in` tells which."""
    lost: Mapping[tuple[int, int], Sequence[OffsetRange]] = field(default_factory=dict)
    """By partition and ordinal."""
    unfinished: Sequence[BatchStatus] = ()
    replaced: Mapping[CommittedFile, BatchId] = field(default_factory=dict)
    """Files that readers read no more, each with the repair that took its place."""


@dataclass(frozen=True, slots=True)
class PublishedBatch:
    """A published batch in few words: of many batches, manifests would fill the memory.

    Or one that is proven and was not published: it may have been committed, and nobody can tell.
    """

    plan: BatchPlan
    owner: Owner
    """Whose attempt landed it."""
    record_count: int
    holes: Mapping[HoleClass, int]
    file_count: int
    staged_by: AttemptId | None = None
    """The attempt in whose staging directory it lies; None when it is published."""

    @property
    def directory(self) -> str:
        """Where its files and its manifest lie."""
        if self.staged_by:
            return str(StagingPath.of(self.plan, self.staged_by))
        return str(BatchPath.of(self.plan))

    @classmethod
    def of(cls, manifest: Manifest, *, staged_by: AttemptId | None = None) -> PublishedBatch:
        """What a rebuild decides on, and tells, of this manifest."""
        holes = dict.fromkeys(HoleClass, 0)
        for each in manifest.ranges:
            for kind, runs in each.holes.items():
                holes[kind] += runs.count
        owner, files = manifest.attempt.owner, len(manifest.files)
        records = manifest.record_count
        return cls(manifest.plan, owner, records, holes, files, staged_by)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A directory that is not entered, and why."""

    directory: str
    batch_id: BatchId | None
    """None where no manifest could be read."""
    reasons: tuple[str, ...]


@dataclass(slots=True)
class RebuildPlan:
    """What a rebuild is to do, in this order."""

    finish: list[PublishedBatch] = field(default_factory=list)
    """Batches that the ledger has as unfinished, while they are published."""
    opened: list[OpenedGeneration] = field(default_factory=list)
    """Logs that the ledger does not know, by ordinal, then partition."""
    abandoned: list[BatchStatus] = field(default_factory=list)
    """Unfinished batches whose offsets a published one holds, or whose log has a later life."""
    enter: list[PublishedBatch] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    left_staged: list[LeftOut] = field(default_factory=list)
    """Staging directories that stay as they are."""
    findings: list[Finding] = field(default_factory=list)

    def cuts(self) -> Iterator[CutClaim]:
        """Every claim of the batches that are given up."""
        for each in self.abandoned:
            for planned in each.plan.ranges:
                yield CutClaim(
                    each.plan.batch_id,
                    planned.generation_id,
                    planned.offsets,
                    RangeState.RELEASED,
                    FindingCode.LEDGER_BEHIND,
                )
