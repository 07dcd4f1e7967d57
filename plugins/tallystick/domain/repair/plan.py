"""What a repair rests on, and what it would do: the facts and the plan. Decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, offset_range
from tallystick.domain.planning.log_changes import (
    Accounts,
    EndedGeneration,
    LogChanges,
    OpenedGeneration,
)
from tallystick.domain.rules.findings import Finding, FindingCode


@dataclass(frozen=True, slots=True)
class NumberedFinding:
    """A standing finding and its number in the ledger."""

    finding_id: int
    finding: Finding


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A committed file that is missing, where it lies, and where it belongs."""

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class RepairFacts:
    """All that the decision rests on."""

    accounts: Accounts
    snapshot: BrokerSnapshot
    manifests: Mapping[BatchId, Manifest]
    """Of the batches that the findings name."""
    missing: Collection[CommittedFile]
    """Files of these batches that are not in their directory now; a finding says so of then."""
    in_staging: Collection[CommittedFile]
    """Files of committed batches that still wait for their rename."""
    replaced: Collection[CommittedFile]
    stopping: Mapping[int, str]
    """By partition: why the next plan will stop it. Its old offsets may be other records now."""
    cut_at: Mapping[int, int]
    """By stopped partition, where known: all below is landed and in the log as it was landed."""
    roots: Collection[str]
    """Below which the feed has, or had, its directories."""
    is_operators_word: bool
    """True when the findings were named: a new generation may be opened, a file given up."""
    is_ledger_behind: bool
    """True while the ledger lacks published batches: what it calls a stray may be of one."""
    elsewhere: Mapping[CommittedFile, MovedFile] = field(default_factory=dict)
    """Missing files that lie in another place."""
    perhaps_at: Mapping[CommittedFile, str] = field(default_factory=dict)
    """Missing files of which rows may lie in a stray, or where nobody could ask, with that path."""
    sole_copies: Mapping[str, str] = field(default_factory=dict)
    """By path: why a stray may be the only copy of its rows."""


@dataclass(frozen=True, slots=True)
class LandAgain:
    """Files of one batch whose offsets become a batch of their own."""

    old: BatchPlan
    ranges: tuple[PlannedRange, ...]
    """Empty where the broker has none of them: the batch gives the files up, and lands nothing."""
    replaces: tuple[CommittedFile, ...]
    finding_ids: tuple[int, ...]
    gone: tuple[OffsetRange, ...] = ()
    """What missing files held and the broker has no more; its rows are lost from the commit on."""


@dataclass(frozen=True, slots=True)
class PutAside:
    """A stray file, and where it is kept."""

    path: str
    quarantine: str
    finding_id: int


@dataclass(frozen=True, slots=True)
class MoveBack:
    """A committed file that somebody has moved: it goes where readers are sent."""

    path: str
    target: str
    finding_id: int


@dataclass(frozen=True, slots=True)
class EndsWithStray:
    """A finding about rows that a stray holds too: it ends when that stray's finding moves it."""

    finding_id: int
    stray_id: int


@dataclass(frozen=True, slots=True)
class WriteManifest:
    """A published directory's manifest that is gone: the ledger has its text."""

    path: str
    finding_id: int


@dataclass(frozen=True, slots=True)
class NewGeneration:
    """A log that was cut, and from where it is landed anew."""

    account: GenerationAccount
    code: FindingCode
    first_offset: int
    log_start_offset: int
    finding_id: int

    @property
    def expired(self) -> OffsetRange | None:
        """What was deleted while the partition was stopped; the next plan records it as lost."""
        return offset_range(self.account.partition, self.first_offset, self.log_start_offset)


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """An offset that Spark could not read, and that a person has asked for again."""

    account: GenerationAccount
    planned: PlannedRange
    finding_id: int


@dataclass(frozen=True, slots=True)
class NotMended:
    """A finding about which nothing is done here, and why."""

    finding_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What would be done; a dry run prints it, a repair performs it."""

    land_again: Sequence[LandAgain] = ()
    put_aside: Sequence[PutAside] = ()
    move_back: Sequence[MoveBack] = ()
    end_with_strays: Sequence[EndsWithStray] = ()
    write_manifests: Sequence[WriteManifest] = ()
    new_generations: Sequence[NewGeneration] = ()
    read_again: Sequence[ReadAgain] = ()
    finish: Sequence[int] = ()
    """Findings about unfinished batches: they are finished or taken over."""
    not_mended: Sequence[NotMended] = ()

    @property
    def changes(self) -> LogChanges:
        """Generations to close and to open, and offsets to ask for, on the operator's word."""
        return LogChanges(
            due_again=tuple(each.planned for each in self.read_again),
            closed=tuple(
                EndedGeneration(
                    each.account.generation_id,
                    each.code,
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
