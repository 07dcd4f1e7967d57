"""Text: what a log ends with, and what a terminal shows. Worst first, and never very long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.document import PartitionPart, ReportDocument
from tallystick.domain.report.troubles import troubles_of
from tallystick.domain.rules.findings import Level
from tallystick.domain.verdicts import Verdict
from tallystick.report.safe_text import visible
from tallystick.report.wording import (
    by_text,
    counted,
    grouped,
    instant_text,
    interval_text,
    late_text,
    trouble_lines,
    troubles_text,
)

_MOST_TROUBLES: Final = 50
_MOST_PARTITIONS: Final = 20


def plain_text(document: ReportDocument) -> str:
    """The report in lines: the verdict, what is proven, findings with their next steps, partitions.

    What is left out is counted.
    """
    return "".join(visible(line) + "\n" for line in _lines(document))


def _lines(document: ReportDocument) -> Iterator[str]:
    feed, levels = f"Feed {document.feed}, topic {document.topic}", ", ".join(document.levels)
    at = instant_text(document.taken_at)
    yield f"{feed}: {document.verdict.value} (levels {levels}; {at})."
    yield f"Complete up to: {_complete(document)}"
    if document.late:
        yield late_text(document.late)
    for each in document.held_back_by if document.complete_up_to != document.taken_at else ():
        yield f"  held back by {each}"
    for each in document.warnings:
        yield f"Warning: {each}"
    for each in document.unheard:
        yield f"Not heard: {each}"
    if document.unheard:
        yield "What a silent witness would have said is UNKNOWN, not in order."
    yield from _finding_lines(document)
    yield from _hole_lines(document)
    yield from _full_read_lines(document)
    yield from compared_lines(document)
    yield from _partition_lines(document)


def _hole_lines(document: ReportDocument) -> Iterator[str]:
    counts = {
        kind.value: sum(each.holes.get(kind.value, 0) for each in document.partitions)
        for kind in HoleClass
    }
    told = ", ".join(f"{grouped(count)} {kind}" for kind, count in counts.items() if count)
    if told:
        yield f"Offsets without a record, as is normal: {told}."


def _full_read_lines(document: ReportDocument) -> Iterator[str]:
    """Counts batches that a scrub has read; the others' content nobody can compare yet."""
    ages = [each for each in document.ages if each.level == Level.L3.value]
    batches = sum(each.batches for each in ages)
    never = sum(each.batches for each in ages if each.from_seconds is None)
    if batches:
        rest = f"; {grouped(never)} not yet, so no fingerprint of them is on record"
        read = f"{grouped(batches - never)} of {counted('batch', batches)}"
        yield f"Read in full (L3): {read}{rest if never else ''}."


def compared_lines(document: ReportDocument) -> Iterator[str]:
    """Tells what a second reader has compared with the broker, and what it could not."""
    compared = document.second_reader
    if compared:
        yield (
            f"Compared with the broker by a second reader (L4): {grouped(compared.offsets)} offsets"
            f" of {counted('batch', compared.batches)}; {grouped(compared.batches_due)} wait for"
            " their turn."
        )
        for each in compared.not_compared:
            yield f"  not compared: {each}"


def _complete(document: ReportDocument) -> str:
    if document.complete_up_to is None:
        return "no time is proven"
    end = document.complete_window_end
    window = f", every window to {instant_text(end)}" if end else ""
    return instant_text(document.complete_up_to) + by_text(document.complete_by) + window


def _finding_lines(document: ReportDocument) -> Iterator[str]:
    yield ""
    if not document.findings:
        yield "Nothing found."
        return
    troubles = troubles_of(document.findings)
    yield f"{troubles_text(len(troubles), len(document.findings))}, worst first:"
    for each in troubles[:_MOST_TROUBLES]:
        yield from trouble_lines(each)
    left = len(troubles) - _MOST_TROUBLES
    if left > 0:
        yield f"... and {grouped(left)} more, in the report's other forms."


def _partition_lines(document: ReportDocument) -> Iterator[str]:
    if not document.partitions:
        return
    counts = {
        verdict: sum(1 for each in document.partitions if each.verdict is verdict)
        for verdict in reversed(Verdict)
    }
    told = ", ".join(f"{grouped(n)} {verdict.value}" for verdict, n in counts.items() if n)
    yield ""
    yield f"{counted('partition', len(document.partitions))}: {told}"
    shown = document.worst_first[:_MOST_PARTITIONS]
    headers = ("partition", "generation", "accounted", "verdict", "evidence", "lag",
               "complete up to")  # fmt: skip
    rows = [_partition_cells(document.topic, each) for each in shown]
    widths = [max(len(row[at]) for row in (headers, *rows)) for at in range(len(headers))]
    for row in (headers, *rows):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()
    left = len(document.partitions) - len(shown)
    if left > 0:
        yield f"... and {grouped(left)} more."


def _partition_cells(topic: str, part: PartitionPart) -> list[str]:
    others = [each for each in (*part.holes.items(), ("lost", part.lost)) if each[1]]
    return [
        visible(f"{topic}-{part.partition}"),
        str(part.generation),
        interval_text(part.first_offset, part.frontier),
        part.verdict.value,
        f"{grouped(part.rows)} rows" + "".join(f" + {grouped(n)} {kind}" for kind, n in others),
        grouped(part.lag),
        instant_text(part.complete_up_to),
    ]
