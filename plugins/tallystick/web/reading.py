"""From the ledger to the answers of the routes. Decides what comes first, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from tallystick.cli.documents import window_part
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.report.finding_part import FindingPart, stored_part
from tallystick.domain.report.troubles import Trouble, same_trouble, troubles_of
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Mending
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import WaiverRequest, is_same_person
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.orchestration.dag_ids import REPAIR, dag_id_of
from tallystick.orchestration.repair_conf import MOST_NAMED
from tallystick.ports.ledger import Ledger
from tallystick.ports.overview import BatchHead, FeedHead, RunHead
from tallystick.web.answers import (
    AskedRunPart,
    BatchAnswer,
    BatchesAnswer,
    FeedAnswer,
    FeedsAnswer,
    FindingAnswer,
    FindingsAnswer,
    PlannedRunPart,
    ReportPart,
    RunAnswer,
    WaiverRequestPart,
)

RUNS_OF_LIST: Final = 3
RUNS_OF_FEED: Final = 10
MOST_OF_RUN: Final = 100
MOST_GROUPED: Final = 2_000
"""Findings that are read to be counted as troubles, of all feeds of an answer together."""
_LEAST_COST: Final = 20
"""To ask for one feed's findings takes as long as to read so many."""
_IN_ORDER: Final = frozenset({Verdict.PROVEN_OK, Verdict.WAIVED})


def heads_of_list(ledger: Ledger) -> Sequence[FeedHead]:
    """Every feed on record, as the list of feeds begins with it."""
    return ledger.feed_heads(most_runs=RUNS_OF_LIST)


def feeds_of(ledger: Ledger, heads: Sequence[FeedHead], now: datetime) -> Sequence[FeedAnswer]:
    """These feeds, worst first, then the one that loses something next.

    Troubles are counted from the worst feed on, while there are few enough findings.
    """
    left, found = MOST_GROUPED, []
    for each in sorted(heads, key=lambda each: _worst_first(each, now)):
        found.append(_feed_answer(each, now, _open_troubles(ledger, each, left)))
        if found[-1].open_troubles is not None and _is_read(each):
            left -= max(_LEAST_COST, sum(each.standing.values()))
    return found


def in_short(feeds: Sequence[FeedAnswer], now: datetime) -> FeedsAnswer:
    """The feeds, with the two things that are asked first: is all well, is yesterday whole."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return FeedsAnswer(
        feeds=feeds,
        wrong=[each.feed for each in feeds if each.verdict not in _IN_ORDER],
        today=today,
        yesterday_open=[
            each.feed
            for each in feeds
            if each.complete_up_to is None or each.complete_up_to < today
        ],
    )


def feed_of_name(ledger: Ledger, feed: FeedName, now: datetime) -> FeedAnswer | None:
    """One feed; None where there is none of that name."""
    heads = ledger.feed_heads(feed, most_runs=RUNS_OF_FEED)
    if not heads:
        return None
    return _feed_answer(heads[0], now, _open_troubles(ledger, heads[0], MOST_GROUPED))


def feed_with_troubles(
    ledger: Ledger, feed: FeedName, now: datetime
) -> tuple[FeedAnswer, Sequence[Trouble]] | None:
    """One feed, and what its standing findings come from, worst first; None as above."""
    heads = ledger.feed_heads(feed, most_runs=RUNS_OF_FEED)
    if not heads:
        return None
    troubles = troubles_standing(ledger, feed) if heads[0].standing else ()
    open_troubles = sum(each.is_open for each in troubles)
    return _feed_answer(heads[0], now, open_troubles), troubles


def batches_of(ledger: Ledger, feed: FeedName, before: int | None, limit: int) -> BatchesAnswer:
    """A page of batches."""
    found = ledger.batch_heads(feed, before=before, most=limit + 1)
    has_more = len(found) > limit
    return BatchesAnswer(
        feed=feed,
        batches=[_batch_answer(each) for each in found[:limit]],
        before=found[limit - 1].number if has_more else None,
    )


def findings_of(ledger: Ledger, feed: FeedName, offset: int, limit: int) -> FindingsAnswer:
    """A page of standing findings."""
    troubles = troubles_standing(ledger, feed)
    found = [each for trouble in troubles for each in trouble.findings]
    return FindingsAnswer(
        feed=feed,
        total=len(found),
        troubles=len(troubles),
        offset=offset,
        findings=found[offset : offset + limit],
    )


def troubles_standing(ledger: Ledger, feed: FeedName) -> Sequence[Trouble]:
    """What the feed's standing findings come from, worst first."""
    return troubles_of(stored_part(each) for each in ledger.findings(feed))


def feed_of_finding(ledger: Ledger, number: int) -> FeedName | None:
    """Whose finding it is: asked first, and of nothing that grows with that feed."""
    found = ledger.finding(number)
    return FeedName(found.finding.feed) if found else None


def finding_of_number(ledger: Ledger, number: int, reader: str) -> FindingAnswer | None:
    """One finding, whatever became of it, as told to this person."""
    found = ledger.finding(number)
    if found is None:
        return None
    rule = found.finding.rule
    same = same_trouble(found, ledger.findings(FeedName(found.finding.feed)))
    others = [
        each.finding_id
        for each in same
        if each.state is FindingState.OPEN and each.finding_id != number
    ]
    return FindingAnswer(
        finding=stored_part(found),
        finding_numbers=[each.finding_id for each in same],
        repair_numbers=sorted([number, *others[: MOST_NAMED - 1]]),
        compares=rule.compares,
        not_when=rule.not_when,
        remedy=rule.remedy,
        has_repair=_has_repair(found.finding),
        waiver_request=_request_part(ledger.waiver_request(number), found, reader),
    )


def _has_repair(found: Finding) -> bool:
    """True where a repair that names the finding may do something about it."""
    if found.rule.mending is Mending.GIVE_UP_FILES:
        return held_in(found.evidence) is not None
    return found.rule.mending is not Mending.NOTHING


def open_digests(ledger: Ledger, feed: FeedName, numbers: Collection[int]) -> Mapping[int, str]:
    """Of the feed's open findings among these numbers, the digest of each one's evidence."""
    return {
        each.finding_id: each.digest
        for each in (ledger.findings(feed) if numbers else ())
        if each.finding_id in numbers and each.state is FindingState.OPEN
    }


def findings_asked_of(ledger: Ledger, feed: FeedName, asked: AskedRunPart) -> Sequence[FindingPart]:
    """The findings that a repair names; of one that names none, those that ended while it ran."""
    if asked.findings:
        named = map(ledger.finding, asked.findings[:MOST_OF_RUN])
        return [stored_part(each) for each in named if each and each.finding.feed == feed]
    if asked.is_dry_run or asked.queued_at is None or asked.dag_id != dag_id_of(REPAIR, feed):
        return []
    ended = ledger.findings_ended(feed, asked.queued_at, asked.ended_at, most=MOST_OF_RUN)
    return [stored_part(each) for each in ended]


def _request_part(
    request: WaiverRequest | None, found: StoredFinding, reader: str
) -> WaiverRequestPart | None:
    if request is None:
        return None
    is_open = found.state is FindingState.OPEN
    return WaiverRequestPart(
        number=request.number,
        reason=request.wish.reason,
        asked_by=request.wish.asked_by,
        asked_at=request.asked_at,
        expires_at=request.wish.expires_at,
        evidence_digest=request.wish.digest,
        is_own_request=is_same_person(request.wish.asked_by, reader),
        may_be_approved=is_open and request.may_be_approved(found.digest),
        ending=request.ending,
        ended_by=request.ended_by,
        ended_at=request.ended_at,
    )


def run_of(ledger: Ledger, feed: FeedName, owner: Owner) -> RunAnswer:
    """What a run has done; empty where it has done nothing that is on record."""
    found = ledger.run_record(feed, owner, most=MOST_OF_RUN)
    told = ledger.report_value(feed, found.report) if found.report else None
    told = told or {"findings": ()}
    numbers = [each["number"] for each in told["findings"][:MOST_OF_RUN] if each["number"]]
    of_report = [each for each in map(ledger.finding, numbers) if each]
    return RunAnswer(
        feed=feed,
        owner=owner,
        windows=[window_part(each) for each in found.windows],
        planned_at=found.planned_at,
        batches=[_batch_answer(each) for each in found.batches],
        findings=_worst_findings([stored_part(each) for each in (*found.findings, *of_report)]),
        report=ReportPart(number=found.report, taken_at=told["taken_at"], verdict=told["verdict"])
        if found.report and "taken_at" in told
        else None,
        complete_up_to=told.get("complete_up_to"),
    )


def _worst_findings(found: Sequence[FindingPart]) -> list[FindingPart]:
    return sorted(found, key=lambda each: -each.standing_verdict.severity)


def _worst_first(head: FeedHead, now: datetime) -> tuple[int, float, str]:
    soon = head.seconds_to_loss(now)
    return -head.verdict.severity, float("inf") if soon is None else soon, head.feed


def _open_troubles(ledger: Ledger, head: FeedHead, most: int) -> int | None:
    """How many the feed's open findings are; None where more findings stand than may be read."""
    if not _is_read(head):
        return _open_findings(head)
    if sum(head.standing.values()) > most:
        return None
    standing = ledger.findings(head.feed)
    return len({each.finding.trouble for each in standing if each.state is FindingState.OPEN})


def _is_read(head: FeedHead) -> bool:
    """True where findings must be read, with their evidence, to say how many troubles they are."""
    return _open_findings(head) > 1


def _open_findings(head: FeedHead) -> int:
    return sum(count for verdict, count in head.standing.items() if verdict is not Verdict.WAIVED)


def _feed_answer(head: FeedHead, now: datetime, open_troubles: int | None) -> FeedAnswer:
    report, standing = head.report, head.standing
    return FeedAnswer(
        feed=head.feed,
        topic=head.topic,
        verdict=head.verdict,
        complete_up_to=head.complete_up_to,
        lag=head.lag,
        seconds_to_loss=head.seconds_to_loss(now),
        partitions=head.partitions,
        looked_at=head.looked_at,
        report=ReportPart(number=report.number, taken_at=report.taken_at, verdict=report.verdict)
        if report
        else None,
        findings={verdict.value: standing[verdict] for verdict in Verdict if verdict in standing},
        open_findings=_open_findings(head),
        open_troubles=open_troubles,
        runs=[_run_part(each) for each in head.runs],
    )


def _run_part(head: RunHead) -> PlannedRunPart:
    return PlannedRunPart(
        owner=head.owner,
        window=window_part(head.window),
        planned_at=head.planned_at,
        batches=head.batches,
        published=head.published,
        abandoned=head.abandoned,
        rows=head.rows,
    )


def _batch_answer(head: BatchHead) -> BatchAnswer:
    return BatchAnswer(
        number=head.number,
        batch=head.batch_id,
        window=window_part(head.window),
        label=head.label,
        state=head.state.value,
        attempts=head.attempts,
        holder=head.holder,
        planned_by=head.planned_by,
        committed_by=head.committed_by,
        published_by=head.published_by,
        last_outcome=head.last_outcome,
        planned_at=head.planned_at,
        committed_at=head.committed_at,
        published_at=head.published_at,
        rows=head.rows,
        holes=head.holes,
        length_bytes=head.length_bytes,
        files=head.files,
    )
