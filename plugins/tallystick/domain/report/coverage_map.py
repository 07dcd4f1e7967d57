"""The coverage map: time on one axis, partitions on the other, a verdict in every cell.

Time is cut by looks at the broker. What was appended between two of them lies between the high
watermarks that they showed, so every offset of a log belongs to one column: nothing rests on the
timestamps of records, which are labels.

1. A cell is in order only when all its offsets are below the frontier and no finding touches them.
2. What no look shows, or no plan has landed, is UNKNOWN.
3. Without one of the witnesses nothing is in order: every cell is UNKNOWN at best.
4. A block of several partitions shows its worst verdict, and how many of them have it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.report.looks import Look
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Trait
from tallystick.domain.verdicts import Verdict

MOST_COLUMNS: Final = 120
MOST_BLOCKS: Final = 128

_STEPS: Final = (
    *(timedelta(minutes=each) for each in (1, 5, 15)),
    *(timedelta(hours=each) for each in (1, 2, 3, 6, 12)),
    *(timedelta(days=each) for each in (1, 2, 3, 7, 14, 28, 91, 364)),
)
# A feed runs hourly as a rule: shorter columns only where there is little to show.
_SHORT_HISTORY: Final = timedelta(hours=3)
_WORST_LAST: Final = {verdict: place for place, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True)
class CoverageBlock:
    """Neighbouring partitions, one verdict for each column."""

    first_partition: int
    """Included."""
    last_partition: int
    """Included."""
    verdicts: tuple[Verdict, ...]
    """The worst of the block's partitions."""
    counts: tuple[int, ...]
    """How many partitions of the block have that verdict."""
    until_offsets: tuple[int | None, ...] = ()
    """Of a block of one partition: where each column's offsets end (not included), as far as a look
    shows it. Each begins where the one before ends."""


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Columns between `edges`, blocks of partitions below one another."""

    edges: tuple[datetime, ...]
    """One more than columns; the first column also holds everything before it."""
    blocks: tuple[CoverageBlock, ...]


def step_of(history: timedelta) -> timedelta:
    """The width of a column for a history of this length."""
    usual = timedelta(0) if history < _SHORT_HISTORY else timedelta(hours=1)
    fitting = (each for each in _STEPS if each >= usual and history <= each * (MOST_COLUMNS - 3))
    return next(fitting, _STEPS[-1])


def borders_of(looks_at: Sequence[datetime], until: datetime) -> tuple[tuple[datetime, int], ...]:
    """Instants where columns begin or end, each with the index of the look that shows its offsets.

    It is the oldest look at or after the instant, so that all that was readable before the instant
    is before the look. Of instants with one look between them and the next, the last is kept.
    `looks_at` ascends.
    """
    if not looks_at:
        return ()
    step = step_of(max(until, looks_at[-1]) - looks_at[0])
    instant = _floor(looks_at[0], step)
    found: dict[int, datetime] = {}
    while instant <= looks_at[-1]:
        found[bisect_left(looks_at, instant)] = instant
        instant += step
    borders = [(instant, index) for index, instant in sorted(found.items())]
    return _with_the_newest(borders, looks_at, until)


def _with_the_newest(
    borders: list[tuple[datetime, int]], looks_at: Sequence[datetime], until: datetime
) -> tuple[tuple[datetime, int], ...]:
    """The borders, and one for the newest look: where this report begins, if that is later."""
    last = len(looks_at) - 1
    kept = [each for each in borders if each[1] != last]
    begun = max((instant for instant, index in borders if index == last), default=looks_at[0])
    newest = max(begun, min(until, looks_at[last]))
    if kept and newest <= kept[-1][0]:
        newest = looks_at[last]
    # Of looks at the very same instant the newest shows all that the others did.
    kept = [each for each in kept if each[0] < newest]
    return (*kept, (newest, last))


def edges_of(borders: Sequence[tuple[datetime, int]], until: datetime) -> tuple[datetime, ...]:
    """The borders, with one column before them, and one after them for what nobody has seen yet."""
    if not borders:
        return ()
    instants = [instant for instant, _ in borders]
    width = instants[1] - instants[0] if len(instants) > 1 else timedelta(hours=1)
    after = [until] if until > instants[-1] else []
    return (instants[0] - width, *instants, *after)


def _floor(instant: datetime, step: timedelta) -> datetime:
    start = datetime(2000, 1, 3, tzinfo=UTC)
    return start + (instant - start) // step * step


def coverage_map(
    edges: tuple[datetime, ...],
    looks: Sequence[Look],
    generations: Mapping[int, Sequence[GenerationAccount]],
    findings: Sequence[Finding],
) -> CoverageMap:
    """The map over these edges; `looks` are those of the inner borders, in their order.

    Findings of the whole feed name no offsets: they are not in it, but for a witness that is
    missing.
    """
    if not edges:
        return CoverageMap((), ())
    columns = len(edges) - 1
    reach = [_Shown(each) for each in looks]
    best = (
        Verdict.UNKNOWN
        if any(each.partition is None and each.rule.has(Trait.LACKS_WITNESS) for each in findings)
        else Verdict.PROVEN_OK
    )
    mine: dict[int, list[Finding]] = {}
    for each in findings:
        if each.partition is not None:
            mine.setdefault(each.partition, []).append(each)
    partitions = sorted({*generations, *(p for look in looks[-1:] for p in look.partitions)})
    size = -(-len(partitions) // MOST_BLOCKS) or 1
    return CoverageMap(
        edges,
        tuple(
            _block(
                columns,
                best,
                {
                    p: _cells(columns, p, reach, generations.get(p, ()), mine.get(p, ()))
                    for p in partitions[at : at + size]
                },
                tuple(each.high_watermark(partitions[at]) for each in reach) if size == 1 else (),
            )
            for at in range(0, len(partitions), size)
        ),
    )


def _block(
    columns: int,
    best: Verdict,
    cells: Mapping[int, Sequence[Verdict]],
    until_offsets: tuple[int | None, ...],
) -> CoverageBlock:
    verdicts, counts = [], []
    for column in range(columns):
        seen = [each[column] for each in cells.values()]
        if best is not Verdict.PROVEN_OK:
            seen = [max(each, best, key=_WORST_LAST.__getitem__) for each in seen]
        worst = max(set(seen), key=_WORST_LAST.__getitem__)
        verdicts.append(worst)
        counts.append(seen.count(worst))
    return CoverageBlock(min(cells), max(cells), tuple(verdicts), tuple(counts), until_offsets)


class _Shown:
    """A look that can be asked for one partition."""

    def __init__(self, look: Look) -> None:
        self.topic_id = look.topic_id
        self._partitions, self._high_watermarks = look.partitions, look.high_watermarks

    def high_watermark(self, partition: int) -> int | None:
        """None where the look doesn't show the partition."""
        place = partition
        if place >= len(self._partitions) or self._partitions[place] != partition:
            place = bisect_left(self._partitions, partition)
        if place < len(self._partitions) and self._partitions[place] == partition:
            return self._high_watermarks[place]
        return None


def _cells(
    columns: int,
    partition: int,
    looks: Sequence[_Shown],
    accounts: Sequence[GenerationAccount],
    findings: Sequence[Finding],
) -> Sequence[Verdict]:
    """One partition's row: in order, as far as its looks are below the frontier, then unknown."""
    if not accounts:
        return [Verdict.UNKNOWN] * columns
    marks = _marks(partition, looks, accounts) if findings else None
    if len(accounts) > 1 or (findings and marks is None):
        row = [
            _verdict(partition, before, after, accounts, findings)
            for before, after in _columns_between(looks)
        ]
        return [*row, *[Verdict.UNKNOWN] * (columns - len(row))]
    account = accounts[0]

    def is_beyond(look: _Shown) -> bool:
        # A log only grows: below one that is accounted for, the looks before it are so too.
        shown = look.high_watermark(partition)
        return look.topic_id != account.topic_id or shown is None or shown > account.frontier

    proven = bisect_left(looks, True, key=is_beyond)
    row = [Verdict.PROVEN_OK] * proven + [Verdict.UNKNOWN] * (columns - proven)
    for each in findings:
        if marks and each.generation in (None, account.ordinal):
            for column in _touched(marks, each):
                row[column] = max(row[column], each.verdict, key=_WORST_LAST.__getitem__)
    return row


def _marks(
    partition: int, looks: Sequence[_Shown], accounts: Sequence[GenerationAccount]
) -> Sequence[int] | None:
    """What all looks showed of one log, ascending; None where that is more than one plain story."""
    if any(look.topic_id != accounts[0].topic_id for look in looks):
        return None
    shown = [look.high_watermark(partition) for look in looks]
    marks = [each for each in shown if each is not None]
    return marks if len(marks) == len(shown) and marks == sorted(marks) else None


def _touched(marks: Sequence[int], finding: Finding) -> Iterator[int]:
    """The columns below these marks with an offset of the finding; all, where it names none."""
    if finding.from_offset is None:
        yield from range(len(marks))
        return
    reach = finding.from_offset + 1 if finding.until_offset is None else finding.until_offset
    for column in range(bisect_right(marks, finding.from_offset), len(marks)):
        lower = marks[column - 1] if column else 0
        if lower >= reach:
            return
        if lower < marks[column]:
            yield column


def _columns_between(looks: Sequence[_Shown]) -> Iterator[tuple[_Shown | None, _Shown]]:
    before: _Shown | None = None
    for look in looks:
        yield before, look
        before = look


def _verdict(
    partition: int,
    before: _Shown | None,
    after: _Shown,
    accounts: Sequence[GenerationAccount],
    findings: Sequence[Finding],
) -> Verdict:
    """The worst of what was appended between two looks; in a log, or from one log to the next."""
    shown = after.high_watermark(partition)
    if shown is None:
        return Verdict.UNKNOWN
    lower = before.high_watermark(partition) if before else None
    started = before.topic_id if before and lower is not None else None
    known = [each.topic_id for each in accounts]
    newest = {each.topic_id: each for each in accounts}
    if after.topic_id not in known or (started is not None and started not in known):
        return Verdict.UNKNOWN
    found = [Verdict.PROVEN_OK]
    first = known.index(started) if started is not None else 0
    last = len(known) - 1 - known[::-1].index(after.topic_id)
    for account in accounts[first : last + 1]:
        from_offset = lower if lower is not None and account.topic_id == started else 0
        ends_here = account.topic_id == after.topic_id
        until_offset = shown if ends_here else account.last_seen_until
        if until_offset > account.frontier and account is newest[account.topic_id]:
            found.append(Verdict.UNKNOWN)
        found += [
            each.verdict
            for each in findings
            if each.generation in (None, account.ordinal)
            and _touches(each, from_offset, until_offset)
        ]
    return max(found, key=_WORST_LAST.__getitem__)


def _touches(finding: Finding, from_offset: int, until_offset: int) -> bool:
    """True for a finding of these offsets, and for one that names none: it is about all of them."""
    if finding.from_offset is None:
        return True
    reach = finding.from_offset + 1 if finding.until_offset is None else finding.until_offset
    return max(finding.from_offset, from_offset) < min(reach, until_offset)
