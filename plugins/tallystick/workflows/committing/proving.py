"""The proof of an attempt: every planned offset landed once, or a hole with a proven cause.

The order matters: what the log says of holes and records counts only if the log is still the
planned one afterwards, so its identity and its leader epochs are looked at last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tallystick.domain.batches.accounting import (
    RangeHoles,
    accounted,
    holes_in,
    problems_in,
    unexplained_in,
)
from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.manifest import Manifest, TailAnchor
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import SAME, LogCheck, Sameness
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a7_short_read import short_read
from tallystick.errors import FileMissing, VerificationFailed
from tallystick.ports.progress import Progress
from tallystick.workflows.committing.log_as_read import JustRead, checked_as_read, kept_answer
from tallystick.workflows.same_log import bounds_of, checked_logs
from tallystick.workflows.services import Services


@dataclass(frozen=True, slots=True)
class NotProven:
    """Why the files of an attempt can't be committed."""

    problems: Sequence[str]
    short_reads: Sequence[OffsetRange] = ()
    """What is missing for no cause, in a log that is the planned one."""


def proven(
    services: Services, attempt: Attempt, plan: BatchPlan, just_read: JustRead | None = None
) -> Manifest:
    """The manifest of an attempt whose every planned offset is accounted for.

    What was `just_read` is not read in staging again. Raises VerificationFailed with every problem
    that was found; short reads are on record then.
    """
    claimed = partial(services.ledger.claimed_logs, plan.batch_id)
    proof = judged(services, attempt, plan, claimed, just_read)
    if isinstance(proof, NotProven):
        if proof.short_reads:
            _record_short_reads(services, attempt, plan, proof.short_reads)
        raise VerificationFailed(attempt.batch_id, proof.problems)
    return proof


def judged(
    services: Services,
    attempt: Attempt,
    plan: BatchPlan,
    claimed: Callable[[], Sequence[GenerationAccount]],
    just_read: JustRead | None = None,
) -> Manifest | NotProven:
    """What the files prove of the plan. Changes nothing.

    `claimed` tells the logs that the plan claims of. It is asked behind the read back: another
    batch's commit may have moved their witness meanwhile.
    """
    staging = StagingPath.of(plan, attempt.attempt_id)
    if just_read:
        landing = just_read.landing
    else:
        landing = LandingPlan.from_json(services.store.read(staging.plan).decode())
    if not plan.ranges:
        return Manifest(plan, attempt, landing.isolation, (), ())
    services.progress(Progress("read back"))
    try:
        late_before = plan.label if services.feed.windows else None
        found = services.store.read_back(staging.data, late_before)
    except FileMissing as error:
        return NotProven([error.describe()])
    services.progress(Progress("prove"))
    range_holes = holes_in(plan.ranges, found)
    causes = [causes_of(services, each, plan, landing.isolation) for each in range_holes]
    anchors = _anchors(services, staging, range_holes, found)
    after = services.broker.snapshot(plan.topic)
    logs = claimed()
    since_read = checked_as_read(services, plan, landing, after)
    vouched = _vouched(services, staging, plan, range_holes, since_read, just_read)
    changes = list(_changes_of_the_log(services, plan, after, since_read, vouched, logs))
    problems = [*problems_in(plan.ranges, found), *_unexplained(range_holes, causes), *changes]
    if problems:
        return NotProven(problems, () if changes else _short_reads(after, range_holes, causes))
    anchors |= _landed_anchors(services, staging, range_holes, found, vouched)
    ranges = tuple(
        accounted(
            each,
            explained,
            anchors.get(each.planned.offsets.partition.partition),
            landing.leader_epochs.get(each.planned.offsets.partition.partition),
        )
        for each, explained in zip(range_holes, causes, strict=True)
    )
    return Manifest(plan, attempt, landing.isolation, ranges, found.files)


def causes_of(
    services: Services, range_holes: RangeHoles, plan: BatchPlan, isolation: Isolation
) -> Mapping[HoleClass, OffsetRuns]:
    """The proven causes of a range's holes. A policy may be `compact` no more, and was so when the
    records went.
    """
    if not range_holes.holes:
        return {}
    return services.broker.explain_holes(
        range_holes.planned.offsets,
        range_holes.holes,
        isolation,
        cleaned=services.ledger.cleaned_part(plan.feed, plan.topic_id, range_holes.planned.offsets),
    )


def _unexplained(
    range_holes: Sequence[RangeHoles], causes: Sequence[Mapping[HoleClass, OffsetRuns]]
) -> Iterator[str]:
    for each, explained in zip(range_holes, causes, strict=True):
        rest = unexplained_in(each, explained)
        if rest:
            yield (
                f"{each.planned.offsets}: {rest.count} offsets are not landed, and no cause is"
                f" proven: {rest.described()}"
            )


def _short_reads(
    after: BrokerSnapshot,
    range_holes: Sequence[RangeHoles],
    causes: Sequence[Mapping[HoleClass, OffsetRuns]],
) -> list[OffsetRange]:
    """What is missing for no cause.

    What the log has deleted meanwhile is left to the next plan: it says why, and that it is lost.
    """
    found = []
    for each, explained in zip(range_holes, causes, strict=True):
        offsets = each.planned.offsets
        bounds = after.partitions.get(offsets.partition.partition)
        start = bounds.log_start_offset if bounds else offsets.from_offset
        missing = unexplained_in(each, explained).clipped(start, offsets.until_offset)
        found += [OffsetRange(offsets.partition, *run) for run in missing]
    return found


def _record_short_reads(
    services: Services, attempt: Attempt, plan: BatchPlan, missing: Sequence[OffsetRange]
) -> None:
    """On record, if the batch is still this attempt's."""
    status = services.ledger.batch(plan.batch_id)
    if not status.state.is_committed and status.newest_token == attempt.token:
        found = [short_read(plan, each) for each in missing]
        services.ledger.record_findings(services.feed_name, found)


def _vouched(
    services: Services,
    staging: StagingPath,
    plan: BatchPlan,
    range_holes: Sequence[RangeHoles],
    since_read: Mapping[int, LogCheck],
    just_read: JustRead | None,
) -> list[OffsetRange]:
    """Ranges of rows alone that nobody can judge now, and that were judged right after the read."""
    unknown = [
        each.planned.offsets
        for each in range_holes
        if not each.holes
        if (check := since_read.get(each.planned.offsets.partition.partition))
        if check.sameness is Sameness.UNKNOWN
    ]
    if not unknown:
        return []
    answer = just_read.answer if just_read else kept_answer(services, staging)
    return [each for each in unknown if answer and answer.vouches_for(plan, each)]


def _changes_of_the_log(
    services: Services,
    plan: BatchPlan,
    after: BrokerSnapshot,
    since_read: Mapping[int, LogCheck],
    vouched: Collection[OffsetRange],
    logs: Sequence[GenerationAccount],
) -> Iterator[str]:
    """What became of the log between the plan and the end of the read: re-created, or cut.

    The landing has asked the witness that the plan left, and seen each log reach past its range in
    the leader epoch of that moment: it is asked now. So are the log's own witness and the last
    record that was landed before, which this batch's commit is about to replace. Where nobody can
    tell any more, the answer right after the read counts, for the ranges that are `vouched` for.
    """
    if not after.is_of(plan):
        yield f"topic {plan.topic} was re-created while the batch was landed"
        return
    since_plan = checked_logs(services, after, logs)
    for planned in plan.ranges:
        offsets = planned.offsets
        partition = offsets.partition.partition
        bounds_of(services, after, offsets.partition)
        known, read = since_plan.get(partition, SAME), since_read.get(partition, SAME)
        if offsets not in vouched and not read.holds_below(offsets.until_offset):
            yield f"{offsets}: {read.words('during the read')}"
        elif known.sameness is Sameness.CUT and not known.holds_below(offsets.until_offset):
            yield f"{offsets}: {known.words('since it was planned')}"


def _anchors(
    services: Services, staging: StagingPath, range_holes: Sequence[RangeHoles], found: ReadBack
) -> dict[int, TailAnchor]:
    """The last landed record of each range, by partition; of the row itself where it is gone."""
    last = _last_offsets(range_holes)
    topic = range_holes[0].planned.offsets.partition.topic if range_holes else ""
    records = services.broker.records_at(topic, last) if last else {}
    gone = [
        each.planned.offsets
        for each in range_holes
        if each.planned.offsets.partition.partition not in records
    ]
    return _landed_anchors(services, staging, range_holes, found, gone) | {
        partition: TailAnchor(last[partition], record.leader_epoch, record.content_hash)
        for partition, record in records.items()
    }


def _landed_anchors(
    services: Services,
    staging: StagingPath,
    range_holes: Sequence[RangeHoles],
    found: ReadBack,
    ranges: Collection[OffsetRange],
) -> dict[int, TailAnchor]:
    """The last row of each of these ranges, as it lies in its file."""
    wanted = {each.partition.partition for each in ranges}
    return {
        partition: TailAnchor(
            offset,
            None,
            services.store.landed_record_hash(
                staging.data, _file_with(found, partition, offset), partition, offset
            ),
        )
        for partition, offset in _last_offsets(range_holes).items()
        if partition in wanted
    }


def _last_offsets(range_holes: Sequence[RangeHoles]) -> dict[int, int]:
    return {
        each.planned.offsets.partition.partition: offset
        for each in range_holes
        if (offset := each.landed.last_offset) is not None
    }


def _file_with(found: ReadBack, partition: int, offset: int) -> str:
    """The file whose slice ends with this very offset: the range's last row."""
    return next(
        file.name
        for file in found.files
        for each in file.slices
        if each.partition == partition and each.last_offset == offset
    )
