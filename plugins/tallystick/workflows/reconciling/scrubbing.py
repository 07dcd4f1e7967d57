"""Scrub: read committed files in full, oldest try first, and say what is not as it was (L3).

Spark reads, and judges nothing; the rules judge. What Spark or HDFS does not answer is UNKNOWN and
stays due. A finding must hold when the ledger is asked again: a file that a repair has retracted in
the meantime is nobody's trouble any more. Nothing is changed but what is on record.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tallystick.domain.batches.paths import BatchPath, ScrubPath
from tallystick.domain.batches.standing_batch import StandingBatch, files_to_read, within_budget
from tallystick.domain.batches.stored_file import StoredFile, while_read
from tallystick.domain.identities import BatchId
from tallystick.domain.report.troubles import troubles_among
from tallystick.domain.rows.scrub import ScrubPlan, ScrubResult
from tallystick.domain.rules.a8_committed_file_missing import in_doubt
from tallystick.domain.rules.evidence import batches_in_trouble
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.rule import Trait
from tallystick.domain.rules.storage_witness import BatchJudgement, judged
from tallystick.domain.rules.u1_could_not_tell import SCRUB, could_not_tell
from tallystick.domain.rules.waivers import as_far_as_asked
from tallystick.errors import (
    ConfigurationError,
    FileMissing,
    ManifestMismatch,
    SparkError,
    StorageError,
)
from tallystick.ledger.scrubs import ScrubStanding
from tallystick.ports.spark_runner import ScrubOrder
from tallystick.workflows.landing.application_result import result_text
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import ask_all, asking
from tallystick.workflows.stored.stored_files import stored_files

log = logging.getLogger(__name__)

# No scrub takes so long; what is older was left behind by one that was killed.
_LEFT_BEHIND_AFTER: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """What a scrub read, and what it found."""

    findings: Sequence[Finding]
    """On record already."""
    unheard: Sequence[Finding]
    """What could not be told, and why: UNKNOWN, not on record."""
    checked: Mapping[BatchId, bool]
    """Batches that were read as a whole, and if each was clean: nothing was found, the files are as
    they were committed, and nothing else stands about it."""
    well: Mapping[BatchId, bool]
    """The same batches, and if nothing was found in their rows. Nothing else was proven or
    disproven, so findings of level L3 about other batches stand as they are."""
    taken: int
    """Slices whose fingerprint this scrub was the first to take."""
    read_bytes: int
    left_due: int
    """Batches that are due and were not read, for the budget's sake or because of trouble."""
    standing: ScrubStanding
    """How far full reads have come, this one included."""

    @property
    def is_complete(self) -> bool:
        """False when something could not be told."""
        return not self.unheard


def scrub(services: Services) -> ScrubReport:
    """The report; its findings, fingerprints and checks are recorded in the ledger.

    Reads the published batches that are due, oldest try first, up to the feed's budget. Raises
    LedgerUnavailable only: what else goes wrong is told as UNKNOWN.
    """
    with at(services, "scrub"):
        report = _scrubbed(services)
    _tell(services, report)
    return report


def _scrubbed(services: Services) -> ScrubReport:
    feed, ledger, settings = services.feed_name, services.ledger, services.feed.reconcile
    due = ledger.scrub_due(feed, settings.scrub_every)
    chosen = within_budget(due, settings.scrub_budget)
    batches = ledger.standing_batches([each.batch_id for each in chosen])
    judgements: Mapping[BatchId, BatchJudgement] = {}
    silent: list[Finding] = []
    if batches:
        try:
            judgements = _read_and_judged(services, batches)
        except (SparkError, StorageError, ConfigurationError) as error:
            silent.append(
                could_not_tell(
                    SCRUB,
                    feed,
                    services.topic,
                    error.describe(),
                    seen_at=services.clock.now(),
                    what="the batches whose turn it is",
                    evidence={"batches": [each.batch_id for each in batches]},
                )
            )
    standing = [each.finding for each in ledger.findings(feed)]
    judged_now = [each for one in judgements.values() for each in one.findings]
    # Where a missing file may lie instead is for the listing to say: nobody has looked there.
    unsure = in_doubt(judged_now, (), [f"{services.root}/{feed}"])
    found = [as_far_as_asked(each, standing) for each in unsure]
    unheard = [each for each in found if each.rule.has(Trait.SILENCE)]
    told = [each for each in found if not each.rule.has(Trait.SILENCE)]
    # Findings before checks: a scrub that dies between the two is repeated, not forgotten.
    ledger.record_findings(feed, told)
    complete = {batch: each for batch, each in judgements.items() if each.is_complete}
    # What a full read has found before, this one ends or tells again.
    in_trouble = batches_in_trouble(each for each in standing if each.level is not Level.L3)
    checked = {
        batch_id: each.is_clean and batch_id not in in_trouble
        for batch_id, each in complete.items()
    }
    for batch_id, is_clean in checked.items():
        ledger.record_scrub(batch_id, complete[batch_id].taken, is_clean=is_clean)
    unread = [each.batch_id for each in batches if each.batch_id not in complete]
    if unread:
        ledger.record_unread(unread, Level.L3)
    return ScrubReport(
        findings=told,
        unheard=[*unheard, *silent],
        checked=checked,
        well={batch_id: each.is_well for batch_id, each in complete.items()},
        taken=sum(len(each.taken) for each in complete.values()),
        read_bytes=sum(each.byte_count for each in chosen if each.batch_id in judgements),
        left_due=len(due) - len(complete),
        standing=ledger.scrub_standing(feed),
    )


def _read_and_judged(
    services: Services, batches: Sequence[StandingBatch]
) -> Mapping[BatchId, BatchJudgement]:
    """What Spark read of the batches, judged by the ledger as it is afterwards."""
    before = _stored(services, batches)
    read = {each.name: each for each in _result(services, batches).files}
    # Before the ledger is asked again: a repair retracts a file before anybody moves it away.
    stored = while_read(before, _stored(services, batches))
    now = services.ledger.standing_batches([each.batch_id for each in batches])
    return {each.batch_id: judged(each, read, stored) for each in now}


def _result(services: Services, batches: Sequence[StandingBatch]) -> ScrubResult:
    """What Spark says; the scrub's directory is gone afterwards.

    Raises SparkError or StorageError.
    """
    store, now = services.store, services.present()
    place = ScrubPath.new(services.root, services.feed_name, now, services.new_id())
    _sweep(services, place, now)
    plan = ScrubPlan(
        scrub_id=place.scrub_id,
        files=tuple(each for batch in batches for each in files_to_read(batch, store.uri)),
        output=store.uri(place.result),
        replication=services.feed.target.replication,
    )
    log.info(
        "Scrub %s reads %d files of %d batches in full, %d bytes.",
        place.scrub_id,
        len(plan.files),
        len(batches),
        sum(each.length_bytes for each in plan.files),
    )
    try:
        store.write(place.plan, plan.to_json().encode())
        order = ScrubOrder(
            services.feed_name,
            place.scrub_id,
            store.uri(place.plan),
            plan=plan,
            written=partial(_written, services, place),
            told=services.progress,
        )
        return services.spark.scrub(order)
    finally:
        with suppress(StorageError):
            store.delete(str(place))


def _written(services: Services, place: ScrubPath) -> ScrubResult:
    path, text = result_text(services.store, place.result)
    try:
        return ScrubResult.from_json(text)
    except ValueError as error:
        raise ManifestMismatch(path, "the result of a scrub", str(error)) from error


def _sweep(services: Services, place: ScrubPath, now: datetime) -> None:
    """Delete what scrubs that were killed have left behind."""
    try:
        entries = services.store.entries(place.parent)
    except FileMissing:
        return
    for each in entries:
        made_at = ScrubPath.made_at(each.name)
        if made_at and now - made_at > _LEFT_BEHIND_AFTER:
            services.store.delete(f"{place.parent}/{each.name}")


def _stored(services: Services, batches: Sequence[StandingBatch]) -> Mapping[str, StoredFile]:
    """The batches' files as storage shows them, by name: no two of a ledger have the same one."""

    def of(batch: StandingBatch) -> Mapping[str, StoredFile]:
        return stored_files(services, str(BatchPath.of(batch.manifest.plan)), batch.files)

    with asking() as pool:
        answers = ask_all(pool, of, batches)
    return {name: each for found in answers for name, each in found.items()}


def _tell(services: Services, report: ScrubReport) -> None:
    standing = report.standing
    log.info(
        "Feed %s: batches read in full: %d (%d bytes), not clean: %d, with their first fingerprint:"
        " %d; still due: %d, never read: %d of %d.",
        services.feed_name,
        len(report.checked),
        report.read_bytes,
        sum(not is_clean for is_clean in report.checked.values()),
        report.taken,
        report.left_due,
        standing.never_read,
        standing.batches,
    )
    for trouble in troubles_among((*report.findings, *report.unheard)):
        log.warning("Found: %s", trouble)
