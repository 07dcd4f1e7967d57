"""A page of a feed's partitions: all are compared, a few are told in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallystick.cli.documents import holes_part
from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict
from tallystick.ports.ledger import Ledger
from tallystick.ports.overview import LogHead
from tallystick.ports.reports import ShownBounds
from tallystick.web.answers import PartitionAnswer, PartitionsAnswer


@dataclass(frozen=True, slots=True)
class Search:
    """A reader asks for these partitions, and for this page of them."""

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
        for verdict in [_verdict(log, lag, standing)]
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
    """Returns what the newest look showed of this very log."""
    if shown is None or shown.topic_id != log.topic_id:
        return None
    offsets: Mapping[int, int] = getattr(shown, column)
    return offsets.get(log.partition)


def _lag(log: LogHead, shown: ShownBounds | None) -> int | None:
    high_watermark = _seen(log, shown, "high_watermarks")
    return None if high_watermark is None else max(0, high_watermark - log.frontier)


def _verdict(log: LogHead, lag: int | None, standing: Mapping[int | None, Verdict]) -> Verdict:
    """Returns the worst standing verdict; UNKNOWN where nothing landed yet, or nobody looked."""
    is_empty = log.frontier == log.first_offset
    told = Verdict.UNKNOWN if lag is None or (is_empty and lag) else Verdict.PROVEN_OK
    mine: Sequence[Verdict] = [standing[each] for each in (None, log.partition) if each in standing]
    return Verdict.worst_of([told, *mine])
