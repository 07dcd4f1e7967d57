"""What a ledger lacks, told from the manifests of published directories: decides what to enter.

1. A repair comes after every batch whose files it replaces.
2. Of two batches that hold an offset the first in this order is kept, and what the ledger has is
   before all. The other one is named, to the offset, and not entered.
3. A log is accounted for from the lowest offset of any of its manifests. What lies between them and
   is in none is left to the next plan: it is no loss before the broker was asked.
4. A repair waits for the batch that it repaired, as long as that one can be entered at all. Of two
   that replace the same file the ledger's is kept, or else the first.
5. What the ledger says itself is never contradicted: a loss on record, a log that is another one.
6. A proven batch in staging is entered when nothing else holds its offsets: if it was committed
   once, nobody can tell, and proven files are good for a commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tallystick.domain.batches.batch import BatchPlan, BatchStatus, CommittedFile, PlannedRange
from tallystick.domain.batches.coverage import Coverage
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, subtract, union_of
from tallystick.domain.planning.log_changes import OpenedGeneration
from tallystick.domain.rebuilding.plan import (
    LedgerFacts,
    LeftOut,
    Logs,
    PublishedBatch,
    RebuildPlan,
)
from tallystick.domain.rules.b2_landed_twice import left_out


def in_order(plans: Iterable[BatchPlan], bare: Collection[BatchId] = ()) -> list[BatchPlan]:
    """The batches by life of the topic and label, each after those that it replaces files of.

    `bare` ones have lost their manifest: what has one is before them. Batches that replace one
    another in a circle come last: the ledger refuses them.
    """
    waiting = sorted(
        plans,
        key=lambda each: (each.ordinal, each.batch_id in bare, each.label, each.batch_id),
    )
    there = {each.batch_id for each in waiting}
    ordered: list[BatchPlan] = []
    done: set[BatchId] = set()
    while waiting:
        ready = [
            each
            for each in waiting
            if all(old.batch_id in done or old.batch_id not in there for old in each.replaces)
        ]
        taken = {each.batch_id for each in ready or waiting}
        ordered += ready or waiting
        waiting = [each for each in waiting if each.batch_id not in taken]
        done |= taken
    return ordered


def rebuild_plan(
    facts: LedgerFacts,
    readable: Sequence[BatchPlan],
    proven: Sequence[PublishedBatch],
    staged: Sequence[PublishedBatch] = (),
    bare: Collection[BatchId] = (),
    refused: Mapping[BatchId, str] = MappingProxyType({}),
) -> RebuildPlan:
    """What to do about proven batches that the ledger has not committed.

    Those in staging come last: what readers see is before all. `bare` have lost their manifest.
    `refused` says of those in staging which may not be committed by now, and why.

    `readable` are all whose manifests could be read, proven or not: the feed was responsible from
    the lowest of their offsets on.
    """
    readable = [*readable, *(each.plan for each in staged)]
    plan = RebuildPlan(opened=_opened(facts.logs, readable))
    logs = _with_opened(facts.logs, plan.opened)
    unfinished = {each.plan.batch_id: each for each in facts.unfinished}
    coverage = Coverage(held=facts.held)
    committed, replaced = set(facts.committed), dict(facts.replaced)
    found = {each.plan.batch_id: each for each in (*staged, *proven)}
    there = {each.batch_id for each in readable}
    waiting = [each.plan for each in staged if found[each.plan.batch_id] is each]
    for batch in (*in_order((each.plan for each in proven), bare), *in_order(waiting)):
        batch_id = batch.batch_id
        reasons = [*_contradictions(facts, logs, batch), *_waiting(batch, there - committed)]
        if batch_id in unfinished:
            reasons += _other_claims(unfinished[batch_id].plan, batch)
        wanted = _repair_or_not(batch, committed)
        if wanted is None:
            reasons.append("it replaces files of batches of which the ledger has only some")
        elif wanted.is_repair:
            reasons += _taken(wanted, replaced)
        else:
            doubled = coverage.held(wanted)
            if not found[batch_id].staged_by:
                plan.findings += [left_out(batch, each.offsets, each.batch_id) for each in doubled]
            reasons += [f"{each.offsets} is in batch {each.batch_id} already" for each in doubled]
        if reasons or wanted is None:
            left = plan.left_staged if found[batch_id].staged_by else plan.left_out
            left.append(LeftOut(found[batch_id].directory, batch_id, tuple(reasons)))
            continue
        if found[batch_id].staged_by and batch_id in refused:
            directory = found[batch_id].directory
            plan.left_out.append(LeftOut(directory, batch_id, (refused[batch_id],)))
            continue
        coverage.add(wanted)
        committed.add(batch_id)
        replaced.update(dict.fromkeys(wanted.replaces, batch_id))
        steps = plan.finish if batch_id in unfinished else plan.enter
        steps.append(replace(found[batch_id], plan=wanted))
    plan.abandoned = list(_in_the_way(facts, plan))
    return plan


def committed_in(facts: LedgerFacts, plan: BatchPlan) -> list[OffsetRange]:
    """The offsets of the batch that the ledger has committed: accounted for, neither lost nor
    claimed.
    """
    claimed = [
        each.offsets
        for batch in facts.unfinished
        if batch.plan.ordinal == plan.ordinal and not batch.plan.is_repair
        for each in batch.plan.ranges
    ]
    found: list[OffsetRange] = []
    for planned in plan.ranges:
        account = facts.logs.get(_log(plan, planned))
        if account is None:
            continue
        lost = facts.lost.get(_log(plan, planned), ())
        prefix = planned.offsets.clipped(account.first_offset, account.frontier)
        beyond = (planned.offsets.intersection(each) for each in account.beyond)
        for settled in union_of(each for each in (prefix, *beyond) if each):
            found += subtract(settled, [*lost, *claimed])
    return found


def named(manifest: Manifest, wanted: BatchPlan, logs: Logs) -> Manifest:
    """The manifest as it is entered: with the ledger's generation ids, replacing what is wanted.

    KeyError for a log that the ledger lacks.
    """
    ranges = tuple(
        replace(
            each,
            planned=PlannedRange(
                logs[_log(manifest.plan, each.planned)].generation_id, each.planned.offsets
            ),
        )
        for each in manifest.ranges
    )
    plan = replace(
        manifest.plan, ranges=tuple(each.planned for each in ranges), replaces=wanted.replaces
    )
    return replace(manifest, plan=plan, ranges=ranges)


def _log(plan: BatchPlan, planned: PlannedRange) -> tuple[int, int]:
    return planned.offsets.partition.partition, plan.ordinal


def _opened(logs: Logs, plans: Sequence[BatchPlan]) -> list[OpenedGeneration]:
    """The logs that are in manifests and not in the ledger; never one older than it knows."""
    newest: dict[int, int] = {}
    for partition, ordinal in logs:
        newest[partition] = max(ordinal, newest.get(partition, 0))
    found: dict[tuple[int, int], OpenedGeneration] = {}
    for plan in in_order(plans):
        for planned in plan.ranges:
            key, first = _log(plan, planned), planned.offsets.from_offset
            if plan.ordinal <= newest.get(key[0], 0):
                continue
            log = found.get(key) or OpenedGeneration(
                planned.offsets.partition,
                plan.cluster_id,
                plan.topic_id,
                plan.ordinal,
                first,
                "the ledger was rebuilt from manifests",
            )
            found[key] = replace(log, first_offset=min(first, log.first_offset))
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0]))]


def _with_opened(logs: Logs, opened: Sequence[OpenedGeneration]) -> Logs:
    """The logs as the ledger will have them; one that is yet to be opened has a made-up id."""
    after = dict(logs)
    for number, each in enumerate(opened, start=1):
        after[each.partition.partition, each.ordinal] = each.account(GenerationId(-number))
    return after


def _contradictions(facts: LedgerFacts, logs: Logs, plan: BatchPlan) -> Iterator[str]:
    """Why the ledger can't hold these ranges, from what it says of their logs."""
    for planned in plan.ranges:
        offsets, account = planned.offsets, logs.get(_log(plan, planned))
        place = f"{offsets.partition}, generation {plan.ordinal}"
        if account is None:
            yield f"{place}: the ledger has a later life of this log, and not this one"
            continue
        if (account.cluster_id, account.topic_id) != (plan.cluster_id, plan.topic_id):
            yield (
                f"{place} is topic id {account.topic_id} of cluster {account.cluster_id} in the"
                f" ledger, {plan.topic_id} of cluster {plan.cluster_id} in the manifest"
            )
        if account.state is GenerationState.STOPPED:
            yield f"{place} is stopped in the ledger"
        if account.first_offset > offsets.from_offset:
            yield f"{place} is accounted for from offset {account.first_offset} on"
        for lost in facts.lost.get(_log(plan, planned), ()):
            shared = lost.intersection(offsets)
            if shared:
                yield f"{shared} is recorded as lost"


def _other_claims(claimed: BatchPlan, published: BatchPlan) -> Iterator[str]:
    """What differs between the ledger's unfinished batch and the published one of the same id."""
    theirs = {each.offsets for each in claimed.ranges}
    ours = {each.offsets for each in published.ranges}
    if theirs != ours or claimed.replaces != published.replaces:
        held = ", ".join(str(each) for each in sorted(theirs)) or "nothing"
        yield f"the ledger's batch of this id is unfinished and claims {held}"


def _waiting(plan: BatchPlan, left_out: Collection[BatchId]) -> Iterator[str]:
    """Why a repair can't be entered yet: on record without the batch whose files it replaces, it
    would keep that one, and what only that one holds, from ever being entered.
    """
    for each in sorted({old.batch_id for old in plan.replaces if old.batch_id in left_out}):
        yield f"it replaces files of batch {each}, which must be entered first"


def _taken(repair: BatchPlan, replaced: Mapping[CommittedFile, BatchId]) -> Iterator[str]:
    """Why a repair comes too late: another one has taken the place of one of its files."""
    for each in repair.replaces:
        if replaced.get(each, repair.batch_id) != repair.batch_id:
            yield f"batch {replaced[each]} has replaced {each.name} already"


def _repair_or_not(plan: BatchPlan, committed: Collection[BatchId]) -> BatchPlan | None:
    """The batch as it can be entered: where nothing of what it replaces is on record, its offsets
    are nobody's, and it is entered as a batch like any other. None if only some is.
    """
    old = {each.batch_id for each in plan.replaces}
    there = {each for each in old if each in committed}
    if there == old:
        return plan
    return None if there else replace(plan, replaces=())


def _in_the_way(facts: LedgerFacts, plan: RebuildPlan) -> Iterator[BatchStatus]:
    """Unfinished batches that claim what a published batch holds, or a log that is over."""
    entered = [*plan.finish, *plan.enter]
    ours = {each.plan.batch_id for each in entered}
    coverage = Coverage(each.plan for each in entered)
    later = {each.partition.partition: each.ordinal for each in plan.opened}
    for batch in facts.unfinished:
        partitions = {each.offsets.partition.partition for each in batch.plan.ranges}
        is_over = any(later.get(each, 0) > batch.plan.ordinal for each in partitions)
        if batch.plan.batch_id not in ours and (is_over or coverage.held(batch.plan)):
            yield batch
