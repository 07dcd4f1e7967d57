"""Repair: what can be done about the open findings, as a plan like any other.

Offsets are landed again by the steps of every batch: claimed, landed, verified, committed and
published. Until its commit a repair changes nothing; whoever is killed on the way is followed by
the next run, which adopts the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan, CommittedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import BatchState, FindingState
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.planning.due import MOST_BATCHES
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import log_changes
from tallystick.domain.repair.deciding import (
    BESIDE_STRAY,
    LATER,
    NOT_MOVED,
    NOT_MOVED_BACK,
    NOT_READ,
    NOT_WRITTEN,
    plan_repair,
)
from tallystick.domain.repair.plan import (
    LandAgain,
    NotMended,
    NumberedFinding,
    PutAside,
    ReadAgain,
    RepairFacts,
    RepairPlan,
)
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.errors import FileMissing, IngestionError, RepairRefused, SourceRefused
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import CommittedBatch, Ledger
from tallystick.workflows.asking.sweeping import sweep
from tallystick.workflows.committing.publishing import finish
from tallystick.workflows.landing.run import BatchOutcome, carry_out, noted
from tallystick.workflows.place import at
from tallystick.workflows.planning.observing import observe
from tallystick.workflows.planning.plan import adoptable
from tallystick.workflows.repairing.left_undone import left_undone
from tallystick.workflows.repairing.settling import (
    chosen_findings,
    recorded_losses,
    roots_of,
    settle,
)
from tallystick.workflows.repairing.shared_offsets import with_all_holders
from tallystick.workflows.services import Services
from tallystick.workflows.stored.moved_files import look_for
from tallystick.workflows.stored.published_batches import why_behind
from tallystick.workflows.stored.stray_rows import stray_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BegunRepair:
    """A repair whose ranges are claimed: its batches are to be carried out, then it is settled."""

    plan: RepairPlan
    batches: Sequence[BatchPlan]
    """New ones, and unfinished ones that were taken over."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What the ledger holds, and what the log is now: its old offsets may be other records."""

    accounts: Accounts
    seen: Observation
    changes: LogChanges
    """What the next plan will record of it; a repair decides by it and leaves it to that plan."""

    @classmethod
    def now(cls, services: Services, accounts: Accounts) -> _Look:
        seen = observe(services, accounts)
        return cls(accounts, seen, log_changes(accounts, seen))


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did."""

    feed: str
    topic: str
    is_dry_run: bool
    plan: RepairPlan
    batches: Sequence[BatchOutcome]
    put_aside: Sequence[PutAside]
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    troubles: Sequence[IngestionError] = ()

    @property
    def errors(self) -> tuple[IngestionError, ...]:
        """Everything that could not be done."""
        return (*(each.error for each in self.batches if each.error), *self.troubles)

    @property
    def has_left_batches(self) -> bool:
        """True when another owner has a batch that this repair was to carry out."""
        return any(each.left_to for each in self.batches)

    @property
    def not_mended(self) -> tuple[NotMended, ...]:
        """Findings that stand as they stood; what was done for others has ended some of the plan's.

        So do those for which a file was to be moved or written, or an offset to be read, and was
        not.
        """
        left = list(self.plan.not_mended)
        if not self.is_dry_run:
            left += [NotMended(each.finding_id, BESIDE_STRAY) for each in self.plan.end_with_strays]
            left += [NotMended(each.finding_id, NOT_WRITTEN) for each in self.plan.write_manifests]
            left += [NotMended(each.finding_id, NOT_MOVED) for each in self.plan.put_aside]
            left += [NotMended(each.finding_id, NOT_MOVED_BACK) for each in self.plan.move_back]
            left += [NotMended(each.finding_id, NOT_READ) for each in self.plan.read_again]
        return tuple(each for each in left if each.finding_id not in self.closed)


def dry_repair(services: Services, finding_ids: Collection[int]) -> RepairReport:
    """What a repair would do now; changes nothing.

    Raises RepairRefused for an unknown number, and LedgerBehind where the repair would.
    """
    behind = why_behind(services, is_dry_run=True)
    with at(services, "repair"):
        look = _Look.now(services, services.ledger.accounts(services.feed_name))
        plan = _plan(services, services.ledger, finding_ids, look, is_behind=behind is not None)
    if behind and (plan.land_again or plan.new_generations or plan.read_again):
        raise behind
    return RepairReport(services.feed_name, services.topic, True, plan, (), (), {})


def repair_feed(services: Services, finding_ids: Collection[int], owner: Owner) -> RepairReport:
    """Mend what can be mended of these findings, all open ones when none is named.

    Raises RepairRefused, ClaimConflict, AnotherCluster, BrokerUnavailable or LedgerUnavailable
    before anything is changed; LedgerBehind too, if there is anything to land. Trouble of single
    batches is in the report.
    """
    troubles: list[IngestionError] = []
    with noted(troubles):
        finish(services)
    begun = begin_repair(services, finding_ids, owner)
    outcomes = [carry_out(services, each.batch_id, owner) for each in begun.batches]
    if troubles and outcomes:
        # A batch whose files are all replaced by now needs its data no more.
        troubles.clear()
        with noted(troubles):
            finish(services)
    with noted(troubles):
        sweep(services)
    settled = settle(services, finding_ids)
    plan = _with_losses(services, begun)
    undone = left_undone(services, plan, outcomes)
    return RepairReport(
        services.feed_name,
        services.topic,
        False,
        replace(plan, not_mended=(*plan.not_mended, *undone)),
        outcomes,
        settled.put_aside,
        settled.closed,
        (*troubles, *settled.troubles),
    )


def begin_repair(services: Services, finding_ids: Collection[int], owner: Owner) -> BegunRepair:
    """Decide, open generations on the operator's word, claim: in one transaction of the ledger."""
    behind = why_behind(services, is_dry_run=False)
    with (
        at(services, "repair"),
        services.ledger.planning(services.feed_name, services.topic) as session,
    ):
        look = _Look.now(services, session.accounts())
        # The session has the ledger's connection; the rest is read beside it.
        with closing(services.second_ledger()) as ledger:
            plan = _plan(services, ledger, finding_ids, look, is_behind=behind is not None)
        batches = [
            *(_batch(services, each) for each in plan.land_again),
            *(_batch_of_one(services, each) for each in plan.read_again),
        ]
        adopted = _left_behind(look, owner, only_repairs=not plan.finish)
        del adopted[MOST_BATCHES - len(batches) :]
        if behind and plan.put_aside:
            # Only what keeps the ledger behind is moved while it is: the others wait for that.
            adopted = []
        if behind and (batches or adopted or plan.new_generations):
            raise behind
        is_changed = bool(plan.new_generations or plan.read_again)
        session.apply(plan.changes, look.seen.snapshot if is_changed else None)
        if not batches and not adopted:
            tell(services.feed_name, plan)
            return BegunRepair(plan, ())
        frozen = session.freeze(None, batches, adopted, owner=owner, lease=services.lease)
    tell(services.feed_name, plan)
    return BegunRepair(plan, [each.plan for each in (*frozen.batches, *frozen.adopted)])


def _left_behind(look: _Look, owner: Owner, *, only_repairs: bool) -> list[BatchId]:
    """Batches of runs that died; those of earlier repairs are taken over by every repair.

    What the log has not any more as it was claimed is left to the next run: its plan says why.
    """
    repairs = look.accounts.open_repairs
    changed = {each.batch_id for each in look.changes.cuts}
    return [
        each
        for each in adoptable(look.accounts, owner)
        if each not in changed and (each in repairs or not only_repairs)
    ]


def _with_losses(services: Services, begun: BegunRepair) -> RepairPlan:
    """The plan, and what its batches could not land again: a finding since their commit."""
    batches = {each.batch_id for each in begun.batches}
    lost = [
        NotMended(each.finding_id, str(each.finding))
        for each in recorded_losses(services)
        if each.finding.evidence.get("repair") in batches
    ]
    for each in lost:
        log.warning("Finding %d is left: %s", each.finding_id, each.reason)
    return replace(begun.plan, not_mended=(*begun.plan.not_mended, *lost))


def _plan(
    services: Services,
    ledger: Ledger,
    finding_ids: Collection[int],
    look: _Look,
    *,
    is_behind: bool,
) -> RepairPlan:
    _require_known(services, ledger, finding_ids)
    chosen, named, later = _named(services, ledger, chosen_findings(services, ledger, finding_ids))
    stopping = {each.generation_id: each.reason for each in look.changes.stopped}
    batches = {
        batch.plan.batch_id: batch
        for batch_id in sorted(named)
        if (batch := ledger.committed_batch(batch_id))
    }
    replaced = ledger.replacements(services.feed_name)
    if any(_tells_of_overlaps(each.finding) for each in ledger.findings(services.feed_name)):
        batches = with_all_holders(ledger, services.feed_name, batches, replaced)
    # Asked before the target is listed: data move from staging to the target, never back.
    in_staging = {each for batch in batches.values() for each in _waiting(services, batch)}
    missing = {each for batch in batches.values() for each in _missing(services, batch.manifest)}
    beside = replace(services, ledger=ledger)
    looked_for = look_for(beside, batches.values(), missing - in_staging - replaced.keys())
    facts = RepairFacts(
        accounts=look.accounts,
        snapshot=look.seen.snapshot,
        manifests={batch_id: each.manifest for batch_id, each in batches.items()},
        missing=missing,
        in_staging=in_staging,
        replaced=replaced,
        stopping={
            partition: stopping[account.generation_id]
            for partition, account in look.accounts.generations.items()
            if account.generation_id in stopping
        },
        cut_at=_cuts(services, look),
        roots=roots_of(services, ledger),
        is_operators_word=bool(finding_ids),
        is_ledger_behind=is_behind,
        elsewhere=looked_for.elsewhere,
        perhaps_at=looked_for.perhaps_at,
        sole_copies=_sole_copies(beside, chosen),
    )
    plan = plan_repair(
        [NumberedFinding(each.finding_id, each.finding) for each in chosen],
        facts,
        most_partitions=services.feed.plan.max_partitions_per_batch,
        most_batches=MOST_BATCHES,
    )
    left = [NotMended(each.finding_id, LATER) for each in later]
    return replace(plan, not_mended=(*plan.not_mended, *left))


def _sole_copies(services: Services, chosen: Sequence[StoredFinding]) -> dict[str, str]:
    """Strays among what was found that may be the only copy of their rows, each with the reason."""
    paths = [
        str(each.finding.evidence["path"])
        for each in chosen
        if each.finding.code is FindingCode.STRAY_FILE and "path" in each.finding.evidence
    ]
    strays = [stray_at(services, each) for each in paths]
    return {each.path: each.words for each in strays if each.may_be_only_copy}


def _named(
    services: Services, ledger: Ledger, chosen: Sequence[StoredFinding]
) -> tuple[list[StoredFinding], set[BatchId], list[StoredFinding]]:
    """The findings that are for this repair, the batches they are about, and those for the next.

    Their manifests are all in memory at once.
    """
    now: list[StoredFinding] = []
    named: set[BatchId] = set()
    later: list[StoredFinding] = []
    for each in chosen:
        about = {*_batches_of(services, ledger, each)}
        if named and about - named and len(named | about) > MOST_BATCHES:
            later.append(each)
        else:
            now.append(each)
            named |= about
    return now, named, later


def _require_known(services: Services, ledger: Ledger, finding_ids: Collection[int]) -> None:
    for number in sorted(set(finding_ids)):
        known = ledger.finding(number)
        if known is None or known.finding.feed != services.feed_name:
            raise RepairRefused(f"feed {services.feed_name} has no finding {number}.")
        if known.state not in (FindingState.OPEN, FindingState.WAIVED):
            ended = f": {known.closed_by}" if known.closed_by else "."
            raise RepairRefused(f"finding {number} is {known.state.value} already{ended}")


def _batches_of(services: Services, ledger: Ledger, stored: StoredFinding) -> Sequence[BatchId]:
    """The committed batches that a finding is about: named, or asked for by its offsets."""
    found = stored.finding
    named = found.evidence.get("batch")
    if isinstance(named, str):
        return [BatchId(named)]
    interval = (found.generation, found.partition, found.from_offset, found.until_offset)
    # Rows that a stray holds too end with the stray: no committed file is touched for them.
    if "path" in found.evidence:
        return ()
    if found.code not in (FindingCode.ABORTED_LANDED, FindingCode.LANDED_TWICE):
        return ()
    if any(each is None for each in interval):
        return ()
    generation, partition, from_offset, until_offset = (int(each or 0) for each in interval)
    return ledger.batches_holding(
        services.feed_name, generation, partition, from_offset, until_offset
    )


def _tells_of_overlaps(found: Finding) -> bool:
    """True when the ledger itself may have offsets in two batches, which its schema refuses."""
    return found.code is FindingCode.LEDGER_OVERLAP or (
        found.code is FindingCode.LANDED_TWICE and "path" not in found.evidence
    )


def _waiting(services: Services, batch: CommittedBatch) -> Iterator[CommittedFile]:
    """The batch's files that lie in staging, and will be shown to readers by a rename."""
    if batch.state is not BatchState.PUBLISHED:
        there = _names_in(services, StagingPath.of(batch.plan, batch.attempt_id).data)
        yield from (each for each in _files_of(batch.manifest) if each.name in there)


def _missing(services: Services, manifest: Manifest) -> Iterator[CommittedFile]:
    """The batch's files that are not in its directory now."""
    there = _names_in(services, str(BatchPath.of(manifest.plan)))
    yield from (each for each in _files_of(manifest) if each.name not in there)


def _files_of(manifest: Manifest) -> Iterator[CommittedFile]:
    return (CommittedFile(manifest.plan.batch_id, each.name) for each in manifest.files)


def _names_in(services: Services, directory: str) -> set[str]:
    try:
        return {each.name for each in services.store.entries(directory)}
    except FileMissing:
        return set()


def _cuts(services: Services, look: _Look) -> dict[int, int]:
    """From where the logs of stopped partitions are due again, as the leader's epochs say it.

    Never from beyond the frontier: what was not landed behind a gap is due, wherever the cut is.
    """
    found, epochs = {}, {}
    for partition, account in look.accounts.generations.items():
        is_asked = partition in look.seen.snapshot.partitions
        if account.state is not GenerationState.STOPPED or not is_asked:
            continue
        if account.read_until is None and account.anchor is None:
            found[partition] = account.frontier
            continue
        anchored = account.anchor.leader_epoch if account.anchor else None
        epoch = account.seen_epoch if anchored is None else anchored
        if epoch is not None:
            epochs[partition] = epoch
    for partition, end in services.broker.epoch_ends(services.topic, epochs).items():
        account = look.accounts.generations[partition]
        is_known = end.until_offset > end.log_start_offset
        if is_known and not _is_contradicted(services, account, end.until_offset):
            found[partition] = min(end.until_offset, account.frontier)
    return found


def _is_contradicted(services: Services, account: GenerationAccount, end: int) -> bool:
    """True where the epochs say the last landed record is in the log, and none can read it so."""
    anchor, partition = account.anchor, account.partition.partition
    if anchor is None or end <= anchor.offset:
        return False
    try:
        found = services.broker.records_at(services.topic, {partition: anchor.offset})
    except SourceRefused:
        return True
    return partition in found and found[partition].content_hash != anchor.content_hash


def _batch(services: Services, draft: LandAgain) -> BatchPlan:
    return BatchPlan(
        batch_id=BatchId(services.new_id()),
        feed=services.feed_name,
        root=draft.old.root,
        topic=draft.old.topic,
        cluster_id=draft.old.cluster_id,
        topic_id=draft.old.topic_id,
        ordinal=draft.old.ordinal,
        label=draft.old.label,
        window=None,
        ranges=draft.ranges,
        replaces=draft.replaces,
    )


def _batch_of_one(services: Services, draft: ReadAgain) -> BatchPlan:
    return BatchPlan(
        batch_id=BatchId(services.new_id()),
        feed=services.feed_name,
        root=services.root,
        topic=services.topic,
        cluster_id=draft.account.cluster_id,
        topic_id=draft.account.topic_id,
        ordinal=draft.account.ordinal,
        label=services.clock.now(),
        window=None,
        ranges=(draft.planned,),
    )


def tell(feed: str, plan: RepairPlan) -> None:
    """The plan in plain words, for the task's log."""
    for again in plan.land_again:
        log.info(
            "Feed %s: %s of batch %s: %s will be landed again for findings %s.",
            feed,
            ", ".join(each.name for each in again.replaces),
            again.old.batch_id,
            "; ".join(str(each.offsets) for each in again.ranges[:20]) or "nothing",
            sorted(set(again.finding_ids)),
        )
        if again.gone:
            log.warning(
                "Kafka no longer has %s, and the files are gone: these rows are lost.",
                "; ".join(str(each) for each in again.gone[:20]),
            )
    for words in _small_steps(plan):
        log.info("%s", words)
    for opened in plan.new_generations:
        log.warning(
            "%s: generation %d is opened at offset %d, on the operator's word.",
            opened.account.partition,
            opened.account.ordinal + 1,
            opened.first_offset,
        )
        if opened.expired:
            log.warning("%s has expired: the next plan records it as lost.", opened.expired)
    for left in plan.not_mended:
        log.warning("Finding %d is left: %s", left.finding_id, left.reason)


def _small_steps(plan: RepairPlan) -> Iterator[str]:
    """What is done to single files and offsets."""
    for stray in plan.put_aside:
        yield f"{stray.path} will be moved to {stray.quarantine}."
    for moved in plan.move_back:
        yield f"{moved.path} will be moved back to {moved.target}."
    for twice in plan.end_with_strays:
        yield f"Finding {twice.finding_id} ends with finding {twice.stray_id}."
    for gone in plan.write_manifests:
        yield f"{gone.path} will be written anew, for finding {gone.finding_id}."
    for each in plan.read_again:
        yield f"{each.planned.offsets} is tried again, for finding {each.finding_id}."
