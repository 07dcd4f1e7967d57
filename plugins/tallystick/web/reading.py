"""Reads the ledger for the answers of the routes. Decides what comes first, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.troubles import Trouble, same_trouble, troubles_of
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.rules.rule import Mending
from tallystick.domain.rules.waivers import WaiverRequest, is_same_person
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.ledger.history import RecentRun
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.overview import FeedHead, LogHead
from tallystick.ledger.reports import ShownBounds
from tallystick.orchestration.dag_ids import REPAIR, SCHEDULED, dag_id_of
from tallystick.orchestration.repair_conf import MOST_NAMED
from tallystick.report.documents import explained, holes_part
from tallystick.settings.group_names import group_of
from tallystick.web.answers import (
    AskedRunPart,
    FeedAnswer,
    FeedsAnswer,
    FindingAnswer,
    FindingsAnswer,
    NextRunPart,
    PartitionAnswer,
    PartitionsAnswer,
    RunAnswer,
    Sign,
    WaiverRequestPart,
)
from tallystick.web.broken_files import Broken
from tallystick.web.dag_heads import DagHeads, heads_of
from tallystick.web.landed import ranges_of
from tallystick.web.signs import signs_of, signs_of_dags

RUNS_OF_LIST: Final = 3
RUNS_OF_FEED: Final = 10
RUNS_OF_SPARK: Final = 24
MOST_OF_RUN: Final = 100
MOST_GROUPED: Final = 2_000
"""Findings that are read to be counted as troubles, of all feeds of an answer together."""
_LEAST_COST: Final = 20
"""To ask for one feed's findings takes as long as to read so many."""


def heads_of_list(ledger: Ledger) -> Sequence[FeedHead]:
    """Every feed on record, as the list of feeds begins with it."""
    return ledger.feed_heads(most_runs=RUNS_OF_LIST)


def feeds_of(ledger: Ledger, heads: Sequence[FeedHead], now: datetime) -> Sequence[FeedAnswer]:
    """These feeds, worst first, then those of which no time is proven, then by what is lost next.

    Troubles are counted from the worst feed on, while there are few enough findings.
    """
    left, found = MOST_GROUPED, []
    for each in sorted(heads, key=lambda each: _worst_first(each, now)):
        found.append(_feed_answer(each, now, _open_troubles(ledger, each, left)))
        if found[-1].open_troubles is not None and _is_read(each):
            left -= max(_LEAST_COST, sum(each.standing.values()))
    return found


def in_short(
    feeds: Sequence[FeedAnswer],
    dags: DagHeads,
    requests: Mapping[str, Sequence[WaiverRequest]],
    now: datetime,
    ended: Mapping[str, datetime] = MappingProxyType({}),
    recent: Mapping[str, Sequence[RecentRun]] = MappingProxyType({}),
    broken: Broken = MappingProxyType({}),
) -> FeedsAnswer:
    """The feeds, with the two things that are asked first: is all well, is yesterday whole.

    `dags` and `requests` are of feeds that the user may see, those before their first plan too.
    `ended` are feeds that were retired, and when; `broken` is what Airflow could not read.
    """
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    answers = {each.feed: each for each in feeds}
    living = {each for each in dags if any(not dag.is_stale for dag in dags[each].values())}
    # What is wrong with the DAGs of a group is told once, not of each of its feeds.
    groups = {group_of(each) for each in answers} - answers.keys()
    others = {each for each in living | broken.keys() if each and each not in answers} - groups
    names = [*answers, *sorted(others)]
    of_all = [
        Sign(feed=None, said=f"Airflow reads no feed: {each}", since=None, act="Mend that file.")
        for each in broken.get(None, ())
    ]
    signs = of_all + [
        sign
        for group in sorted(groups)
        for sign in signs_of_dags(
            group, heads_of(dags, group), now, broken.get(FeedName(group), ())
        )
    ]
    signs += [
        sign
        for name in names
        for sign in signs_of(
            name,
            answers.get(name),
            heads_of(dags, name),
            requests.get(name, ()),
            now,
            ended.get(name),
            broken.get(FeedName(name), ()),
            tells_dags=group_of(name) not in groups,
        )
    ]
    return FeedsAnswer(
        feeds=[with_next_runs(each, dags) for each in feeds],
        known=len(names),
        wrong=list(
            dict.fromkeys(each.feed for each in signs if each.feed and each.feed not in groups)
        ),
        signs=signs,
        recent=recent,
        today=today,
        yesterday_open=[
            name
            for name in names
            if name not in ended and not _is_complete(answers.get(name), today)
        ],
    )


def _is_complete(feed: FeedAnswer | None, today: datetime) -> bool:
    """True where all before today is proven, by record time all windows that were over by then.

    A look of today knows of every window that was. What was told before a finding is told no more.
    """
    if feed is None or feed.complete_up_to is None:
        return False
    if feed.failing_at and feed.complete_told_at and feed.failing_at > feed.complete_told_at:
        return False
    due = today
    if feed.complete_by is CompleteBy.RECORD_TIME and feed.looked_at and feed.looked_at >= today:
        due = min(feed.border_at or today, today)
    return feed.complete_up_to >= due


def with_next_runs(answer: FeedAnswer, dags: DagHeads) -> FeedAnswer:
    """The same, with when its DAGs begin their next runs."""
    return answer.but(
        next_runs=[
            NextRunPart(dag_id=each.dag_id, at=each.next_at, is_paused=each.is_paused)
            for kind in SCHEDULED
            if (each := heads_of(dags, answer.feed).get(kind)) and not each.is_stale
        ]
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


@dataclass(frozen=True, slots=True)
class Search:
    """Which partitions are asked for, and which page of them."""

    number: str = ""
    """How its number begins."""
    verdict: Verdict | None = None
    offset: int = 0
    limit: int = 50


def partitions_of(ledger: Ledger, feed: FeedName, search: Search) -> PartitionsAnswer:
    """The partitions that match, worst first, then by lag."""
    logs = ledger.newest_logs(feed)
    shown = ledger.newest_bounds(feed)
    standing = ledger.standing_by_partition(feed)
    found = [
        (log, verdict, lag)
        for log in logs
        if str(log.partition).startswith(search.number)
        for lag in [_lag(log, shown)]
        for verdict in [_verdict_of(log, _lag(log, shown, "due_ends"), standing)]
        if search.verdict in (None, verdict)
    ]
    found.sort(key=lambda each: (-each[1].severity, -(each[2] or 0), each[0].partition))
    page = found[search.offset : search.offset + search.limit]
    totals = ledger.totals_of_logs([log.generation_id for log, _, _ in page])
    return PartitionsAnswer(
        feed=feed,
        total=len(logs),
        matching=len(found),
        offset=search.offset,
        partitions=[
            PartitionAnswer(
                partition=log.partition,
                generation=log.ordinal,
                state=log.state,
                verdict=verdict,
                first_offset=log.first_offset,
                frontier=log.frontier,
                log_start_offset=_seen(log, shown, "log_start_offsets"),
                high_watermark=_seen(log, shown, "high_watermarks"),
                lag=lag,
                rows=totals[log.generation_id].rows,
                holes=holes_part(totals[log.generation_id].holes),
                lost=totals[log.generation_id].lost,
            )
            for log, verdict, lag in page
        ],
    )


def _seen(log: LogHead, shown: ShownBounds | None, column: str) -> int | None:
    """What the newest look showed of this very log."""
    if shown is None or shown.topic_id != log.topic_id:
        return None
    offsets: Mapping[int, int] = getattr(shown, column)
    return offsets.get(log.partition)


def _lag(log: LogHead, shown: ShownBounds | None, ends: str = "high_watermarks") -> int | None:
    end = _seen(log, shown, ends)
    return None if end is None else max(0, end - log.frontier)


def _verdict_of(log: LogHead, lag: int | None, standing: Mapping[int | None, Verdict]) -> Verdict:
    """Of nothing, while records are due or nobody looked, nothing may be said."""
    is_empty = log.frontier == log.first_offset
    told = Verdict.UNKNOWN if lag is None or (is_empty and lag) else Verdict.PROVEN_OK
    mine: Sequence[Verdict] = [standing[each] for each in (None, log.partition) if each in standing]
    return Verdict.worst_of([told, *mine])


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
    """Returns the troubles behind the feed's standing findings, worst first."""
    return troubles_of(ledger.told_findings(ledger.findings(feed)))


def feed_of_finding(ledger: Ledger, number: int) -> FeedName | None:
    """Returns whose finding it is. Asked first, it reads nothing that grows with that feed."""
    found = ledger.finding(number)
    return FeedName(found.finding.feed) if found else None


def finding_of_number(ledger: Ledger, number: int, reader: str) -> FindingAnswer | None:
    """One finding, whatever became of it, as told to this person."""
    found = ledger.finding(number)
    if found is None:
        return None
    standing = ledger.findings(FeedName(found.finding.feed))
    (shown,) = ledger.told_findings([found])
    told = explained(found, shown, standing)
    is_open = found.state is FindingState.OPEN
    repaired = {
        each.finding_id: each.digest
        for each in same_trouble(found, standing)
        if not is_open or each.state is FindingState.OPEN
    }
    alike = _most(told.waiver_evidence, number)
    requests = ledger.waiver_requests(alike)
    asked = {
        each: request
        for each, request in requests.items()
        if is_open and request.may_be_approved(alike[each])
    }
    own = asked.get(number)
    together = {
        each: asked[each].number for each in asked if own and own.was_asked_with(asked[each])
    }
    # What is asked for is approved together, and is not asked for again.
    next_ones = together or alike.keys() - asked.keys()
    changed = {each: digest for each, digest in alike.items() if each in next_ones}
    return FindingAnswer(
        **vars(told.but(waiver_evidence=changed)),
        repair_evidence=_most({**repaired, number: found.digest}, number),
        others=ledger.told_findings(
            each for each in standing if each.finding_id in changed.keys() - {number}
        ),
        has_repair=(
            found.finding.rule.mending is not Mending.NOTHING
            or held_in(found.finding.evidence) is not None
        ),
        waiver_request=_request_part(requests.get(number), together, reader),
    )


def _most(digests: Mapping[int, str], number: int) -> dict[int, str]:
    """So many of the findings as one change may name, this one among them, ascending."""
    others = [each for each in digests if each != number][: MOST_NAMED - 1]
    return {each: digests[each] for each in sorted([number, *others])}


def findings_asked_of(ledger: Ledger, feed: FeedName, asked: AskedRunPart) -> Sequence[FindingPart]:
    """The findings that a repair names; of one that names none, those that ended while it ran."""
    if asked.findings:
        named = map(ledger.finding, asked.findings[:MOST_OF_RUN])
        return ledger.told_findings(each for each in named if each and each.finding.feed == feed)
    if asked.is_dry_run or asked.queued_at is None or asked.dag_id != dag_id_of(REPAIR, feed):
        return []
    ended = ledger.findings_ended(feed, asked.queued_at, asked.ended_at, most=MOST_OF_RUN)
    return ledger.told_findings(ended)


def _request_part(
    request: WaiverRequest | None, together: Mapping[int, int], reader: str
) -> WaiverRequestPart | None:
    if request is None:
        return None
    return WaiverRequestPart(
        number=request.number,
        reason=request.wish.reason,
        asked_by=request.wish.asked_by,
        asked_at=request.asked_at,
        expires_at=request.wish.expires_at,
        evidence_digest=request.wish.digest,
        is_own_request=is_same_person(request.wish.asked_by, reader),
        may_be_approved=bool(together),
        ending=request.ending,
        ended_by=request.ended_by,
        ended_at=request.ended_at,
        together=together,
    )


def run_of(ledger: Ledger, feed: FeedName, owner: Owner) -> RunAnswer:
    """Returns what a run has done; empty where nothing of it is on record."""
    found = ledger.run_record(feed, owner, most=MOST_OF_RUN)
    told = ledger.report_value(feed, found.report) if found.report else None
    findings = told["findings"][:MOST_OF_RUN] if told else ()
    numbers = [each["number"] for each in findings if each["number"]]
    of_report = [each for each in map(ledger.finding, numbers) if each]
    return RunAnswer(
        feed=feed,
        owner=owner,
        windows=found.windows,
        planned_at=found.planned_at,
        batches=found.batches,
        ranges=ranges_of(ledger, found.batches),
        findings=_worst_findings(ledger.told_findings((*found.findings, *of_report))),
        report=ledger.report_head(feed, found.report) if found.report else None,
    )


def _worst_findings(found: Sequence[FindingPart]) -> list[FindingPart]:
    return sorted(found, key=lambda each: -each.standing_verdict.severity)


def _worst_first(head: FeedHead, now: datetime) -> tuple[int, bool, float, str]:
    soon, is_proven = head.seconds_to_loss(now), head.complete_up_to is not None
    return -head.verdict.severity, is_proven, float("inf") if soon is None else soon, head.feed


def _open_troubles(ledger: Ledger, head: FeedHead, most: int) -> int | None:
    """Counts the feed's open findings; None where more findings stand than may be read."""
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
    standing = head.standing
    return FeedAnswer(
        feed=head.feed,
        topic=head.topic,
        described=head.described,
        verdict=head.verdict,
        complete_up_to=head.complete_up_to,
        complete_by=head.complete.by if head.complete else None,
        complete_told_at=head.complete.told_at if head.complete else None,
        lag=head.lag,
        seconds_to_loss=head.seconds_to_loss(now),
        partitions=head.partitions,
        looked_at=head.looked_at,
        border_at=head.border_at,
        storage_heard_at=head.heard[Level.L2].heard_at,
        report=head.report,
        findings={verdict.value: standing[verdict] for verdict in Verdict if verdict in standing},
        open_findings=_open_findings(head),
        open_since=head.open_since,
        failing_at=head.failing_at,
        open_troubles=open_troubles,
        runs=head.runs,
    )
