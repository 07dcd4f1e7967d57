"""Stored reports as answers: which there are, what a page shows of one, what two say differently.

Reports are read as plain values: of their thousands of partitions a few are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from tallystick.domain.identities import FeedName
from tallystick.domain.plain_json import from_plain
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.coverage_map import CoverageMap
from tallystick.domain.report.document import AgePart, BandPart, ColumnPart, PartitionPart
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.looks import CameLate
from tallystick.domain.report.troubles import troubles_of
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.overview import ReportHead
from tallystick.report.charts import Drawn, drawn
from tallystick.web.answers import (
    ChangesAnswer,
    MovedPart,
    ReportsAnswer,
)
from tallystick.web.reading import Search

MOST_CHANGES: Final = 100
_INSTANTS: Final = ("taken_at", "complete_up_to", "complete_window_end")
_TOLD: Final = ("feed", "topic", "verdict", "held_back_by", "levels", "unheard")
_SEVERITY: Final = {each.value: each.severity for each in Verdict}

Plain: TypeAlias = Mapping[str, Any]


def reports_of(ledger: Ledger, feed: FeedName, before: int | None, limit: int) -> ReportsAnswer:
    """A page of stored reports."""
    found = ledger.report_heads(feed, before=before, most=limit + 1)
    has_more = len(found) > limit
    return ReportsAnswer(
        feed=feed,
        reports=found[:limit],
        before=found[limit - 1].number if has_more else None,
    )


def drawings_of(found: Plain) -> Drawn:
    """The drawings of a report."""
    return drawn(
        datetime.fromisoformat(found["taken_at"]),
        from_plain(CoverageMap, found["coverage"]),
        from_plain(tuple[ColumnPart, ...], found["columns"]),
        from_plain(tuple[BandPart, ...], found["band"]),
        from_plain(tuple[AgePart, ...], found["ages"]),
    )


class NewestDrawings:
    """The drawings of each feed's newest report: made once, for a stored report never changes."""

    def __init__(self) -> None:
        self._made: dict[FeedName, tuple[ReportHead, Drawn | None]] = {}

    def of(self, ledger: Ledger, feed: FeedName) -> Drawn | None:
        """Those of the newest report; None where there is none."""
        heads = ledger.report_heads(feed, most=1)
        if not heads:
            return None
        head, drawings = self._made.get(feed, (None, None))
        if head != heads[0]:
            found = ledger.report_value(feed, heads[0].number)
            drawings = drawings_of(found) if found else None
            self._made[feed] = heads[0], drawings
        return drawings


def seen_in(found: Plain, search: Search, offset: int, limit: int) -> dict[str, Any]:
    """What a page shows of a report: a few troubles and partitions, and the drawings."""
    partitions = [
        each
        for each in found["partitions"]
        if str(each["partition"]).startswith(search.number)
        and search.verdict in (None, each["verdict"])
    ]
    partitions.sort(key=_worst_first)
    troubles = troubles_of(from_plain(tuple[FindingPart, ...], found["findings"]))
    shown = partitions[search.offset : search.offset + search.limit]
    return {
        "report": {name: found[name] for name in _TOLD}
        | {name: _instant(found[name]) for name in _INSTANTS}
        | {
            "complete_by": CompleteBy(found["complete_by"]),
            "late": from_plain(CameLate, found["late"]) if found["late"] else None,
        },
        "drawn": drawings_of(found),
        "troubles": troubles[offset : offset + limit],
        "troubles_offset": offset,
        "trouble_total": len(troubles),
        "finding_total": len(found["findings"]),
        "partitions": from_plain(tuple[PartitionPart, ...], shown),
        "matching": len(partitions),
        "partition_total": len(found["partitions"]),
    }


def changes_of(ledger: Ledger, feed: FeedName, earlier: int, later: int) -> ChangesAnswer | None:
    """What the newer of two reports says anew, and says no more; None where one is not there."""
    numbers = sorted((earlier, later))
    first, last = (ledger.report_head(feed, each) for each in numbers)
    before, after = (ledger.report_value(feed, each) for each in numbers)
    if first is None or last is None or before is None or after is None:
        return None
    proven = [each.complete_up_to for each in (first, last)]
    old, new = ({_key(each): each for each in found["findings"]} for found in (before, after))
    begun = [each for key, each in new.items() if key not in old]
    ended = [each for key, each in old.items() if key not in new]
    moved, frontier_moved = _moved(before, after)
    return ChangesAnswer(
        feed=feed,
        earlier=first,
        later=last,
        complete_moved_seconds=(proven[1] - proven[0]).total_seconds()
        if proven[0] and proven[1]
        else None,
        frontier_moved=frontier_moved,
        new_total=len(begun),
        ended_total=len(ended),
        stays_total=len(new) - len(begun),
        new_findings=_by_trouble(begun)[:MOST_CHANGES],
        ended_findings=_by_trouble(ended)[:MOST_CHANGES],
        moved_total=len(moved),
        moved=moved[:MOST_CHANGES],
    )


def _by_trouble(findings: Sequence[Plain]) -> list[FindingPart]:
    troubles = troubles_of(from_plain(tuple[FindingPart, ...], findings))
    return [each for trouble in troubles for each in trouble.findings]


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _worst_first(partition: Plain) -> tuple[int, int, int]:
    severity = _SEVERITY[partition["verdict"]]
    return -severity, -(partition["lag"] or 0), partition["partition"]


def _key(finding: Plain) -> tuple[object, ...]:
    """Its number, else what it is about: the same in both reports."""
    if finding["number"] is not None:
        return (finding["number"],)
    names = ("code", "generation", "partition", "from_offset", "subject")
    return tuple(finding[name] for name in names)


def _moved(before: Plain, after: Plain) -> tuple[list[MovedPart], int]:
    """Partitions with another verdict, log or frontier, and how far all frontiers have moved."""
    old, new = ({p["partition"]: p for p in found["partitions"]} for found in (before, after))
    moved, offsets = [], 0
    names = ("generation", "verdict", "frontier")
    for number in sorted({*old, *new}):
        is_ = [[each.get(number, {}).get(name) for name in names] for each in (old, new)]
        if is_[0] == is_[1]:
            continue
        if is_[0][0] == is_[1][0]:
            offsets += is_[1][2] - is_[0][2]
        then, now = ([log, told and Verdict(told), frontier] for log, told, frontier in is_)
        pairs = {f"{when}_{name}": each for when, values in (("earlier", then), ("later", now))
                 for name, each in zip(names, values, strict=True)}  # fmt: skip
        moved.append(MovedPart(partition=number, **pairs))
    return sorted(moved, key=_worst_change_first), offsets


def _worst_change_first(each: MovedPart) -> tuple[bool, int, int]:
    severity = each.later_verdict.severity if each.later_verdict else 0
    return each.earlier_verdict == each.later_verdict, -severity, each.partition
