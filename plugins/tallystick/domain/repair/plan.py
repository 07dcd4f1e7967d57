"""What a repair would do: a dry run shows this value, a repair performs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.planning.log_changes import EndedGeneration, LogChanges, OpenedGeneration
from tallystick.domain.repair.facts import NotMended
from tallystick.domain.repair.finishing import NOT_WRITTEN, Adopt, WriteManifest
from tallystick.domain.repair.landing_again import LandAgain
from tallystick.domain.repair.new_generation import NewGeneration
from tallystick.domain.repair.quarantining import (
    BESIDE_STRAY,
    NOT_MOVED,
    EndsWithStray,
    Quarantine,
)
from tallystick.domain.repair.reading_again import NOT_READ, ReadAgain

_Step = EndsWithStray | WriteManifest | Quarantine | ReadAgain


@dataclass(frozen=True, slots=True)
class StorageSteps:
    """What is done in storage after the batches; plain, so that one task can hand it to another."""

    quarantined: tuple[Quarantine, ...] = ()
    write_manifests: tuple[WriteManifest, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What would be done; a dry run prints it, a repair performs it."""

    land_again: Sequence[LandAgain] = ()
    quarantined: Sequence[Quarantine] = ()
    end_with_strays: Sequence[EndsWithStray] = ()
    write_manifests: Sequence[WriteManifest] = ()
    new_generations: Sequence[NewGeneration] = ()
    read_again: Sequence[ReadAgain] = ()
    adopt: Sequence[Adopt] = ()
    """Findings about batches that somebody left behind."""
    adopted: Sequence[BatchId] = ()
    """The batches that the repair takes over: those, and those of earlier repairs."""
    not_mended: Sequence[NotMended] = ()

    @property
    def in_storage(self) -> StorageSteps:
        """The steps beside the batches."""
        return StorageSteps(tuple(self.quarantined), tuple(self.write_manifests))

    @property
    def claims(self) -> bool:
        """True when there is a batch to carry out."""
        return bool(self.land_again or self.read_again or self.adopted)

    @property
    def needs_whole_ledger(self) -> bool:
        """True when there is anything to land: not while the ledger lacks published batches."""
        return self.claims or bool(self.new_generations)

    @property
    def has_steps(self) -> bool:
        """False where the repair would do nothing."""
        return self.needs_whole_ledger or bool(self.quarantined or self.write_manifests)

    def left_undone(self) -> Iterator[NotMended]:
        """What is said of a finding that one step was to end, if it stands after the repair."""
        steps: tuple[tuple[Sequence[_Step], str], ...] = (
            (self.end_with_strays, BESIDE_STRAY),
            (self.write_manifests, NOT_WRITTEN),
            (self.quarantined, NOT_MOVED),
            (self.read_again, NOT_READ),
        )
        for of_kind, reason in steps:
            yield from (NotMended(each.finding_id, reason) for each in of_kind)

    @property
    def changes(self) -> LogChanges:
        """Generations to close and to open, and offsets to ask for, on the operator's word."""
        return LogChanges(
            due_again=tuple(each.planned for each in self.read_again),
            closed=tuple(
                EndedGeneration(
                    each.account.generation_id,
                    FindingCode.LOG_CUT,
                    f"finding {each.finding_id}: an operator opened a new generation",
                )
                for each in self.new_generations
            ),
            opened=tuple(
                OpenedGeneration(
                    each.account.partition,
                    each.account.cluster_id,
                    each.account.topic_id,
                    each.account.ordinal + 1,
                    each.first_offset,
                    f"finding {each.finding_id}: the log was cut",
                )
                for each in self.new_generations
            ),
        )
