"""Repair: what can be done about the open findings, as a plan like any other.

Offsets are landed again by the steps of every batch: claimed, landed, verified, committed and
published. Until its commit a repair changes nothing; whoever is killed on the way is followed by
the next run, which adopts the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.repair.facts import NotMended
from tallystick.domain.repair.landing_again import LandAgain
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.domain.repair.reading_again import ReadAgain
from tallystick.errors import IngestionError
from tallystick.workflows.committing.publishing import finish
from tallystick.workflows.landing.run import BatchOutcome, carry_out_all, noted
from tallystick.workflows.place import at
from tallystick.workflows.planning.comparing_file import told_edits
from tallystick.workflows.planning.looking import Looking, facts_now, under_lock
from tallystick.workflows.repairing.closing import settle
from tallystick.workflows.repairing.gathering import decided_repair
from tallystick.workflows.repairing.left_undone import left_undone
from tallystick.workflows.repairing.plan_lines import tell
from tallystick.workflows.services import Services


@dataclass(frozen=True, slots=True)
class BegunRepair:
    """A repair whose ranges are claimed: its batches are carried out, then its findings closed."""

    plan: RepairPlan
    batches: Sequence[BatchPlan]
    """New ones, and unfinished ones that were taken over."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair did."""

    feed: str
    topic: str
    is_dry_run: bool
    plan: RepairPlan
    batches: Sequence[BatchOutcome]
    quarantined: Sequence[Quarantine]
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    failures: Sequence[IngestionError] = ()
    evidence: Sequence[str] = ()
    """Of a dry run: the digests of the findings that it was about."""

    @property
    def errors(self) -> tuple[IngestionError, ...]:
        """Everything that could not be done."""
        return (*(each.error for each in self.batches if each.error), *self.failures)

    @property
    def has_left_batches(self) -> bool:
        """True when another owner has a batch that this repair was to carry out."""
        return any(each.left_to for each in self.batches)

    @property
    def not_mended(self) -> tuple[NotMended, ...]:
        """Findings that stand as they stood, each with the reason.

        Some of those that the plan left have ended by what was done for others.
        """
        undone = () if self.is_dry_run else self.plan.left_undone()
        left = (*self.plan.not_mended, *undone)
        return tuple(each for each in left if each.finding_id not in self.closed)


def dry_repair(
    services: Services, finding_ids: Collection[int], *, digests: Collection[str] = ()
) -> RepairReport:
    """What a repair would do now; changes nothing.

    Raises RepairRefused for an unknown number; EvidenceChanged and LedgerBehind where the repair
    would.
    """
    told_edits(services, "repair")
    with at(services, "repair"):
        known = facts_now(services)
        decided = decided_repair(known, services.ledger, finding_ids, None, digests=digests)
    plan, behind = decided.plan, known.behind
    return RepairReport(
        services.feed_name,
        services.topic,
        True,
        plan,
        (),
        (),
        {},
        # A repair of all findings puts this one on record first, and then leaves it.
        failures=(behind,) if behind and not finding_ids and not _is_on_record(services) else (),
        evidence=decided.evidence,
    )


def _is_on_record(services: Services) -> bool:
    stored = services.ledger.findings(services.feed_name)
    return any(each.finding.code is FindingCode.LEDGER_BEHIND for each in stored)


def repair_feed(
    services: Services,
    finding_ids: Collection[int],
    owner: Owner,
    *,
    digests: Collection[str] = (),
) -> RepairReport:
    """Mend what can be mended of these findings, all open ones when none is named.

    `digests` are of the evidence that was read: where any is given, each finding has one of them.

    Raises RepairRefused, EvidenceChanged, ClaimConflict, AnotherCluster, BrokerUnavailable or
    LedgerUnavailable before anything is changed; LedgerBehind too, if there is anything to land.
    Trouble of single batches is in the report.
    """
    # What can't be published may be what is to be repaired; `settle` tries again, and tells.
    with noted([]):
        finish(services, owner)
    begun = begin_repair(services, finding_ids, owner, digests)
    outcomes = carry_out_all(services, begun.batches, owner)
    done = settle(services, finding_ids, begun.plan.in_storage, owner)
    undone = left_undone(services, begun.plan, begun.batches, outcomes)
    return RepairReport(
        services.feed_name,
        services.topic,
        False,
        replace(begun.plan, not_mended=(*begun.plan.not_mended, *undone)),
        outcomes,
        done.quarantined,
        done.closed,
        done.failures,
    )


def begin_repair(
    services: Services,
    finding_ids: Collection[int],
    owner: Owner,
    digests: Collection[str] = (),
) -> BegunRepair:
    """Decide, open generations on the operator's word, claim: in one transaction of the ledger."""
    told_edits(services, "repair")

    def perform(looking: Looking) -> BegunRepair | None:
        # The session has the ledger's connection; the rest is read beside it.
        with closing(services.second_ledger()) as ledger:
            plan = decided_repair(looking, ledger, finding_ids, owner, digests=digests).plan
        if looking.record_look(plan.changes) is None:
            return None
        begun: list[BatchPlan] = []
        if plan.claims:
            batches = [
                *(_batch(services, each) for each in plan.land_again),
                *(_batch_of_one(services, each) for each in plan.read_again),
            ]
            frozen = looking.session.freeze(
                None, batches, plan.adopted, owner=owner, lease=services.lease
            )
            begun = [each.plan for each in (*frozen.batches, *frozen.adopted)]
        return BegunRepair(plan, begun)

    with at(services, "repair"):
        begun = under_lock(services, perform)
    tell(services.feed_name, begun.plan)
    return begun


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
