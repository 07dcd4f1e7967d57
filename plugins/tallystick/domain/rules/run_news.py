"""What a run tells: what runs have found since it began, what lasts, what stands open from before.

What a reconcile has found is no news of a run, however lately seen: the run does not fail on it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from tallystick.domain.identities import BatchId
from tallystick.domain.rules.a8_committed_file_missing import OF_LOST
from tallystick.domain.rules.c3_rows_differ import C3
from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding
from tallystick.domain.rules.rule import Trait
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState


def told_by_run(
    recorded: Sequence[StoredFinding],
    standing: Sequence[Finding],
    *,
    since: datetime,
    over: Collection[int],
    own: Collection[BatchId] = (),
) -> list[Finding]:
    """What runs have found at or after the instant, and then what lasts, each of them once.

    `over` are the numbers of findings that have ended meanwhile, `own` the batches that the run has
    published.
    """
    news = [
        each.finding
        for each in recorded
        if _told_at(each) >= since
        and _is_of_a_run(each.finding, own)
        and not each.finding.is_provisional
        and each.finding_id not in over
    ]
    keys = {each.key for each in news}
    return [*news, *(each for each in standing if each.key not in keys)]


def _told_at(stored: StoredFinding) -> datetime:
    """When the finding was news: a partition that stands still is, to every plan that sees it."""
    is_lasting = stored.finding.rule.has(Trait.GROWS)
    return stored.last_confirmed_at if is_lasting else stored.first_seen_at


def _is_of_a_run(finding: Finding, own: Collection[BatchId]) -> bool:
    """True for what runs record; the rest is reconcile's, and no news of a run."""
    is_own_row = finding.rule == C3 and batch_in(finding.evidence) in own
    return finding.rule.has(Trait.OF_RUNS) or finding.subject == OF_LOST or is_own_row


def open_beside(
    found: Sequence[Finding], on_record: Sequence[StoredFinding]
) -> list[StoredFinding]:
    """What stands open on record, harmless no more than accepted, and is not among these."""
    told = {each.key for each in found}
    return [
        each
        for each in on_record
        if each.state is FindingState.OPEN
        and each.finding.verdict in FAILING_VERDICTS
        and each.finding.key not in told
    ]
