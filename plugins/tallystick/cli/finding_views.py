"""What `findings`, `explain` and `repair` say to people."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tallystick.cli.documents import FindingPart, RangePart
from tallystick.cli.finding_documents import (
    ExplainDocument,
    FindingsDocument,
    RepairDocument,
    StoredFindingPart,
)
from tallystick.cli.text import Block, Table, number
from tallystick.cli.views import place_words
from tallystick.domain.batches.states import FindingState

_SHOWN_RANGES = 20


def findings_view(document: FindingsDocument) -> list[Block]:
    """One row for each finding; what ended those that have."""
    if not document.findings:
        return [f"Feed {document.feed} has no findings."]
    has_ended = any(each.closed_by for each in document.findings)
    rows = [
        [
            str(each.number),
            _state_of(each),
            each.verdict,
            f"{each.code} {each.name}",
            place_of(each),
            each.first_seen_at.isoformat(timespec="seconds"),
            each.evidence_digest,
            each.cause,
            *([each.closed_by or "-"] if has_ended else []),
        ]
        for each in document.findings
    ]
    headers = ["finding#", "state", "verdict", "what", "where", "first seen", "evidence", "cause"]
    if has_ended:
        headers.append("ended by")
    return [
        Table(headers, rows),
        "next: ./tallystick explain FINDING says what one means and what to do.",
    ]


def explain_view(document: ExplainDocument) -> list[Block]:
    """The finding, its rule, its history, its waiver and its evidence; what to do, if anything."""
    found = document.finding
    lines: list[Block] = [
        f"Finding {found.number} of feed {found.feed}: {found.code} {found.name}, {found.verdict},"
        f" {found.state}.",
        f"where: {place_of(found)}"
        + (f", generation {found.generation}" if found.generation else ""),
        f"cause: {found.cause}",
        f"rule: {document.compares} (level {found.level})",
        f"it is no finding when: {document.not_when}",
        f"first seen {found.first_seen_at.isoformat(timespec='seconds')}, last confirmed"
        f" {found.last_confirmed_at.isoformat(timespec='seconds')}",
    ]
    lines += _waiver_lines(found)
    lines += [f"evidence: {key} = {json.dumps(each)}" for key, each in found.evidence.items()]
    lines.append(f"evidence digest: {found.evidence_digest}")
    if found.closed_by:
        return [*lines, f"closed: {found.closed_by}"]
    lines.append(f"remedy: {document.remedy}")
    if _is_waived(found):
        return lines
    return [*lines, f"if two people accept it: {_waive_command(found)}", f"next: {found.next_step}"]


def _waive_command(finding: StoredFindingPart) -> str:
    """What accepts the finding as it is told here, and as nothing else."""
    return (
        f"./tallystick waive {finding.number} --evidence {finding.evidence_digest}"
        " --reason TEXT --asked-by NAME --approved-by NAME --until T"
    )


def _is_waived(finding: StoredFindingPart) -> bool:
    return finding.state == FindingState.WAIVED


def _state_of(finding: StoredFindingPart) -> str:
    """The state, and until when it is so, or what became of the waiver of one that is open."""
    if finding.waiver is None or finding.closed_by:
        return finding.state
    until = finding.waiver.expires_at.isoformat(timespec="seconds")
    if _is_waived(finding):
        return f"waived until {until}"
    if finding.waiver.state == "expired":
        return f"{finding.state}, waiver expired {until}"
    return f"{finding.state}, waiver void"


def _waiver_lines(finding: StoredFindingPart) -> list[str]:
    waiver = finding.waiver
    if waiver is None:
        return []
    until = waiver.expires_at.isoformat(timespec="seconds")
    if _is_waived(finding):
        said = f"waived until {until}, or until its evidence changes"
    elif waiver.state == "expired":
        said = f"was waived until {until}, which is over"
    elif finding.state == FindingState.OPEN:
        said = f"was waived until {until}, which is void: its evidence has changed"
    else:
        said = f"was waived until {until}"
    people = f"asked by {waiver.asked_by}, approved by {waiver.approved_by}"
    return [f"{said}: {people}, because: {waiver.reason}"]


def repair_view(document: RepairDocument) -> list[Block]:
    """What was, or would be, done; what is left, and why."""
    would = "would be " if document.is_dry_run else ""
    lines: list[Block] = [f"Feed {document.feed}, topic {document.topic}: repair{_dry(document)}."]
    for again in document.land_again:
        files = f"{_numbers(again.findings)}: {', '.join(again.files)} of batch {again.old_batch}"
        lines.append(
            f"{would}landed again, for {files}: {_ranges_words(document.topic, again.ranges)}"
            if again.ranges
            else f"{would}given up, for {files}"
        )
        if again.gone:
            gone = _ranges_words(document.topic, again.gone)
            lines.append(
                f"Kafka no longer has {gone}, and the files are gone: these rows are lost, as a"
                " finding A8 will say"
            )
    lines += [
        f"{would}moved aside, for finding {each.finding}: {each.path} to {each.quarantine}"
        for each in document.put_aside
    ]
    lines += [
        f"{would}moved back, for finding {each.finding}: {each.path} to {each.target}"
        for each in document.move_back
    ]
    lines += [
        f"{would}tried again, for finding {each.finding}:"
        f" {_ranges_words(document.topic, [each.offsets])}"
        for each in document.read_again
    ]
    if document.is_dry_run:
        lines += [
            f"would be written anew, for finding {each.finding}: {each.path}"
            for each in document.write_manifests
        ]
        lines += [
            f"would end with finding {each.stray}: finding {each.finding}"
            for each in document.end_with_strays
        ]
    lines += [
        f"{would}opened, for finding {each.finding}: generation {each.generation} of"
        f" {document.topic}-{each.partition} at offset {number(each.first_offset)}"
        + (
            f"; what lies below {number(each.expired_until)} has expired, the next plan records"
            " it as lost"
            if each.expired_until is not None
            else ""
        )
        for each in document.new_generations
    ]
    if document.finish:
        lines.append(f"{would}taken up: the unfinished batches of {_numbers(document.finish)}")
    for batch in document.batches:
        rows = f", {number(batch.rows)} rows" if batch.rows is not None else ""
        lines.append(f"batch {batch.batch}: {batch.outcome}{rows}")
        if batch.error:
            lines += [f"  error: {batch.error.what}", f"  next: {batch.error.next_step}"]
    lines += [f"finding {each.finding} is closed: {each.closed_by}" for each in document.closed]
    lines += [f"finding {each.finding} is left: {each.reason}" for each in document.not_mended]
    lines += [f"error: {each.what} {each.next_step}" for each in document.errors]
    if len(lines) == 1:
        lines.append("There is nothing to mend.")
    return lines


def place_of(finding: FindingPart | StoredFindingPart) -> str:
    """Topic, partition and offsets, as far as the finding has them; else its path or batch."""
    place = place_words(finding)
    has_offsets = finding.from_offset is not None and finding.until_offset is not None
    return place if has_offsets else f"{place} {finding.subject}".rstrip()


def _dry(document: RepairDocument) -> str:
    return ", a dry run: nothing is changed" if document.is_dry_run else ""


def _ranges_words(topic: str, ranges: Sequence[RangePart]) -> str:
    shown = "; ".join(_range_words(topic, each) for each in ranges[:_SHOWN_RANGES])
    more = len(ranges) - _SHOWN_RANGES
    return shown + (f"; and {more} more" if more > 0 else "")


def _range_words(topic: str, offsets: RangePart) -> str:
    return (
        f"{topic}-{offsets.partition}"
        f" [{number(offsets.from_offset)}, {number(offsets.until_offset)})"
    )


def _numbers(findings: Sequence[int]) -> str:
    numbers = [str(each) for each in findings]
    return f"finding {numbers[0]}" if len(numbers) == 1 else f"findings {', '.join(numbers)}"
