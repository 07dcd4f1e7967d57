"""Documents as text for people: the same facts as the JSON, in few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from typing import Final

from tallystick.cli.documents import (
    AcceptedPart,
    BatchesDocument,
    CompleteDocument,
    FilesDocument,
    FindingPart,
    HeldBatchPart,
    LandDocument,
    LandedBatchPart,
    LedgerRebuildDocument,
    PlanDocument,
    PlannedBatchPart,
    RangePart,
    ReconcileDocument,
    WindowPart,
)
from tallystick.cli.text import Block, Table, number
from tallystick.domain.batches.states import Verdict

_MOST_ACCEPTED: Final = 20
_MOST_OPEN: Final = 20


def plan_view(document: PlanDocument) -> list[Block]:
    """What a run would do, one row for each range."""
    count = len(document.batches)
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}{_window(document.window)}:"
        f" {number(document.planned)} of {number(document.wanted)} due offsets in {count}"
        f" {_batches(count)}, {len(document.adopted)} adopted. Nothing was changed."
    ]
    blocks += _limits_lines(document)
    rows = [
        row
        for index, batch in enumerate((*document.adopted, *document.batches), start=1)
        for row in _planned_rows(index, batch)
    ]
    if rows:
        headers = (
            "batch", "generation#", "window (UTC)", "partition#", "from#", "until#", "offsets#"
        )  # fmt: skip
        blocks.append(Table(headers, rows))
    return [*blocks, *_held_lines(document.held), *findings_view(document.findings)]


def _limits_lines(document: PlanDocument | LandDocument) -> list[Block]:
    """What its operator should know beside the batches: warnings, and what is left over."""
    lines: list[Block] = [f"warning: {each}" for each in document.warnings]
    left = document.wanted - document.planned
    if left > 0:
        lines.append(f"{number(left)} due offsets are left to the next run, by the limits of one.")
    return lines


def _held_lines(held: Sequence[HeldBatchPart]) -> list[Block]:
    return [
        f"Batch {each.batch}, {number(each.offsets)} offsets, is left to {each.held_by}. If that is"
        f" dead, a run adopts the batch in {each.seconds_left:.0f} s."
        for each in held
    ]


def _planned_rows(index: int, batch: PlannedBatchPart) -> list[list[str]]:
    name = batch.batch or f"new {index}"
    start = [name, str(batch.generation), _short_window(batch.window)]
    return [[*start, *_range_cells(each)] for each in batch.ranges]


def _range_cells(part: RangePart) -> list[str]:
    span = part.until_offset - part.from_offset
    return [
        str(part.partition), number(part.from_offset), number(part.until_offset), number(span)
    ]  # fmt: skip


def land_view(document: LandDocument) -> list[Block]:
    """What a run did, one row for each batch."""
    rows = sum(each.rows or 0 for each in document.batches)
    count = len(document.batches)
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}{_window(document.window)}:"
        f" {number(rows)} rows landed in {count} {_batches(count)}."
        if count
        else f"Feed {document.feed}, topic {document.topic}{_window(document.window)}:"
        f" nothing {'else ' if document.held else ''}is due, nothing was landed."
    ]
    blocks += _limits_lines(document)
    if count:
        headers = ("batch", "outcome", "rows#", "holes#", "files#", "where")
        blocks.append(Table(headers, [_landed_cells(each) for each in document.batches]))
    blocks += _held_lines(document.held)
    for error in (*(each.error for each in document.batches), *document.errors):
        if error:
            blocks += [f"error: {error.what}", f"next: {error.next_step}"]
    return [*blocks, *findings_view(document.findings), *_open_lines(document)]


def _open_lines(document: LandDocument) -> list[Block]:
    """What this run has not found anew, and stands open all the same."""
    standing = document.open_findings
    if not standing:
        return []
    lines: list[Block] = [f"{number(len(standing))} finding(s) from before stand open:"]
    lines += [
        f"{_finding_line(each)} Open since {each.first_seen_at.isoformat(timespec='seconds')}."
        for each in standing[:_MOST_OPEN]
    ]
    left = len(standing) - _MOST_OPEN
    more = f" {number(left)} more are not shown." if left > 0 else ""
    return [*lines, f"  next: ./tallystick findings {document.feed}{more}"]


def _landed_cells(batch: LandedBatchPart) -> list[str]:
    return [
        batch.batch,
        batch.outcome + (" (adopted)" if batch.is_adopted else ""),
        number(batch.rows),
        _hole_count(batch.holes),
        number(batch.files),
        batch.directory or batch.left_to or "-",
    ]


def batches_view(document: BatchesDocument) -> list[Block]:
    """All batches, one row each."""
    if not document.batches:
        return [f"Feed {document.feed} has no batch yet."]
    headers = (
        "batch", "state", "gen#", "window (UTC)", "parts#", "offsets#", "rows#", "holes#", "tries#"
    )  # fmt: skip
    rows = [
        [
            each.batch,
            each.state,
            str(each.generation),
            _short_window(each.window),
            number(len(each.ranges)),
            number(each.offsets),
            number(each.rows),
            _hole_count(each.holes),
            str(len(each.attempts)),
        ]
        for each in document.batches
    ]
    held = [
        f"Batch {each.batch} is held by {each.held_by}."
        for each in document.batches
        if each.held_by
    ]
    return [Table(headers, rows), *held]


def files_view(document: FilesDocument) -> list[Block]:
    """All committed files, one row for each partition in each."""
    if not document.files:
        return [f"Feed {document.feed} has no committed file yet."]
    headers = ("partition#", "from#", "until#", "rows#", "bytes#", "published", "path")
    rows = [
        [
            str(each.partition),
            number(each.from_offset),
            number(each.until_offset),
            number(each.rows),
            number(each.bytes),
            "yes" if each.published else "no",
            each.path,
        ]
        for each in document.files
    ]
    return [Table(headers, rows)]


def reconcile_view(document: ReconcileDocument) -> list[Block]:
    """The verdict, every partition's account, and every finding with its next step."""
    asked = ", ".join(document.levels)
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}: {document.verdict} (levels {asked})."
    ]
    if not document.is_complete:
        blocks.append("Not everybody answered: what is missing below is unknown, not in order.")
    rows = [
        [
            f"{document.topic}-{each.partition}",
            str(each.generation),
            f"[{number(each.first_offset)}, {number(each.frontier)})",
            each.verdict,
            f"{number(each.rows)} rows{_other_words({**each.holes, 'lost': each.lost})}",
            number(each.lag),
        ]
        for each in document.partitions
    ]
    if rows:
        headers = ("partition", "generation#", "accounted", "verdict", "evidence", "lag#")
        blocks.append(Table(headers, rows))
    read = document.full_reads
    if read:
        blocks.append(
            f"Read in full: {number(read.batches_read)} {_batches(read.batches_read)},"
            f" {number(read.bytes_read)} bytes, {number(read.fingerprints_taken)} fingerprints"
            f" taken. {number(read.batches_due)} still due; {number(read.batches_never_read)} of"
            f" {number(read.batches)} never read."
        )
    second = document.second_reader
    if second:
        blocks.append(
            f"Second reader: {number(second.offsets_compared)} offsets of"
            f" {number(second.batches_compared)} {_batches(second.batches_compared)} compared with"
            f" the broker; {number(second.batches_due)} wait for their turn."
        )
        blocks += [f"  not compared: {each}" for each in second.not_compared]
    return [*blocks, *findings_view(document.findings)]


def rebuild_view(document: LedgerRebuildDocument) -> list[Block]:
    """What the ledger lacked and has now, what could not be entered, and what nobody can tell."""
    count, rows = len(document.entered), sum(each.rows for each in document.entered)
    verb = "would be entered" if document.is_dry_run else "entered"
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}: {number(count)} published {_batches(count)}"
        f" that the ledger did not know {verb}, {number(rows)} rows."
    ]
    if count:
        headers = ("batch", "generation#", "offsets#", "rows#", "files#", "where")
        cells = [
            [each.batch, str(each.generation), number(each.offsets), number(each.rows),
             number(each.files), each.directory]
            for each in document.entered
        ]  # fmt: skip
        blocks.append(Table(headers, cells))
    blocks += [f"{each.directory}: {note}" for each in document.entered for note in each.notes]
    blocks += [f"given up, it was in the way: batch {each}" for each in document.abandoned]
    for left in document.left_out:
        blocks.append(f"left out: {left.directory}: {'; '.join(left.reasons)}")
    if document.left_out:
        blocks.append(
            "With --damaged, batches are entered too whose files are gone for good and do not prove"
            " their manifest any more; with --without-manifest those that have lost it."
        )
        blocks.append("next: docs/runbook.md, A10, says what to do with what was left out.")
    blocks += findings_view(document.findings)
    if not (count or document.left_out):
        return blocks
    blocks.append("What manifests can't tell:")
    blocks += [f"  {each}" for each in document.not_known]
    return [
        *blocks,
        *(f"  left in staging, others hold its offsets: {each}" for each in document.staged),
    ]


def complete_view(document: CompleteDocument) -> list[Block]:
    """If everything up to the instant is proven, and what is not."""
    at = document.at.isoformat(timespec="seconds") if document.at else "any instant"
    said = {
        "proven": f"Everything that was appended before {at} is {_landed_words(document)}.",
        "not proven": f"Not everything that was appended before {at} is proven to be landed.",
        "unknown": f"It is unknown if everything that was appended before {at} is landed.",
    }[document.proof]
    up_to = document.complete_up_to
    end = document.complete_window_end
    reach = (
        f"Complete up to {up_to.isoformat(timespec='seconds')}"
        + (f", every window to {end.isoformat()}." if end else ".")
        if up_to
        else "Complete up to: unknown."
    )
    return [
        f"Feed {document.feed}: {said}",
        reach,
        *(f"  {each}" for each in document.held_back_by),
    ]


def _landed_words(document: CompleteDocument) -> str:
    """What completeness means here: nothing that people have accepted is called landed."""
    losses, others = [], []
    for each in document.accepted:
        until = each.expires_at.isoformat(timespec="seconds") if each.expires_at else "?"
        place = place_words(each)
        if each.verdict == Verdict.PROVEN_LOSS.value:
            losses.append(f"{place} until {until}")
        else:
            others.append(f"{place} ({each.code} {each.verdict}) until {until}")
    if not document.accepted:
        return "proven to be landed"
    return (
        "landed"
        + (f", or accepted as lost: {_some(losses)}" if losses else "")
        + (f", or accepted as it stands: {_some(others)}" if others else "")
    )


def _some(words: Sequence[str]) -> str:
    left = len(words) - _MOST_ACCEPTED
    more = f"; and {number(left)} more (--json shows all)" if left > 0 else ""
    return "; ".join(words[:_MOST_ACCEPTED]) + more


def findings_view(findings: Sequence[FindingPart]) -> list[Block]:
    """Each finding in two lines: what it is, and what to do next, unless it is accepted."""
    lines: list[Block] = []
    for each in findings:
        lines.append(_finding_line(each))
        if each.verdict != Verdict.WAIVED.value:
            lines.append(f"  next: {each.next_step}")
    return lines


def place_words(part: FindingPart | AcceptedPart) -> str:
    """Topic, partition and offsets, as far as the part has them."""
    place = part.topic if part.partition is None else f"{part.topic}-{part.partition}"
    if part.from_offset is not None and part.until_offset is not None:
        place += f" [{number(part.from_offset)}, {number(part.until_offset)})"
    return place


def _finding_line(finding: FindingPart) -> str:
    numbered = f"finding {finding.number}: " if finding.number is not None else ""
    place = place_words(finding)
    return f"{numbered}{place}  {finding.verdict}  {finding.code} {finding.name}: {finding.cause}"


def _window(window: WindowPart | None) -> str:
    if window is None:
        return ""
    return f" [{window.from_instant.isoformat()}, {window.until_instant.isoformat()})"


def _short_window(window: WindowPart | None) -> str:
    """The window in UTC; its end's day is left out while it is the start's, up to 24:00."""
    if window is None:
        return "-"
    start, end = window.from_instant.astimezone(UTC), window.until_instant.astimezone(UTC)
    clock = f"{end:%H:%M}" if end.date() == start.date() else "24:00"
    if (end - timedelta(microseconds=1)).date() != start.date():
        clock = f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M}-{clock}"


def _batches(count: int) -> str:
    return "batch" if count == 1 else "batches"


def _hole_count(holes: Mapping[str, int] | None) -> str:
    return "-" if holes is None else number(sum(holes.values()))


def _other_words(counts: Mapping[str, int]) -> str:
    words = [f"{number(count)} {kind}" for kind, count in counts.items() if count]
    return " + " + " + ".join(words) if words else ""
