"""Reconcile: ask the ledger, the broker and HDFS again, and say what is not as it should be.

Each witness is asked on its own. One that does not answer makes its part UNKNOWN, never OK, and the
others are heard all the same. Nothing is changed but the findings on record. A loss or a cut that
the next plan will record with the change itself is on record from here on as foreseen.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from tallystick.domain.attempts.asked import Unasked
from tallystick.domain.batches.states import FindingState, HoleClass, Verdict
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import Sameness
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.rules.a10_ledger_behind import perhaps_landed
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode, Level
from tallystick.domain.rules.proven_hole import HoleCount
from tallystick.domain.rules.rules import (
    LedgerWitness,
    benign_findings,
    broker_findings,
    ledger_findings,
)
from tallystick.domain.rules.u1_could_not_tell import could_not_tell
from tallystick.domain.rules.u1_unasked_attempts import unasked_attempts
from tallystick.domain.rules.u1_unread_storage import is_unlisted
from tallystick.domain.rules.waivers import as_accepted
from tallystick.errors import SourceError, StorageError
from tallystick.ports.evidence import SettledRanges
from tallystick.ports.proofs import CommittedDirectory, LandedCounts
from tallystick.ports.reports import LookBegun
from tallystick.workflows.asking.foreseeing import foresee_plan
from tallystick.workflows.committing.second_reading import (
    NOTHING_COMPARED,
    SecondReadReport,
    second_read,
)
from tallystick.workflows.place import at
from tallystick.workflows.planning.observing import observe
from tallystick.workflows.planning.outlooks import outlook, terms
from tallystick.workflows.reconciling.aborted_check import aborted_findings
from tallystick.workflows.reconciling.offsets_check import OffsetsLook, look_at_offsets
from tallystick.workflows.reconciling.overlap_check import doubled_findings
from tallystick.workflows.reconciling.payload_check import PayloadsLook, look_at_payloads
from tallystick.workflows.reconciling.scrubbing import ScrubReport, scrub
from tallystick.workflows.reconciling.storage_check import storage_findings
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# A run at work changes a partition's account every few seconds at most; a look takes less.
_MORE_LOOKS_BESIDE_A_RUN: Final = 3


@dataclass(frozen=True, slots=True)
class PartitionAccount:
    """One generation of one partition, as the three witnesses show it."""

    account: GenerationAccount
    log_start_offset: int | None
    """None when the broker was not heard, or has another log now."""
    readable_until: int | None
    record_count: int
    holes: Mapping[HoleClass, int]
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
    levels: Sequence[Level]
    findings: Sequence[Finding]
    benign: Sequence[Finding]
    """What is normal on such a topic, each with its reason: no trouble, and not on record."""
    partitions: Sequence[PartitionAccount]
    is_complete: bool
    """False when a witness did not answer."""
    scrub: ScrubReport | None = None
    """What was read in full; None where that was not asked for."""
    second_read: SecondReadReport | None = None
    """What a second reader compared; None where that was not asked for, or could not be."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all partitions and findings; UNKNOWN when nothing was ever landed."""
        verdicts = [each.verdict for each in self.findings]
        verdicts += [each.verdict for each in self.partitions]
        return worst(verdicts) if verdicts else Verdict.UNKNOWN

    @property
    def has_failed(self) -> bool:
        """True when a finding is neither harmless nor accepted, or nothing of a partition is proven
        while records wait there.
        """
        found = any(each.verdict in FAILING_VERDICTS for each in self.findings)
        return found or any(each.verdict in FAILING_VERDICTS for each in self.partitions)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict that weighs most."""
    return max(verdicts, key=lambda each: each.severity)


def reconcile(services: Services, level: Level = Level.L2) -> ReconcileReport:
    """The report; its findings are recorded in the ledger, and those that have ended are closed.

    `level` is the deepest that is looked at: L1 asks ledger and broker, L2 storage too, L3 reads
    what is due in full, L4 lets a second reader compare a sample with the broker. Raises
    LedgerUnavailable only: without the ledger there is nothing to compare with.
    """
    with at(services, "reconcile"):
        report = _compared(services, level)
    _tell(report)
    return report


def _compared(services: Services, level: Level) -> ReconcileReport:
    feed, begun_at = services.feed_name, services.ledger.clock()
    taken_at = min(services.clock.now(), begun_at)
    accounts = services.ledger.accounts(feed)
    directories = services.ledger.directories(feed)
    silent: list[Finding] = []
    look: _Look | None = None
    try:
        look = _look_at_broker(services, accounts, directories)
    except SourceError as error:
        silent.append(_unheard(services, "the broker", error, taken_at))
    else:
        accounts = look.accounts
    unsound = services.ledger.unsound(feed)
    found = [
        *_ledger_findings(services, accounts, unsound),
        *(look.standing if look else ()),
    ]
    has_listed, rows = False, OffsetsLook()
    if level >= Level.L2:
        stored: list[Finding] = []
        try:
            stored += storage_findings(services, directories)
            stored += doubled_findings(services, unsound, directories)
            rows = look_at_offsets(services, {each.evidence.get("batch") for each in stored})
        except StorageError as error:
            silent.append(_unheard(services, "HDFS", error, taken_at))
        else:
            has_listed = not any(is_unlisted(each) for each in stored)
            silent += rows.unheard
        # What was found before storage fell silent is told all the same.
        found += [*stored, *rows.findings]
    recorded = () if has_listed else (each.finding for each in services.ledger.findings(feed))
    if any(each.code is FindingCode.LEDGER_BEHIND for each in (*found, *recorded)):
        found = perhaps_landed(found)
        look = look and replace(look, foreseen=perhaps_landed(look.foreseen))
    found = _once([*found, *(look.foreseen if look else ())])
    services.ledger.record_findings(feed, found)
    read: Mapping[BatchId, bool] = {}
    scrubbed: ScrubReport | None = None
    payloads = PayloadsLook(Payloads.NOT_COMPARED)
    if level >= Level.L3:
        scrubbed = scrub(services)
        payloads = look_at_payloads(services)
        services.ledger.record_findings(feed, payloads.findings)
        found = _once([*found, *scrubbed.findings, *payloads.findings])
        silent += [*scrubbed.unheard, *payloads.unheard]
        read = scrubbed.well
    compared = _second_read(services, look) if level >= Level.L4 else NOTHING_COMPARED
    found = _once([*found, *compared.findings])
    silent += compared.unheard
    if look:
        services.ledger.record_look(
            feed,
            look.seen.snapshot,
            _doubt(look, silent),
            begun=look.begun,
            unchanged=look.unchanged,
        )
    heard = Heard(
        taken_at,
        broker=look.seen.snapshot if look else None,
        storage=has_listed,
        read_in_full=read,
        offsets_read=rows.read,
        equal_again=compared.equal_again,
        replaced=services.ledger.replacements(feed),
        payloads=payloads.said,
        lost=services.ledger.lost(feed),
        not_told=look.not_told if look else (),
        unasked=look.unasked if look else (),
    )
    is_listed_in_part = any(each.rule.is_silence for each in found)
    found = _settled(services, accounts, found, heard, begun_at)
    counts = services.ledger.landed_counts(feed)
    findings = (*found, *silent)
    return ReconcileReport(
        feed=feed,
        topic=services.topic,
        taken_at=taken_at,
        levels=tuple(
            each for each in Level if each <= level and (each < Level.L4 or compared.has_looked)
        ),
        findings=findings,
        benign=_benign(services, accounts, counts, look),
        partitions=_partitions(services, accounts, counts, look.seen if look else None, findings),
        is_complete=not silent and not is_listed_in_part,
        scrub=scrubbed,
        second_read=compared if compared.has_looked else None,
    )


def _second_read(services: Services, look: _Look | None) -> SecondReadReport:
    """What a second reader says, from the log starts of this look."""
    if look is None:
        return NOTHING_COMPARED
    return second_read(services, look.accounts, look.seen.snapshot)


def _unheard(
    services: Services, what: str, error: SourceError | StorageError, seen_at: datetime
) -> Finding:
    return could_not_tell(
        services.feed_name,
        services.topic,
        what=what,
        reason=error.describe(),
        seen_at=seen_at,
        remedy="" if error.retry else error.next_step,
    )


def _doubt(look: _Look, silent: Sequence[Finding]) -> str | None:
    """Why nothing is proven to be complete up to the look: the ledger alone can't say it later."""
    if silent:
        return f"the look proves nothing, for {silent[0].cause}"
    if look.unrecorded:
        found = look.unrecorded
        return (
            f"the look proves nothing, for it showed {found.code.value} {found.verdict.value} of"
            f" partition {found.partition}, and no plan has recorded that yet."
        )
    return None


def _settled(
    services: Services,
    accounts: Accounts,
    found: Sequence[Finding],
    heard: Heard,
    begun_at: datetime,
) -> list[Finding]:
    """The findings with accepted ones as WAIVED, after what this look has ended is closed.

    What stands on record and was not looked for this time is told too: it is not OK by that. What
    somebody else has found since this look began, by the ledger's clock, it can't end: it may have
    asked before that came about.
    """
    ledger, feed = services.ledger, services.feed_name
    older = {
        each.finding_id: each.finding
        for each in ledger.findings(feed)
        if each.last_confirmed_at < begun_at
    }
    ended = ended_findings(older, found, heard, accounts.generations)
    ledger.close_findings(feed, ended, confirmed_before=begun_at)
    standing = ledger.findings(feed)
    for number in sorted(ended.keys() - {each.finding_id for each in standing}):
        log.info("Finding %d, %s, is closed: %s", number, older[number].code.value, ended[number])
    waived = {each.finding.key for each in standing if each.state is FindingState.WAIVED}
    left = [each.finding for each in standing]
    return _once(as_accepted((*found, *left), waived))


def _benign(
    services: Services,
    accounts: Accounts,
    counts: Mapping[GenerationId, LandedCounts],
    look: _Look | None,
) -> tuple[Finding, ...]:
    """What is normal here, each with its reason."""
    spans = [
        HoleCount(account.ordinal, partition, kind, span.count, span.from_offset, span.until_offset)
        for partition, account in sorted(accounts.generations.items())
        for kind, span in counts.get(account.generation_id, LandedCounts()).holes.items()
    ]
    snapshot = look.seen.snapshot if look else None
    return benign_findings(
        services.feed_name, services.topic, spans, accounts.generations, snapshot
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at the broker, beside the accounts that it was compared with."""

    begun: LookBegun
    accounts: Accounts
    seen: Observation
    foreseen: Sequence[Finding]
    """What the next plan will find, and record with the change itself."""
    unasked: Sequence[Unasked]
    """The directories of attempts that could not be asked."""
    standing: Sequence[Finding]
    not_told: Collection[int]
    """Partitions of which the broker did not tell with what their unread part begins."""

    @property
    def unrecorded(self) -> Finding | None:
        """A change of the log that no plan has recorded yet, the worst one; None without one."""
        return max(self.foreseen, key=lambda each: each.verdict.severity, default=None)

    @property
    def unchanged(self) -> list[GenerationAccount]:
        """The generations whose logs are the ones that were seen before."""
        known, logs = self.accounts.generations, self.seen.logs
        return [known[each] for each, check in logs.items() if check.sameness is Sameness.SAME]

    def is_overtaken(self, now: Accounts) -> bool:
        """True when a finding is about a log that a run has worked on meanwhile."""
        before, after = self.accounts.generations, now.generations
        places = {each.partition for each in (*self.foreseen, *self.standing)}
        return any(before.get(each) != after.get(each) for each in places if each is not None)


def _look_at_broker(
    services: Services, accounts: Accounts, directories: Sequence[CommittedDirectory]
) -> _Look:
    """A look whose findings hold for the accounts as they still are.

    The ledger is read before the broker. If a run lands between the two, and retention takes the
    landed records, what is safe looks lost: so where something is found, the ledger is read again.
    """
    look = _one_look(services, accounts, directories)
    for _ in range(_MORE_LOOKS_BESIDE_A_RUN):
        if not (look.foreseen or look.standing):
            break
        now = services.ledger.accounts(services.feed_name)
        if not look.is_overtaken(now):
            break
        look = _one_look(services, now, directories)
    return look


def _one_look(
    services: Services, accounts: Accounts, directories: Sequence[CommittedDirectory]
) -> _Look:
    feed, known, begun = services.feed_name, accounts.generations, services.ledger.begin_look()
    seen = observe(services, accounts)
    around = outlook(services, known, seen.snapshot)
    to_come = foresee_plan(services, accounts, seen)
    return _Look(
        begun,
        accounts,
        seen,
        foreseen=to_come.findings,
        unasked=to_come.unasked,
        standing=(
            *unasked_attempts(feed, services.topic, to_come.unasked),
            *broker_findings(feed, known, seen, around, terms(services)),
            *aborted_findings(services, directories, accounts, seen),
        ),
        not_told=around.not_told,
    )


def _ledger_findings(
    services: Services, accounts: Accounts, unsound: Sequence[SettledRanges]
) -> tuple[Finding, ...]:
    feed, ledger = services.feed_name, services.ledger
    facts = LedgerWitness(
        recorded=[each.finding for each in ledger.findings(feed)],
        lost=ledger.lost(feed),
        waiting=ledger.waiting(feed),
        unsound=[(each.account, each.ranges) for each in unsound],
        left_unread=ledger.left_unread(feed),
        in_two_lives=[
            (each.account, each.offsets, each.earlier)
            for each in ledger.committed_in_two_lives(feed)
        ],
        open_repairs=accounts.open_repairs,
        claimed=accounts.claimed,
        tried=ledger.tried(feed),
        longest_application=services.feed.spark.max_application_time,
    )
    return ledger_findings(feed, services.topic, accounts.generations, facts)


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without repeats of the same key, the first one's words; worst first."""
    seen: dict[tuple[object, ...], Finding] = {}
    for each in findings:
        seen.setdefault(each.key, each)
    return sorted(seen.values(), key=lambda each: -each.verdict.severity)


def _partitions(
    services: Services,
    accounts: Accounts,
    counts: Mapping[GenerationId, LandedCounts],
    seen: Observation | None,
    findings: Sequence[Finding],
) -> list[PartitionAccount]:
    return [
        _partition(services, account, seen, counts, findings)
        for _, account in sorted(accounts.generations.items())
    ]


def _partition(
    services: Services,
    account: GenerationAccount,
    seen: Observation | None,
    counts: Mapping[GenerationId, LandedCounts],
    findings: Sequence[Finding],
) -> PartitionAccount:
    bounds = None
    if seen and seen.snapshot.topic_id == account.topic_id:
        bounds = seen.snapshot.partitions.get(account.partition.partition)
    mine = [
        each.verdict for each in findings if each.partition in (None, account.partition.partition)
    ]
    readable = bounds.readable_until(services.isolation) if bounds else None
    landed = counts.get(account.generation_id, LandedCounts())
    return PartitionAccount(
        account=account,
        log_start_offset=bounds.log_start_offset if bounds else None,
        readable_until=readable,
        record_count=landed.record_count,
        holes={kind: landed.holes[kind].count if kind in landed.holes else 0 for kind in HoleClass}
        if landed.holes or landed.record_count
        else {},
        lost_count=landed.lost_count,
        verdict=worst([account.verdict_of_none(readable), *mine]),
    )


def _tell(report: ReconcileReport) -> None:
    log.info(
        "Feed %s: %s at levels %s; %d finding(s) over %d partitions.",
        report.feed,
        report.verdict.value,
        ", ".join(level.value for level in report.levels),
        len(report.findings),
        len(report.partitions),
    )
    for each in report.partitions:
        counted = sum(each.holes.values())
        log.info(
            "%s generation %d [%d, %d): %s, %d rows + %d proven holes + %d lost, lag %s.",
            each.account.partition,
            each.account.ordinal,
            each.account.first_offset,
            each.account.frontier,
            each.verdict.value,
            each.record_count,
            counted,
            each.lost_count,
            "unknown" if each.lag is None else each.lag,
        )
    for finding in report.findings:
        log.warning("Found: %s", finding)
