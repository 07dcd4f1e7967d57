"""Reports: what a reconcile has found, with the history that the ledger adds up, as one document.

A report is entered whole or not at all. Reading one back asks the ledger and nobody else.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Final

from tallystick.domain.batches.paths import directory_of, page_name, report_page
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.report.completeness import (
    CompleteBy,
    Completeness,
    Proof,
    Proving,
    completeness_of,
    proving_looks,
    would_hold_back,
)
from tallystick.domain.report.coverage_map import (
    MOST_COLUMNS,
    borders_of,
    coverage_map,
    edges_of,
)
from tallystick.domain.report.document import (
    AgePart,
    BandPart,
    ColumnPart,
    ComparedPart,
    ReportDocument,
    perhaps_thinned,
)
from tallystick.domain.report.finding_part import finding_parts
from tallystick.domain.report.held_back import held_back_by
from tallystick.domain.report.looks import (
    CameLate,
    Look,
    LookPlace,
    doubt_of_order,
    doubt_of_storage,
    look_of_window,
)
from tallystick.domain.report.standing import Heard, LastHeard
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.n3_unfinished_batch import not_shown_yet
from tallystick.domain.rules.rule import Trait
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import IngestionError, LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.reports import LandedTotals, LookSums, WindowTotals
from tallystick.workflows.comparing.second_reading import SecondReadReport
from tallystick.workflows.place import at
from tallystick.workflows.reconciling.partition_parts import partition_parts
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

MOST_LOOKS: Final = 200
_LOOKS_AT_ONCE: Final = 10
_ALL_REPORTS: Final = 1_000_000
_AGES_SECONDS: Final = tuple(
    3600 * hours for hours in (1, 6, 24, 2 * 24, 4 * 24, 7 * 24, 14 * 24, 28 * 24)
)


@dataclass(frozen=True, slots=True)
class FeedCompleteness:
    """What is proven of a feed, and which window that reaches."""

    proven: Completeness
    window_end: datetime | None
    """The newest end of a window at or before `proven.up_to`."""
    numbers: Mapping[tuple[object, ...], int]
    """Of the standing findings, by what they are about."""
    heard: Heard
    """When each witness answered last."""
    late: CameLate | None
    """By record time, what came too late for its own window."""
    accepted: Sequence[StoredFinding] = ()
    """What would hold it back, had not two people accepted it; oldest first."""

    @property
    def storage_heard_at(self) -> datetime | None:
        """When a reconcile heard storage last; None before the first."""
        storage = self.heard.get(Level.L2)
        return storage.heard_at if storage else None


def feed_completeness(
    ledger: Ledger, feed: FeedName, at: datetime | None = None
) -> FeedCompleteness:
    """What the ledger's looks and standing findings prove. Asks the ledger only.

    Where an instant is given, only rows that came late for what is before it are counted.
    """
    standing = ledger.findings(feed)
    generations = ledger.generations(feed)
    stored = {each.finding.key: each for each in standing}
    findings = [_as_it_stands(each) for each in stored.values()]
    heard = ledger.last_heard(feed)
    found = _completeness(
        ledger, feed, generations, findings, stored, heard, ledger.look_places(feed), at
    )
    accepted = [
        each
        for each in standing
        if each.state is FindingState.WAIVED and would_hold_back(each.finding, generations)
    ]
    return replace(found, accepted=accepted)


def tell_complete(ledger: Ledger, feed: FeedName, at: datetime | None = None) -> FeedCompleteness:
    """As `feed_completeness`, and kept for pages and metrics."""
    told_at = ledger.clock()
    found = feed_completeness(ledger, feed, at)
    ledger.tell_complete(feed, found.proven.up_to, found.proven.by, told_at)
    return found


def report_of(services: Services, reconciled: ReconcileReport) -> ReportDocument:
    """The document of this reconcile; it is not stored yet."""
    with at(services, "report"):
        return _document(services.ledger, services.feed_name, reconciled)


def store_report(services: Services, document: ReportDocument, made_by: Owner | None = None) -> int:
    """Keep the document in one statement; its number in the ledger. `made_by` names the run.

    Then the history of the ranges is folded. Where that can't be done, the next report does it.
    """
    with at(services, "report"):
        number = services.ledger.store_report(document, made_by)
    log.info("Feed %s: report %d of %s is stored.", document.feed, number, document.taken_at)
    try:
        tell_complete(services.ledger, services.feed_name)
        _fold(services)
    except LedgerUnavailable as error:
        log.info("What is complete is not told, or ranges not folded: %s", error.describe())
    return number


def store_page(services: Services, taken_at: datetime, page: str) -> str:
    """Write the page of a report beside the others; its path.

    Then pages go whose reports the ledger has thinned. Where that can't be done, the next page does
    it.
    """
    path = report_page(services.root, services.feed_name, taken_at)
    services.store.write(path, page.encode())
    try:
        _thin_pages(services, directory_of(path), taken_at)
    except IngestionError as error:
        log.info("The pages of old reports are not thinned this time: %s", error.describe())
    return path


def _thin_pages(services: Services, directory: str, now: datetime) -> None:
    old = perhaps_thinned((each.name for each in services.store.entries(directory)), now)
    if not old:
        return
    heads = services.ledger.report_heads(services.feed_name, before=None, most=_ALL_REPORTS)
    for name in {*old} - {page_name(each.taken_at) for each in heads}:
        services.store.delete(f"{directory}/{name}")


def _fold(services: Services) -> None:
    """Years of hourly runs over thousands of partitions stay a few rows for each partition."""
    feed = services.feed_name
    if not services.ledger.unsound(feed):
        services.ledger.fold(feed)


def _document(ledger: Ledger, feed: FeedName, reconciled: ReconcileReport) -> ReportDocument:
    generations = ledger.generations(feed)
    stored = {each.finding.key: each for each in ledger.findings(feed)}
    findings = [
        _as_it_stands(stored[each.key], each) if each.key in stored else each
        for each in reconciled.findings
    ]
    # A silence is not on record: the look, if there was one, is kept with the doubt that it raises.
    told = [each for each in findings if each.key in stored or not each.rule.has(Trait.SILENCE)]
    heard = _heard_now(ledger.last_heard(feed), reconciled)
    places = ledger.look_places(feed)
    complete = _completeness(ledger, feed, generations, told, stored, heard, places)
    by, proving = proving_looks(places)
    in_time = sorted(places, key=lambda each: (each.looked_at, each.snapshot_id))
    shown = _spread([(each.looked_at, each) for each in in_time], reconciled.taken_at)
    covering = shown
    if by is CompleteBy.RECORD_TIME:
        firsts = [(border_at, looks[0]) for border_at, looks in reversed(proving)]
        covering = _spread(firsts, reconciled.taken_at)
    found = ledger.looks([each.snapshot_id for each in covering.places])
    looks = [found[each.snapshot_id] for each in covering.places if each.snapshot_id in found]
    if by is CompleteBy.RECORD_TIME:
        looks = [look_of_window(each, (), ()) for each in looks]
    # The frontier moves at each commit: it is drawn by more looks than columns begin at.
    drawn = in_time[:: -(len(in_time) // MOST_COLUMNS + 1)][::-1]
    sums = ledger.look_sums([each.snapshot_id for each in drawn])
    totals = ledger.landed_totals(
        feed,
        edges=covering.edges,
        looks_at=[each.looked_at for each in covering.places],
        instants=sorted(each.recorded_at for each in sums),
        ages_seconds=_AGES_SECONDS,
    )
    unheard = [
        each.cause for each in findings if each.rule.has(Trait.SILENCE) and each.partition is None
    ]
    return ReportDocument(
        feed=feed,
        topic=reconciled.topic,
        taken_at=reconciled.taken_at,
        verdict=reconciled.verdict,
        complete_up_to=complete.proven.up_to,
        complete_window_end=complete.window_end,
        complete_by=complete.proven.by,
        late=complete.late,
        held_back_by=_held_back(reconciled, complete),
        levels=tuple(each.value for each in reconciled.levels),
        deepest=reconciled.deepest.value,
        silent=tuple(each.value for each in reconciled.silent),
        is_complete=reconciled.is_complete,
        unheard=tuple(unheard),
        findings=finding_parts(findings, stored, ledger.extents(stored.values())),
        partitions=partition_parts(
            reconciled, generations, complete.proven, totals, ledger.newest_bounds(feed)
        ),
        coverage=coverage_map(covering.edges, looks, generations, findings),
        columns=_column_parts(len(covering.edges) - 1, totals, looks),
        band=_band_parts(drawn, sums, totals, generations),
        ages=_age_parts(totals),
        second_reader=_compared_part(reconciled.second_read),
        warnings=tuple(reconciled.warnings),
    )


def _held_back(reconciled: ReconcileReport, complete: FeedCompleteness) -> tuple[str, ...]:
    """Why it is not complete up to now; by record time, to the newest window that was looked at."""
    proven, until = complete.proven, reconciled.taken_at
    if proven.by is CompleteBy.RECORD_TIME:
        until = proven.newest_look_at or until
        if proven.proof_of(until) is Proof.PROVEN:
            return ()
    return held_back_by(reconciled.topic, proven, until, complete.numbers)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Looks that stand for all, over columns of time."""

    edges: tuple[datetime, ...]
    places: Sequence[LookPlace]
    """Of the inner edges, in their order."""


def _spread(looks: Sequence[tuple[datetime, LookPlace]], until: datetime) -> _Spread:
    """The looks, each with its instant, which ascend, where columns begin or end."""
    borders = borders_of([instant for instant, _ in looks], until)
    return _Spread(edges_of(borders, until), [looks[index][1] for _, index in borders])


def _as_it_stands(stored: StoredFinding, seen: Finding | None = None) -> Finding:
    """The finding; WAIVED where two people have accepted it."""
    finding = seen or stored.finding
    if stored.state is FindingState.WAIVED:
        return replace(finding, verdict=Verdict.WAIVED)
    return finding


def _completeness(
    ledger: Ledger,
    feed: FeedName,
    generations: Mapping[int, Sequence[GenerationAccount]],
    findings: Sequence[Finding],
    stored: Mapping[tuple[object, ...], StoredFinding],
    heard: Heard,
    places: Sequence[LookPlace],
    at: datetime | None = None,
) -> FeedCompleteness:
    by, proving = proving_looks(places)
    reading = _Reading(ledger, heard, places)
    if by is CompleteBy.READABLE:
        looks = reading.looks([look for _, theirs in proving for look in theirs])
    else:
        living = [
            p for p, lives in generations.items() if lives[-1].state != GenerationState.CLOSED
        ]
        looks = reading.looks_of_windows(proving, living)
    unpublished = [told for each in ledger.unpublished(feed) for told in not_shown_yet(each.plan)]
    proven = completeness_of(
        generations,
        [*findings, *unpublished],
        looks,
        first_look_at=places[0].looked_at if places else None,
        by=by,
    )
    end = ledger.newest_window_end(feed, proven.up_to) if proven.up_to else None
    return FeedCompleteness(
        proven,
        end if end and proven.proof_of(end) is Proof.PROVEN else None,
        {key: each.finding_id for key, each in stored.items()},
        heard,
        ledger.late_rows(feed, at) if by is CompleteBy.RECORD_TIME else None,
    )


def _heard_now(before: Heard, reconciled: ReconcileReport) -> Heard:
    """When each witness answered last, with this reconcile, whose report is not stored yet."""
    at, silent = reconciled.taken_at, reconciled.silent
    return {
        level: each
        if level > reconciled.deepest
        else replace(each, silent_since=each.silent_since or at)
        if level in silent
        else LastHeard(at, None)
        for level, each in before.items()
    }


@dataclass(slots=True)
class _Reading:
    """Looks with their doubts, read as they are needed, and no more than so many."""

    ledger: Ledger
    heard: Heard
    places: Sequence[LookPlace]
    left: int = MOST_LOOKS

    def looks(self, places: Sequence[LookPlace]) -> Iterator[Look]:
        """These looks, in this order."""
        for begin in range(0, len(places), _LOOKS_AT_ONCE):
            some = places[begin : begin + min(_LOOKS_AT_ONCE, self.left)]
            if not some:
                return
            self.left -= len(some)
            found = self.ledger.looks([each.snapshot_id for each in some])
            for each in some:
                if each.snapshot_id in found:
                    yield self._doubted(found[each.snapshot_id], each)

    def looks_of_windows(self, proving: Proving, partitions: Collection[int]) -> Iterator[Look]:
        """One for each window: most need a single look."""
        for begin in range(0, len(proving), _LOOKS_AT_ONCE):
            some = proving[begin : begin + _LOOKS_AT_ONCE]
            firsts = list(self.looks([looks[0] for _, looks in some]))
            for first in firsts:
                later = next(looks[1:] for at, looks in some if at == first.border_at)
                yield look_of_window(first, self.looks(later), partitions)

    def _doubted(self, look: Look, place: LookPlace) -> Look:
        first_at, storage = self.places[0].looked_at, self.heard[Level.L2]
        doubt = doubt_of_order(place) or doubt_of_storage(look.looked_at, storage, first_at)
        return replace(look, doubt=look.doubt or doubt)


def _compared_part(read: SecondReadReport | None) -> ComparedPart | None:
    if read is None:
        return None
    return ComparedPart(read.batches, read.offsets, read.left_due, tuple(read.not_compared))


def _column_parts(
    columns: int, totals: LandedTotals, looks: Sequence[Look]
) -> tuple[ColumnPart, ...]:
    """One part for each column: what lies before the first edge and after the last is in the ends.

    Stretch n of the ledger's answer begins at edge n - 1.
    """
    parts = []
    for column in range(max(columns, 0)):
        stretches = {column + 1}
        stretches |= {0} if column == 0 else set()
        stretches |= {columns + 1} if column == columns - 1 else set()
        landed = [totals.windows.get(each, WindowTotals()) for each in stretches]
        holes = {
            kind.value: sum(totals.window_holes.get(each, {}).get(kind, 0) for each in stretches)
            for kind in HoleClass
        }
        rows = sum(each.rows for each in landed)
        parts.append(
            ColumnPart(
                produced=_produced(looks, column),
                landed_rows=rows,
                landed_offsets=rows + sum(holes.values()),
                holes=holes,
                batches=sum(each.batches for each in landed),
            )
        )
    return tuple(parts)


def _produced(looks: Sequence[Look], column: int) -> int | None:
    """How far the logs moved between the looks around a column."""
    if not 0 < column < len(looks):
        return None
    before, after = looks[column - 1], looks[column]
    if before.topic_id != after.topic_id or before.leaderless or after.leaderless:
        return None
    return max(0, sum(after.high_watermarks) - sum(before.high_watermarks))


def _band_parts(
    places: Sequence[LookPlace],
    sums: Sequence[LookSums],
    totals: LandedTotals,
    generations: Mapping[int, Sequence[GenerationAccount]],
) -> tuple[BandPart, ...]:
    """The looks with the frontier that the ledger had then: today's, less what came since."""
    newest = [accounts[-1] for accounts in generations.values()]
    living = {each.topic_id for each in newest}
    stretches = range(len(places), 0, -1)
    since = list(accumulate(totals.accounted.get(each, 0) for each in stretches))[::-1]
    frontier = sum(each.frontier for each in newest)
    return tuple(
        BandPart(
            looked_at=place.looked_at,
            log_start=each.log_start,
            frontier=frontier - gone if living == {each.topic_id} else None,
            last_stable=each.last_stable,
            high_watermark=each.high_watermark,
            is_whole=not each.leaderless,
        )
        for place, each, gone in zip(places, sums, since, strict=True)
    )


def _age_parts(totals: LandedTotals) -> tuple[AgePart, ...]:
    bounds = (0, *_AGES_SECONDS, None)
    return tuple(
        AgePart(
            level=each.level,
            from_seconds=None if each.stretch is None else bounds[each.stretch],
            until_seconds=None if each.stretch is None else bounds[each.stretch + 1],
            batches=each.batches,
            rows=each.rows,
        )
        for each in totals.ages
    )
