"""The second reader compares landed rows with the broker's records, as far as it has them (L4).

A run's check compares the first sample of what is new; reconcile compares batches in turn, the new
ones first. A difference is a finding. A slice that can't be compared is said, and stops nothing.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.sameness import LogCheck
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.report.troubles import troubles_among
from tallystick.domain.rows.sampling import FIRST_SAMPLE, SampleSize, rotation_size, sampled
from tallystick.domain.rows.second_read import SeenRecord, SliceRead, differences, without_untimed
from tallystick.domain.rules.c3_rows_differ import (
    C3,
    ComparedPlace,
    ComparedSlice,
    compared_again,
    differing_rows,
    place_of,
    ranges_to_read,
    slices_to_read_again,
)
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import SECOND_READER, could_not_tell
from tallystick.errors import SourceError, StorageError, StorageUnavailable
from tallystick.ledger.scrubs import DueSample, TakenSample
from tallystick.ports.broker import SecondReader
from tallystick.workflows.place import at, counted
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import ask_all, asking

log = logging.getLogger(__name__)


# Compares landed rows with the records that the second reader reads from the broker.
#
# A slice is compared as far as both sides have it. What can't be compared is said, and stops
# nothing: whatever it would have shown was proven by others before, or will be by the next
# sample.


@dataclass(frozen=True, slots=True)
class LandedRows:
    """Where rows lie, and which of them are the batch's."""

    directory: str
    files: Sequence[LandedFile]
    isolation: Isolation


def compared_slices(
    services: Services, reader: SecondReader, place: LandedRows, slices: Sequence[OffsetRange]
) -> Sequence[ComparedSlice]:
    """Each slice as both sides have it.

    Broker and storage are asked at the same time. Raises SourceError, StorageError.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="landed-rows") as pool:
        rows = pool.submit(_rows, services, place, slices)
        return _judged(services, reader.read(slices, place.isolation), rows.result())


def _judged(
    services: Services,
    reads: Sequence[SliceRead],
    rows: Mapping[int, Sequence[SeenRecord]],
) -> Sequence[ComparedSlice]:
    """What a compacted topic has cleaned since is no difference; asked only where it matters.

    A policy that was `compact` in some look may have cleaned what was there then.
    """
    found = []
    offsets = {number: [each.offset for each in theirs] for number, theirs in rows.items()}
    for each in reads:
        number = each.asked.partition.partition
        first, until = (
            bisect_left(offsets.get(number, ()), offset)
            for offset in (each.asked.from_offset, each.asked.until_offset)
        )
        landed = rows.get(number, ())[first:until]
        read = without_untimed(each, landed)
        told = differences(read, landed)
        if any(one.served is None for one in told):
            now = services.broker.snapshot(each.asked.partition.topic)
            cleaned = (
                each.asked
                if now.is_compacted
                else services.ledger.cleaned_part(services.feed_name, now.topic_id, each.asked)
            )
            told = differences(read, landed, cleaned)
        found.append(ComparedSlice(read, told))
    return found


def _rows(
    services: Services, place: LandedRows, slices: Sequence[OffsetRange]
) -> Mapping[int, Sequence[SeenRecord]]:
    """The landed rows of the slices, by partition, and there by offset."""

    def rows_of(file: LandedFile) -> list[tuple[int, SeenRecord]]:
        held = [
            each
            for each in slices
            if any(
                one.meets(each.partition.partition, each.from_offset, each.until_offset)
                for one in file.slices
            )
        ]
        if not held:
            return []
        return list(services.store.landed_slices(place.directory, file.name, held))

    rows: dict[int, list[SeenRecord]] = {}
    with asking() as pool:
        for of_file in ask_all(pool, rows_of, place.files):
            for partition, record in of_file:
                rows.setdefault(partition, []).append(record)
    for theirs in rows.values():
        theirs.sort(key=attrgetter("offset"))
    return rows


def taken_sample(
    turn: int, size: SampleSize, compared: Sequence[ComparedSlice], reason: str | None = None
) -> TakenSample:
    """What was compared, as it is on record; `reason` says why nothing was."""
    reasons = [f"{each.read.asked}: {each.read.reason}" for each in compared if each.read.reason]
    not_shown = sum(len(each.read.not_shown) for each in compared)
    if not_shown:
        reasons.append(f"{not_shown} records whose time, or header names, librdkafka can't show")
    more = f" and {len(reasons) - 3} more slices" if len(reasons) > 3 else ""
    return TakenSample(
        turn=turn,
        slices=size.slices,
        span=size.span,
        offsets=sum(each.read.answered_count for each in compared),
        not_compared=reason or ("; ".join(reasons[:3]) + more if reasons else None),
    )


_MOST_REASONS: Final = 20
_NEWEST: Final = 100
"""Batches that a run's check looks at."""


@dataclass(frozen=True, slots=True)
class SecondReadReport:
    """What the second reader compared, and what it found."""

    findings: Sequence[Finding]
    """Rows that differ; on record already."""
    unheard: Sequence[Finding]
    """What could not be told, and why: UNKNOWN, not on record."""
    equal_again: frozenset[ComparedPlace]
    """Places of findings whose slices were compared again, and are equal."""
    batches: int
    """Of which something was compared."""
    offsets: int
    """Compared, on both sides."""
    left_due: int
    """Batches that the broker still has, and that were not compared: the budget was spent, or
    something could not be read."""
    not_compared: Sequence[str]
    """What could not be compared, in words; the first ones."""
    has_looked: bool = True
    """False when nobody has looked: the feed has no second reader, or none was asked for."""


NOTHING_COMPARED: Final = SecondReadReport((), (), frozenset(), 0, 0, 0, (), has_looked=False)


def second_read(
    services: Services, accounts: Accounts, snapshot: BrokerSnapshot
) -> SecondReadReport:
    """The next batches in turn, up to the feed's budget.

    Findings and checks are on record afterwards. Raises LedgerUnavailable only.
    """
    reader, budget = services.second_reader, services.feed.reconcile.second_reader
    if reader is None or budget is None:
        return NOTHING_COMPARED
    with at(services, "the second reader"):
        report = _Rotation(services, reader, accounts, snapshot).compare_due(budget)
    _tell(services, report)
    for trouble in troubles_among((*report.findings, *report.unheard)):
        log.warning("Found: %s", trouble)
    return report


def compare_newest(services: Services) -> SecondReadReport:
    """The first sample of each new batch: what a run compares before it deletes any copy.

    The rest of a run with very many batches comes first in the next reconcile at level 4. Findings
    and checks are on record afterwards. Raises SourceError where the broker shows no topic, and
    LedgerUnavailable.
    """
    reader = services.second_reader
    if reader is None:
        return NOTHING_COMPARED
    with at(services, "the second reader"):
        accounts = services.ledger.accounts(services.feed_name)
        snapshot = services.broker.snapshot(services.topic)
        report = _Rotation(services, reader, accounts, snapshot).compare_newest()
    _tell(services, report)
    return report


class _Rotation:
    """One share of the comparison: a reconcile's, or a run's."""

    def __init__(
        self, services: Services, reader: SecondReader, accounts: Accounts, snapshot: BrokerSnapshot
    ) -> None:
        self._services, self._reader = services, reader
        self._accounts, self._snapshot = accounts, snapshot
        self._starts = {
            number: bounds.log_start_offset for number, bounds in snapshot.partitions.items()
        }
        stored = services.ledger.findings(services.feed_name)
        self._standing = [each.finding for each in stored]
        self._found: list[Finding] = []
        self._unheard: list[Finding] = []
        self._equal: set[ComparedPlace] = set()
        self._batches, self._offsets = 0, 0
        self._reasons: list[str] = []

    def compare_due(self, budget: int) -> SecondReadReport:
        """Up to so many offsets, of whatever is due."""
        return self._compare(self._due(), budget)

    def compare_newest(self) -> SecondReadReport:
        """What was never compared, of the newest batches."""
        due = [each for each in self._due(_NEWEST) if each.is_first]
        if len(due) == _NEWEST:
            self._reasons.append(f"batches before the newest {_NEWEST}: reconcile comes to them")
        return self._compare(due, _NEWEST * FIRST_SAMPLE.offsets)

    def _due(self, newest: int | None = None) -> Sequence[DueSample]:
        services, topic_id = self._services, self._snapshot.topic_id
        return services.ledger.samples_due(services.feed_name, topic_id, self._starts, newest)

    def _compare(self, due: Sequence[DueSample], budget: int) -> SecondReadReport:
        """Batch by batch: what is found of one is on record before the next is read."""
        in_turn, left = rotation_size(budget, len(due)), budget
        for each in counted(self._services, "the second reader", "batches", due):
            size = FIRST_SAMPLE if each.is_first else in_turn
            is_spent = left < size.offsets and left < budget
            if is_spent or self._unheard:
                break
            left -= self._read(each, size)
        return SecondReadReport(
            findings=self._found,
            unheard=self._unheard,
            equal_again=frozenset(self._equal),
            batches=self._batches,
            offsets=self._offsets,
            left_due=len(due) - self._batches,
            not_compared=self._reasons[:_MOST_REASONS],
        )

    def _read(self, due: DueSample, size: SampleSize) -> int:
        """How many offsets of the batch were asked for."""
        services, ledger = self._services, self._services.ledger
        standing = ledger.standing_batches([due.batch_id])
        if not standing:
            return 0
        [batch] = standing
        ranges = ranges_to_read(batch, self._accounts.generations, self._starts)
        again = slices_to_read_again(batch.manifest.plan, self._standing, ranges)
        slices = union_of([*again, *sampled(batch.batch_id, due.turn, ranges, size)])
        if not slices:
            return 0
        directory = str(BatchPath.of(batch.manifest.plan))
        place = LandedRows(directory, batch.files, batch.manifest.isolation)
        try:
            compared = compared_slices(services, self._reader, place, slices)
            compared = self._of_its_log(batch, compared)
        except (SourceError, StorageError) as error:
            taken = taken_sample(due.turn, size, (), error.describe())
            self._reasons.append(f"batch {batch.batch_id}: {taken.not_compared}")
            if isinstance(error, (SourceError, StorageUnavailable)):
                said = could_not_tell(
                    SECOND_READER,
                    services.feed_name,
                    services.topic,
                    error.describe(),
                    seen_at=services.clock.now(),
                )
                self._unheard.append(said)
            ledger.record_sample(batch.batch_id, taken, is_clean=False)
            return 0
        self._judge(due, size, batch, compared)
        return sum(each.span for each in slices)

    def _of_its_log(
        self, batch: StandingBatch, compared: Sequence[ComparedSlice]
    ) -> Sequence[ComparedSlice]:
        """Without the differences of a log that is not the batch's any more since it was looked at.

        Raises SourceError.
        """
        differing = {each.read.asked.partition.partition for each in compared if each.differences}
        if not differing:
            return compared
        services, plan = self._services, batch.manifest.plan
        now = services.broker.snapshot(services.topic)
        checks: Mapping[int, LogCheck] = {}
        if now.is_of(plan):
            generations = self._accounts.generations
            checks = checked_logs(services, now, [generations[each] for each in sorted(differing)])
        kept = []
        # A record that differs proves no cut by itself: that is what the second reader tells of.
        for each in compared:
            check = checks.get(each.read.asked.partition.partition)
            until = each.read.until_offset
            is_same = check and (check.holds_below(until) or check.is_told_by_record_alone)
            if each.differences and not is_same:
                reason = "the log was cut or re-created meanwhile, or nobody can tell"
                unread = replace(each.read, records=(), from_offset=until, reason=reason)
                kept.append(ComparedSlice(unread, ()))
            else:
                kept.append(each)
        return kept

    def _judge(
        self,
        due: DueSample,
        size: SampleSize,
        batch: StandingBatch,
        compared: Sequence[ComparedSlice],
    ) -> None:
        """By the ledger as it is afterwards: what a repair has replaced meanwhile is no loss."""
        services, manifest = self._services, batch.manifest
        found = differing_rows(manifest, batch.files, compared, self._standing)
        if found:
            [now] = services.ledger.standing_batches([batch.batch_id])
            if now.standing != batch.standing:
                return
        services.ledger.record_findings(services.feed_name, found)
        taken = taken_sample(due.turn, size, compared)
        self._found += found
        self._equal |= compared_again(batch.batch_id, self._standing, compared)
        left = (each for each in self._standing if not self._has_ended(each))
        is_clean = not found and batch.batch_id not in batches_in_trouble(left)
        services.ledger.record_sample(batch.batch_id, taken, is_clean=is_clean)
        self._offsets += taken.offsets
        self._batches += taken.is_complete
        if taken.not_compared:
            self._reasons.append(f"batch {batch.batch_id}: {taken.not_compared}")

    def _has_ended(self, standing: Finding) -> bool:
        return standing.rule == C3 and place_of(standing) in self._equal


def _tell(services: Services, report: SecondReadReport) -> None:
    log.info(
        "Feed %s: a second reader compared %d offsets; batches: %d, waiting for their turn: %d.",
        services.feed_name,
        report.offsets,
        report.batches,
        report.left_due,
    )
    for reason in report.not_compared:
        log.warning("The second reader could not compare %s", reason)
