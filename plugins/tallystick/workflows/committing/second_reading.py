"""The second reader: another Kafka client reads a sample, and it must be what was landed (L4).

Before a commit a difference fails the attempt. In reconcile it is a finding, of batches in turn, as
far as the broker still has them. A sample that can't be taken is said, and stops nothing: whatever
it would have shown was proven by others before, or will be by the next one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import AttemptId
from tallystick.domain.logs.sameness import LogCheck
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.rows.sampling import (
    AT_COMMIT,
    COMMIT_TURN,
    SampleSize,
    rotation_size,
    sampled,
)
from tallystick.domain.rows.second_read import SeenRecord, SliceRead, differences, without_untimed
from tallystick.domain.rules.c3_compared_again import (
    compared_again,
    is_compared,
    ranges_to_read,
    refusals_in,
    refusals_taken_back,
    refused_before,
    slices_of,
    slices_to_read_again,
)
from tallystick.domain.rules.c3_evidence import ComparedSlice
from tallystick.domain.rules.c3_rows_differ import (
    C3,
    ComparedPlace,
    also_refused,
    described,
    differing_attempt,
    differing_rows,
    is_refusal,
    place_of,
)
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import could_not_compare
from tallystick.errors import SourceError, StorageError, StorageUnavailable, VerificationFailed
from tallystick.ports.scrubs import DueSample, TakenSample
from tallystick.ports.second_reader import SecondReader
from tallystick.workflows.place import at, counted
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_MOST_REASONS: Final = 20


@dataclass(frozen=True, slots=True)
class SecondReadReport:
    """What a rotation of the second reader compared, and what it found."""

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


@dataclass(frozen=True, slots=True)
class CommitSample:
    """What a second reader has compared before a commit."""

    taken: TakenSample
    taken_back: Mapping[int, str]
    """Findings about earlier attempts at these offsets, by number, with what ends them: the same
    slices are equal now. Only the commit makes that true."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where rows lie, and which of them are the batch's."""

    directory: str
    files: Sequence[LandedFile]
    isolation: Isolation


def take_sample(
    services: Services, attempt: Attempt, manifest: Manifest, landed_by: AttemptId
) -> CommitSample | None:
    """What a second reader says of an attempt's rows; None where the feed has none.

    It compares also what it has refused of other attempts at these offsets.

    `landed_by` has landed the files. Raises VerificationFailed where a row is not what the broker
    serves, after it is on record; and for files that were refused before, unless what differed is
    compared again and is equal.
    """
    reader, plan = services.second_reader, manifest.plan
    stored = services.ledger.findings(services.feed_name)
    standing = [each.finding for each in stored]
    refused = refused_before(plan.batch_id, {attempt.attempt_id, landed_by}, standing)
    if reader is None:
        if refused:
            _refuse_again(services, attempt, refused, "the feed has no second reader")
        return None
    ranges = [each.offsets for each in plan.ranges]
    slices = union_of(
        [
            *slices_of(plan, refusals_in(plan, standing), ranges),
            *sampled(plan.batch_id, COMMIT_TURN, ranges, AT_COMMIT),
        ]
    )
    staging = StagingPath.of(plan, attempt.attempt_id)
    place = _Place(staging.data, manifest.files, manifest.isolation)
    taken_back: Mapping[int, str] = {}
    try:
        compared = _compared(services, reader, place, slices)
    except (SourceError, StorageUnavailable) as error:
        if refused:
            _refuse_again(services, attempt, refused, error.describe())
        taken = _taken(COMMIT_TURN, AT_COMMIT, (), error.describe())
    else:
        found = differing_attempt(plan, attempt.attempt_id, compared, standing)
        if found:
            _record_refused(services, attempt, found)
            raise VerificationFailed(plan.batch_id, described(compared))
        taken = _taken(COMMIT_TURN, AT_COMMIT, compared)
        if not all(is_compared(each, compared) for each in refused):
            reason = taken.not_compared or "they are no part of the batch any more"
            _refuse_again(services, attempt, refused, reason)
        equal = refusals_taken_back(standing, compared)
        taken_back = {
            each.finding_id: f"Batch {plan.batch_id} has landed it, and was compared: equal."
            for each in stored
            if is_refusal(each.finding) and place_of(each.finding) in equal
        }
    if taken.not_compared:
        log.warning(
            "Batch %s: the second reader compared %d offsets, all equal; it could not compare: %s",
            plan.batch_id,
            taken.offsets,
            taken.not_compared,
        )
    return CommitSample(taken, taken_back)


def _refuse_again(
    services: Services, attempt: Attempt, refused: Sequence[Finding], reason: str
) -> NoReturn:
    """Nothing has taken back what was seen of these files."""
    again = [also_refused(each, attempt.attempt_id) for each in refused]
    if again != list(refused):
        _record_refused(services, attempt, again)
    raise VerificationFailed(
        attempt.batch_id,
        [
            "a second reader has seen that rows in these files differ from what the broker serves"
            f" (C3), and could not compare the same offsets again: {reason}"
        ],
    )


def _record_refused(services: Services, attempt: Attempt, found: Sequence[Finding]) -> None:
    status = services.ledger.batch(attempt.batch_id)
    if not status.state.is_committed and status.newest_token == attempt.token:
        services.ledger.record_findings(services.feed_name, found)


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
        report = _Rotation(services, reader, accounts, snapshot).run(budget)
    _tell(services, report)
    return report


class _Rotation:
    """One reconcile's share of the comparison."""

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
        self._refused_again: list[ComparedSlice] = []
        """Compared slices of batches that have landed what was refused of an attempt."""
        self._batches, self._offsets = 0, 0
        self._reasons: list[str] = []

    def run(self, budget: int) -> SecondReadReport:
        """Batch by batch: what is found of one is on record before the next is read."""
        due = self._services.ledger.samples_due(
            self._services.feed_name, self._snapshot.topic_id, self._starts
        )
        size, left = rotation_size(budget, len(due)), budget
        for each in counted(self._services, "the second reader", "batches", due):
            is_spent = left < size.offsets and left < budget
            if is_spent or self._unheard:
                break
            left -= self._read(each, size)
        self._equal |= refusals_taken_back(self._standing, self._refused_again)
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
        place = _Place(directory, batch.files, batch.manifest.isolation)
        try:
            compared = _compared(services, self._reader, place, slices)
            compared = self._of_its_log(batch, compared)
        except (SourceError, StorageError) as error:
            taken = _taken(due.turn, size, (), error.describe())
            self._reasons.append(f"batch {batch.batch_id}: {taken.not_compared}")
            if isinstance(error, (SourceError, StorageUnavailable)):
                said = could_not_compare(services.feed_name, services.topic, error.describe())
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
        taken = _taken(due.turn, size, compared)
        self._found += found
        self._equal |= compared_again(batch.batch_id, self._standing, compared)
        if refusals_in(manifest.plan, self._standing):
            self._refused_again += compared
        left = (each for each in self._standing if not self._has_ended(each))
        is_clean = not found and batch.batch_id not in batches_in_trouble(left)
        services.ledger.record_sample(batch.batch_id, taken, is_clean=is_clean)
        self._offsets += taken.offsets
        self._batches += taken.is_complete
        if taken.not_compared:
            self._reasons.append(f"batch {batch.batch_id}: {taken.not_compared}")

    def _has_ended(self, standing: Finding) -> bool:
        return standing.rule == C3 and place_of(standing) in self._equal


def _compared(
    services: Services, reader: SecondReader, place: _Place, slices: Sequence[OffsetRange]
) -> Sequence[ComparedSlice]:
    """Each slice as both sides have it. Where they differ, the file is read once more, plainly.

    Raises SourceError, StorageError.
    """
    reads = reader.read(slices, place.isolation)
    found = _judged(services, reads, _rows(services, place, slices, by_pages=True))
    differing = [each.read.asked for each in found if each.differences]
    if not differing:
        return found
    plain = _judged(
        services,
        [each.read for each in found if each.differences],
        _rows(services, place, differing, by_pages=False),
    )
    again = {each.read.asked: each for each in plain}
    return [again.get(each.read.asked, each) for each in found]


def _judged(
    services: Services,
    reads: Sequence[SliceRead],
    rows: Mapping[int, Sequence[SeenRecord]],
) -> Sequence[ComparedSlice]:
    """What a compacted topic has cleaned since is no difference; asked only where it matters.

    A policy that was `compact` in some look may have been so when the record went.
    """
    found = []
    for each in reads:
        landed = rows.get(each.asked.partition.partition, ())
        read = without_untimed(each, landed)
        told = differences(read, landed, is_compacted=False)
        if any(one.served is None for one in told):
            now = services.broker.snapshot(each.asked.partition.topic)
            may_be_cleaned = now.is_compacted or services.ledger.was_compacted(
                services.feed_name, now.topic_id
            )
            told = differences(read, landed, is_compacted=may_be_cleaned)
        found.append(ComparedSlice(read, told))
    return found


def _rows(
    services: Services, place: _Place, slices: Sequence[OffsetRange], *, by_pages: bool
) -> Mapping[int, Sequence[SeenRecord]]:
    """The landed rows of the slices, by partition."""
    rows: dict[int, list[SeenRecord]] = {}
    for file in place.files:
        held = [
            each
            for each in slices
            if any(
                one.meets(each.partition.partition, each.from_offset, each.until_offset)
                for one in file.slices
            )
        ]
        if held:
            for partition, record in services.store.landed_slices(
                place.directory, file.name, held, by_pages=by_pages
            ):
                rows.setdefault(partition, []).append(record)
    return rows


def _taken(
    turn: int, size: SampleSize, compared: Sequence[ComparedSlice], reason: str | None = None
) -> TakenSample:
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


def _tell(services: Services, report: SecondReadReport) -> None:
    log.info(
        "Feed %s: a second reader compared %d offsets of %d batch(es); %d batch(es) wait for their"
        " turn.",
        services.feed_name,
        report.offsets,
        report.batches,
        report.left_due,
    )
    for reason in report.not_compared:
        log.warning("The second reader could not compare %s", reason)
    for finding in (*report.findings, *report.unheard):
        log.warning("Found: %s", finding)
