"""What reconcile reports: the findings, and each partition as the three witnesses show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.outlook import time_to_loss
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, Level
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.proofs import LandedCounts
from tallystick.workflows.comparing.second_reading import SecondReadReport
from tallystick.workflows.planning.looking import Look
from tallystick.workflows.reconciling.scrubbing import ScrubReport


@dataclass(frozen=True, slots=True)
class PartitionAccount:
    """One generation of one partition, as the three witnesses show it."""

    account: GenerationAccount
    log_start_offset: int | None
    """None when the broker was not heard, or has another log now."""
    readable_until: int | None
    record_count: int
    holes: Mapping[HoleClass, int]
    time_to_loss: timedelta | None
    """None where nothing waits, or nobody knows."""
    lost_count: int
    """Offsets recorded as lost: rows + holes + these make the span up to the frontier."""
    verdict: Verdict
    """The worst of the partition's findings, those of its earlier generations included; PROVEN_OK
    up to the frontier when there is none, and UNKNOWN when nothing is below it while records wait.
    """

    @property
    def lag(self) -> int | None:
        """Readable offsets that are not landed yet; None when the broker was not heard."""
        if self.readable_until is None:
            return None
        return max(0, self.readable_until - self.account.frontier)


@dataclass(frozen=True, slots=True)
class ReconcileReport:
    """What a feed's three witnesses say at one instant."""

    feed: str
    topic: str
    taken_at: datetime
    deepest: Level
    """The level that was asked for."""
    levels: Sequence[Level]
    findings: Sequence[Finding]
    partitions: Sequence[PartitionAccount]
    silent: Sequence[Level]
    """Where a witness as a whole did not answer."""
    is_complete: bool
    """False when a witness did not answer, if of one file or partition only."""
    scrub: ScrubReport | None = None
    """What was read in full; None where that was not asked for."""
    second_read: SecondReadReport | None = None
    """What a second reader compared; None where that was not asked for, or could not be."""
    warnings: Sequence[str] = ()
    """What the feed's file says otherwise than the ledger."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all partitions and findings; UNKNOWN when nothing was ever landed."""
        verdicts = [each.verdict for each in self.findings]
        verdicts += [each.verdict for each in self.partitions]
        return Verdict.worst_of(verdicts) if verdicts else Verdict.UNKNOWN

    @property
    def has_failed(self) -> bool:
        """True when a finding is neither harmless nor accepted, or nothing of a partition is proven
        while records wait there.
        """
        found = any(each.verdict in FAILING_VERDICTS for each in self.findings)
        return found or any(each.verdict in FAILING_VERDICTS for each in self.partitions)


def partition_accounts(
    generations: Mapping[int, GenerationAccount],
    counts: Mapping[GenerationId, LandedCounts],
    look: Look | None,
    isolation: Isolation,
    findings: Sequence[Finding],
    *,
    now: datetime,
) -> list[PartitionAccount]:
    """Each partition's newest generation, in their order; without a look the broker was silent."""
    return [
        _partition(account, counts, look, isolation, findings, now)
        for _, account in sorted(generations.items())
    ]


def _partition(
    account: GenerationAccount,
    counts: Mapping[GenerationId, LandedCounts],
    look: Look | None,
    isolation: Isolation,
    findings: Sequence[Finding],
    now: datetime,
) -> PartitionAccount:
    bounds, left = None, None
    number = account.partition.partition
    if look and look.snapshot.topic_id == account.topic_id:
        bounds = look.snapshot.partitions.get(number)
        left = time_to_loss(look.snapshot, number, look.around, now=now).shortest
    mine = [each.verdict for each in findings if each.partition in (None, number)]
    readable = bounds.readable_until(isolation) if bounds else None
    # By windows what comes behind the newest one's end is not due yet.
    border = look.snapshot.border if look else None
    due = min(readable, border.ends.get(number, readable)) if readable and border else readable
    landed = counts.get(account.generation_id, LandedCounts())
    return PartitionAccount(
        account=account,
        log_start_offset=bounds.log_start_offset if bounds else None,
        readable_until=readable,
        record_count=landed.record_count,
        holes={kind: landed.holes.get(kind, 0) for kind in HoleClass}
        if landed.holes or landed.record_count
        else {},
        time_to_loss=left,
        lost_count=landed.lost_count,
        verdict=Verdict.worst_of([account.verdict_of_none(due), *mine]),
    )
