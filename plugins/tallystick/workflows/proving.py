"""The proof of an attempt: every planned offset landed once, or a hole with a proven cause.

The order matters: what the log says of holes and records counts only if the log is still the
planned one afterwards, so its identity and its leader epochs are looked at last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tallystick.domain.accounting import (
    RangeHoles,
    accounted,
    holes_in,
    problems_in,
    unexplained_in,
)
from tallystick.domain.batch import Attempt, BatchPlan
from tallystick.domain.landed import ReadBack
from tallystick.domain.landing import LandingPlan
from tallystick.domain.ledger_rules import short_read
from tallystick.domain.manifest import Manifest, TailAnchor
from tallystick.domain.paths import StagingPath
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.sameness import SAME, Sameness
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.domain.states import HoleClass
from tallystick.errors import BrokerUnavailable, FileMissing, VerificationFailed
from tallystick.workflows.same_log import checked_logs
from tallystick.workflows.services import Services


def proven(services: Services, attempt: Attempt, plan: BatchPlan) -> Manifest:
    """The manifest of an attempt whose every planned offset is accounted for.

    Raises VerificationFailed with every problem that was found.
    """
    staging = StagingPath.of(plan, attempt.attempt_id)
    landing = LandingPlan.from_json(services.store.read(staging.plan).decode())
    if not plan.ranges:
        return Manifest(plan, attempt, landing.isolation, (), ())
    try:
        found = services.store.read_back(staging.data)
    except FileMissing as error:
        raise VerificationFailed(attempt.batch_id, [error.describe()]) from error
    gaps = holes_in(plan.ranges, found)
    causes = [_explained(services, each, landing) for each in gaps]
    anchors = _anchors(services, staging, gaps, found)
    after = services.broker.snapshot(plan.topic)
    changes = list(_changes_of_the_log(services, plan, landing, after))
    problems = [*problems_in(plan.ranges, found), *_unexplained(gaps, causes), *changes]
    if problems:
        if not changes:
            _tell_short_reads(services, attempt, plan, after, gaps, causes)
        raise VerificationFailed(attempt.batch_id, problems)
    ranges = tuple(
        accounted(
            each,
            explained,
            anchors.get(each.planned.offsets.partition.partition),
            landing.leader_epochs.get(each.planned.offsets.partition.partition),
        )
        for each, explained in zip(gaps, causes, strict=True)
    )
    return Manifest(plan, attempt, landing.isolation, ranges, found.files)


def _explained(
    services: Services, gaps: RangeHoles, landing: LandingPlan
) -> Mapping[HoleClass, OffsetRuns]:
    if not gaps.holes:
        return {}
    return services.broker.explain_holes(gaps.planned.offsets, gaps.holes, landing.isolation)


def _unexplained(
    gaps: Sequence[RangeHoles], causes: Sequence[Mapping[HoleClass, OffsetRuns]]
) -> Iterator[str]:
    for each, explained in zip(gaps, causes, strict=True):
        rest = unexplained_in(each, explained)
        if rest:
            yield (
                f"{each.planned.offsets}: {rest.count} offsets are not landed, and no cause is"
                f" proven: {rest.described()}"
            )


def _tell_short_reads(
    services: Services,
    attempt: Attempt,
    plan: BatchPlan,
    after: BrokerSnapshot,
    gaps: Sequence[RangeHoles],
    causes: Sequence[Mapping[HoleClass, OffsetRuns]],
) -> None:
    """Record what is missing for no cause, if the batch is still this attempt's.

    What the log has deleted meanwhile is left to the next plan: it says why, and that it is lost.
    """
    status = services.ledger.batch(plan.batch_id)
    if status.state.is_committed or status.newest_token != attempt.token:
        return
    found = []
    for each, explained in zip(gaps, causes, strict=True):
        offsets = each.planned.offsets
        bounds = after.partitions.get(offsets.partition.partition)
        start = bounds.log_start_offset if bounds else offsets.from_offset
        missing = unexplained_in(each, explained).clipped(start, offsets.until_offset)
        found += [
            short_read(plan, OffsetRange(offsets.partition, from_offset, until_offset))
            for from_offset, until_offset in missing
        ]
    services.ledger.record_findings(services.feed_name, found)


def _changes_of_the_log(
    services: Services, plan: BatchPlan, landing: LandingPlan, after: BrokerSnapshot
) -> Iterator[str]:
    """What became of the log between the plan and the end of the read: re-created, or cut.

    The landing has asked the witness that the plan left, and seen each log reach past its range in
    the leader epoch of that moment: it is asked now. So are the log's own witness and the last
    record that was landed before, which this batch's commit is about to replace.
    """
    if (after.cluster_id, after.topic_id) != (plan.cluster_id, plan.topic_id):
        yield f"topic {plan.topic} was re-created while the batch was landed"
        return
    logs = {each.partition.partition: each for each in services.ledger.claimed_logs(plan.batch_id)}
    since_plan = checked_logs(services, after, logs.values())
    as_read = [
        replace(logs[partition], seen_epoch=epoch, last_seen_until=until, anchor=None)
        for partition, until in _ends(plan).items()
        if partition in logs and (epoch := landing.leader_epochs.get(partition)) is not None
    ]
    since_read = checked_logs(services, after, as_read)
    for planned in plan.ranges:
        offsets = planned.offsets
        partition = offsets.partition.partition
        if partition not in after.partitions:
            raise BrokerUnavailable(
                services.servers, f"no leader can say how far {offsets.partition} may be read"
            )
        known, read = since_plan.get(partition, SAME), since_read.get(partition, SAME)
        if not read.holds_below(offsets.until_offset):
            yield f"{offsets}: {read.words('during the read')}"
        elif known.sameness is Sameness.CUT and not known.holds_below(offsets.until_offset):
            yield f"{offsets}: {known.words('since it was planned')}"


def _ends(plan: BatchPlan) -> Mapping[int, int]:
    """By partition, the end (excluded) of its range."""
    offsets = [each.offsets for each in plan.ranges]
    return {each.partition.partition: each.until_offset for each in offsets}


def _anchors(
    services: Services, staging: StagingPath, gaps: Sequence[RangeHoles], found: ReadBack
) -> Mapping[int, TailAnchor]:
    """The last landed record of each range, by partition; of the row itself where it is gone."""
    last = {
        each.planned.offsets.partition.partition: offset
        for each in gaps
        if (offset := each.landed.last_offset) is not None
    }
    topic = gaps[0].planned.offsets.partition.topic if gaps else ""
    records = services.broker.records_at(topic, last) if last else {}
    anchors: dict[int, TailAnchor] = {}
    for partition, offset in last.items():
        record = records.get(partition)
        if record:
            anchors[partition] = TailAnchor(offset, record.leader_epoch, record.content_hash)
        else:
            landed = services.store.landed_record_hash(
                staging.data, _file_with(found, partition, offset), partition, offset
            )
            anchors[partition] = TailAnchor(offset, None, landed)
    return anchors


def _file_with(found: ReadBack, partition: int, offset: int) -> str:
    """The file whose slice ends with this very offset: the range's last row."""
    return next(
        file.name
        for file in found.files
        for each in file.slices
        if each.partition == partition and each.last_offset == offset
    )
