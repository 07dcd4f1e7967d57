"""Findings by what they come from: one deleted file of six partitions is one trouble, not six.

Numbers, waivers and closings stay with each finding; a trouble is on no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tallystick.domain.report.extent import Extent, Interval, all_together
from tallystick.domain.report.finding_part import NUMBER, FindingPart, finding_part, repair_of
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict

_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Trouble:
    """Findings of one cause."""

    words: str
    """The cause, as each of the findings names it."""
    findings: tuple[FindingPart, ...]
    """Worst first; at least one."""

    @property
    def worst(self) -> FindingPart:
        """The one that weighs most, the first of them."""
        return self.findings[0]

    @property
    def verdict(self) -> Verdict:
        """What is said of the worst: WAIVED where people accept all of them."""
        return self.worst.standing_verdict

    @property
    def is_closed(self) -> bool:
        """True when all of them are."""
        return all(each.has_ended for each in self.findings)

    @property
    def closed_at(self) -> datetime | None:
        """When the last of them was closed, of those that were."""
        return max((each.closed_at for each in self.findings if each.closed_at), default=None)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those that are on record, ascending."""
        return tuple(sorted(each.number for each in self.findings if each.number is not None))

    @property
    def by_rule(self) -> tuple[FindingPart, ...]:
        """The worst of each rule that tells of it."""
        found: dict[str, FindingPart] = {}
        for each in self.findings:
            found.setdefault(each.code, each)
        return tuple(found.values())

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What to do, each once, by the numbers of all that it is to be done about; nothing for
        what is accepted or closed.
        """
        numbers: dict[str, list[int | None]] = {}
        for each in self._open_ones():
            own, any_of_them = repair_of(each.feed, each.number), repair_of(each.feed, NUMBER)
            numbers.setdefault(each.next_step.replace(own, any_of_them), []).append(each.number)
        feed = self.worst.feed
        return tuple(
            step.replace(repair_of(feed, NUMBER), repair_of(feed, *_some(found)))
            for step, found in numbers.items()
        )

    @property
    def extent(self) -> Extent | None:
        """How much all of them are about; None where nobody knows."""
        return all_together((_interval(each), each.extent) for each in self.findings if each.extent)

    @property
    def number_to_act_on(self) -> int | None:
        """Of the worst one that is open and on record; None where there is none."""
        return next((each.number for each in self._open_ones() if each.number is not None), None)

    @property
    def is_open(self) -> bool:
        """True while one of them is neither accepted nor closed."""
        return any(True for _ in self._open_ones())

    def _open_ones(self) -> Iterator[FindingPart]:
        return (each for each in self.findings if not each.is_waived and not each.has_ended)

    def __str__(self) -> str:
        worst, others = self.worst, len(self.findings) - 1
        place = worst.topic if worst.partition is None else f"{worst.topic}-{worst.partition}"
        if worst.from_offset is not None and worst.until_offset is not None:
            place += f" [{worst.from_offset}, {worst.until_offset})"
        place += f" and {others} more" if others else ""
        numbered = f"{named_findings(self.numbers)}: " if self.numbers else ""
        said = [f"{numbered}{place} {worst.code} {self.verdict.value}: {worst.cause}"]
        return " ".join([*said, *(each.cause for each in self.by_rule[1:]), *self.next_steps])


def _interval(part: FindingPart) -> Interval:
    """Of a finding about a whole batch one of its own, of no partition."""
    if part.partition is None or part.from_offset is None or part.until_offset is None:
        return -1, part.number or 0, 0, part.extent.offsets if part.extent else 0
    return part.partition, part.generation or 0, part.from_offset, part.until_offset


def _some(numbers: Sequence[int | None]) -> list[object]:
    """So many as a line can name; NUMBER for what is on no record."""
    known = sorted(each for each in numbers if each is not None)
    return [*known[:_MOST_NAMED], *(["..."] if len(known) > _MOST_NAMED else [])] or [NUMBER]


def troubles_of(findings: Iterable[FindingPart]) -> tuple[Trouble, ...]:
    """The findings by cause; worst first, then as they came."""
    by_cause: dict[tuple[str, str], list[FindingPart]] = {}
    for each in sorted(findings, key=lambda each: -each.standing_verdict.severity):
        by_cause.setdefault((each.feed, each.trouble), []).append(each)
    return tuple(Trouble(words, tuple(found)) for (_, words), found in by_cause.items())


def troubles_among(
    found: Iterable[Finding], on_record: Iterable[StoredFinding] = ()
) -> tuple[Trouble, ...]:
    """The same of findings as a look states them, with their numbers where they are on record."""
    stored = {each.finding.key: each for each in on_record}
    return troubles_of(finding_part(each, stored.get(each.key)) for each in found)


def same_trouble(found: StoredFinding, standing: Iterable[StoredFinding]) -> list[StoredFinding]:
    """Those of the standing findings that are the same trouble, itself while it stands."""
    return [each for each in standing if each.finding.trouble == found.finding.trouble]


def named_findings(numbers: Sequence[int]) -> str:
    """The findings of these numbers, which ascend.

    >>> named_findings([7]), named_findings([7, 8, 9, 12])
    ('finding 7', 'findings 7-9, 12')
    """
    return f"{'finding' if len(numbers) == 1 else 'findings'} {spans_of(numbers)}"


def counted_troubles(count: int) -> str:
    """So many troubles.

    >>> counted_troubles(1), counted_troubles(2)
    ('1 trouble', '2 troubles')
    """
    return "1 trouble" if count == 1 else f"{count} troubles"


def spans_of(numbers: Sequence[int]) -> str:
    """Ascending numbers in few words.

    >>> spans_of([7, 8, 9, 12]), spans_of([4]), spans_of([])
    ('7-9, 12', '4', '')
    """
    spans: list[list[int]] = []
    for each in numbers:
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)
