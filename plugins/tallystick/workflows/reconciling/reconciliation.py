"""Reconcile: ask the ledger, the broker and HDFS again, and say what is not as it should be.

Each witness is asked on its own. One that does not answer makes its part UNKNOWN, never OK, and the
others are heard all the same. What is on record of findings, looks and full reads is all that is
changed; and of logs, what the look at the broker shows, as any look changes it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.report.troubles import counted_troubles, troubles_among
from tallystick.domain.rules.a10_ledger_behind import is_ledger_behind, perhaps_landed
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings
from tallystick.domain.rules.findings import Finding, Level, once, why_nothing_is_proven
from tallystick.domain.rules.rule import Trait
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.u1_could_not_tell import BROKER, STORAGE, Unread, could_not_tell
from tallystick.domain.rules.waivers import as_accepted
from tallystick.domain.rules.witnesses import (
    LedgerWitness,
    broker_findings,
    ledger_findings,
)
from tallystick.domain.verdicts import FindingState
from tallystick.errors import SourceError, StorageError
from tallystick.ledger.evidence import SettledRanges
from tallystick.ledger.proofs import BatchPlace
from tallystick.ports.progress import Progress
from tallystick.workflows.comparing.second_reading import (
    NOTHING_COMPARED,
    SecondReadReport,
    second_read,
)
from tallystick.workflows.place import at
from tallystick.workflows.planning.comparing_file import told_edits
from tallystick.workflows.planning.looking import Look, look_at_log
from tallystick.workflows.planning.outlooks import terms
from tallystick.workflows.reconciling.aborted_check import aborted_findings
from tallystick.workflows.reconciling.payload_check import PayloadsLook, look_at_payloads
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport, partition_accounts
from tallystick.workflows.reconciling.scrubbing import ScrubReport, scrub
from tallystick.workflows.reconciling.storage_look import StorageLook, look_at_storage
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def reconcile(
    services: Services, level: Level = Level.L2, run: Owner | None = None
) -> ReconcileReport:
    """The report; its findings are recorded in the ledger, and those that have ended are closed.

    `level` is the deepest that is looked at: L1 asks ledger and broker, L2 storage too, L3 reads
    what is due in full, L4 lets a second reader compare a sample with the broker. Raises
    LedgerUnavailable, for without the ledger there is nothing to compare with; ConfigurationError
    for a file of another feed than the ledger's. `run` closes them; None is somebody by hand.
    """
    with at(services, "reconcile"):
        edits = told_edits(services, "reconcile")
        report = replace(_compared(services, level, run), warnings=edits)
    _tell(report)
    return report


def _compared(services: Services, level: Level, run: Owner | None) -> ReconcileReport:
    feed, ledger = services.feed_name, services.ledger
    taken_at, before = min(services.clock.now(), ledger.clock()), ledger.findings(feed)
    places = services.ledger.batch_places(feed)
    silent: list[Finding] = []
    look: Look | None = None
    shown: Sequence[Finding] = ()
    services.progress(Progress("ask the broker"))
    try:
        look, shown = _look_at_broker(services, places)
    except SourceError as error:
        silent.append(_unheard(services, BROKER, "the broker", error, taken_at))
    accounts = look.accounts if look else services.ledger.accounts(feed)
    unsound = services.ledger.unsound(feed)
    found = [
        *_ledger_findings(services, accounts, unsound),
        *shown,
    ]
    stored = StorageLook()
    if level >= Level.L2:
        services.progress(Progress("look at storage"))
        stored = look_at_storage(services, places, unsound, reads_in_full=level >= Level.L3)
        if stored.failure:
            silent.append(_unheard(services, STORAGE, "HDFS", stored.failure, taken_at))
        # What was found before storage fell silent is told all the same.
        found += stored.findings
        silent += stored.rows.unheard
    recorded = (
        () if stored.has_listed else (each.finding for each in services.ledger.findings(feed))
    )
    if is_ledger_behind((*found, *recorded)):
        found = perhaps_landed(found)
    found = once(found)
    services.ledger.record_findings(feed, found)
    read: Mapping[BatchId, bool] = {}
    scrubbed: ScrubReport | None = None
    payloads = PayloadsLook(Payloads.NOT_COMPARED)
    if level >= Level.L3:
        scrubbed = scrub(services)
        services.progress(Progress("compare payloads"))
        payloads = look_at_payloads(services)
        services.ledger.record_findings(feed, payloads.findings)
        found = once([*found, *scrubbed.findings, *payloads.findings])
        silent += [*scrubbed.unheard, *payloads.unheard]
        read = scrubbed.well
    compared = _second_read(services, look) if level >= Level.L4 else NOTHING_COMPARED
    found = once([*found, *compared.findings])
    silent += compared.unheard
    doubt = why_nothing_is_proven(silent, ())
    if look and look.snapshot_id is not None and doubt:
        services.ledger.doubt_look(look.snapshot_id, doubt)
    heard = Heard(
        taken_at,
        broker=look.snapshot if look else None,
        storage=stored.has_listed,
        read_in_full=read,
        offsets_read=stored.rows.read,
        equal_again=compared.equal_again,
        replaced=services.ledger.replacements(feed),
        payloads=payloads.said,
        not_told=look.around.not_told if look else (),
    )
    services.progress(Progress("settle"))
    # What could not be told of one file or partition is on record, and holds back what it touches.
    is_part_untold = any(each.rule.has(Trait.SILENCE) for each in found)
    quiet = {each.level for each in silent}
    if look is None and level >= Level.L4 and services.second_reader:
        quiet.add(Level.L4)
    found = _settled(services, accounts, found, heard, before, run)
    counts = services.ledger.landed_counts(feed)
    findings = (*found, *silent)
    return ReconcileReport(
        feed=feed,
        topic=services.topic,
        taken_at=taken_at,
        deepest=level,
        levels=tuple(
            each for each in Level if each <= level and (each < Level.L4 or compared.has_looked)
        ),
        findings=findings,
        partitions=partition_accounts(
            accounts.generations,
            counts,
            look,
            services.isolation,
            findings,
            now=services.present(),
        ),
        silent=sorted(quiet),
        is_complete=not quiet and not is_part_untold,
        scrub=scrubbed,
        second_read=compared if compared.has_looked else None,
    )


def _look_at_broker(
    services: Services, places: Sequence[BatchPlace]
) -> tuple[Look, Sequence[Finding]]:
    """A look, and all that is said by it; raises SourceError."""
    look = look_at_log(services)
    feed, accounts, seen = services.feed_name, look.accounts, look.seen
    return look, (
        *look.findings,
        *broker_findings(feed, accounts.generations, seen, look.around, terms(services)),
        *aborted_findings(services, places, accounts, seen),
    )


def _second_read(services: Services, look: Look | None) -> SecondReadReport:
    """What a second reader says, from the log starts of this look."""
    if look is None:
        return NOTHING_COMPARED
    return second_read(services, look.accounts, look.snapshot)


def _unheard(
    services: Services,
    witness: Unread,
    what: str,
    error: SourceError | StorageError,
    seen_at: datetime,
) -> Finding:
    return could_not_tell(
        witness,
        services.feed_name,
        services.topic,
        error.describe(),
        seen_at=seen_at,
        what=what,
        remedy="" if error.retry else error.next_step,
    )


def _settled(
    services: Services,
    accounts: Accounts,
    found: Sequence[Finding],
    heard: Heard,
    before: Sequence[StoredFinding],
    run: Owner | None,
) -> list[Finding]:
    """The findings with accepted ones as WAIVED, after what this look has ended is closed.

    What stands on record and was not looked for this time is told too: it is not OK by that. Ended
    is only what stood `before` the first question, and what nobody has found again since.
    """
    ledger, feed = services.ledger, services.feed_name
    older = {each.finding_id: each.finding for each in before}
    ended = ended_findings(older, found, heard, accounts.generations)
    ledger.close_findings(feed, ended, run=run, as_found=before)
    standing = ledger.findings(feed)
    for number in sorted(ended.keys() - {each.finding_id for each in standing}):
        log.info("Finding %d, %s, is closed: %s", number, older[number].code.value, ended[number])
    waived = {each.finding.key for each in standing if each.state is FindingState.WAIVED}
    left = [each.finding for each in standing]
    return once(as_accepted((*found, *left), waived))


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
        ended=ledger.ended_logs(feed),
        begun_unseen=ledger.unseen_beginnings(feed),
        longest_application=services.feed.spark.max_application_time,
    )
    return ledger_findings(feed, services.topic, accounts.generations, facts)


def _tell(report: ReconcileReport) -> None:
    troubles = troubles_among(report.findings)
    log.info(
        "Feed %s: %s at levels %s; %s over %d partitions.",
        report.feed,
        report.verdict.value,
        ", ".join(level.value for level in report.levels),
        counted_troubles(len(troubles)),
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
    for trouble in troubles:
        log.warning("Found: %s", trouble)
