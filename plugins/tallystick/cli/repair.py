"""`repair`: what is, or would be, done about findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import typer

from tallystick.cli.answers import (
    CLEAN,
    COULD_NOT,
    FINDINGS,
    Answer,
    deliver,
    error_details,
    exit_code_of,
)
from tallystick.cli.documents import Document, ErrorDetails, Part, RangePart, range_part
from tallystick.cli.moved_root import moved_entered
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.progress import watched
from tallystick.cli.run import Outcome, outcome_of
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.text import Block
from tallystick.domain.repair.landing_again import LandAgain
from tallystick.errors import ConfigurationError
from tallystick.report.wording import grouped
from tallystick.workflows.landing.run import BatchOutcome
from tallystick.workflows.repairing.repair import RepairReport, dry_repair, repair_feed

_SHOWN_RANGES: Final = 20


class LandAgainPart(Part):
    """Files whose offsets are landed again, as one batch."""

    old_batch: str
    files: Sequence[str]
    generation: int
    ranges: Sequence[RangePart]
    gone: Sequence[RangePart]
    finding_numbers: Sequence[int]


class QuarantinedPart(Part):
    """A stray file that is moved out of the readers' directories."""

    path: str
    quarantine: str
    finding_number: int


class EndsWithStrayPart(Part):
    """A finding about rows that a stray file holds too, and the stray's finding."""

    finding_number: int
    stray_number: int


class NewGenerationPart(Part):
    """A log that is landed anew, after it was cut."""

    partition: int
    generation: int
    first_offset: int
    expired_until: int | None
    """End (excluded) of what expired since; the next plan records it as lost."""
    finding_number: int


class NotMendedPart(Part):
    """A finding about which nothing is done, and why."""

    finding_number: int
    reason: str


class RepairBatchPart(Part):
    """One batch of a repair has ended so."""

    batch: str
    outcome: Outcome
    rows: int | None
    directory: str | None
    left_to: str | None
    error: ErrorDetails | None


class ClosedPart(Part):
    """A finding that has ended."""

    finding_number: int
    closed_by: str


class WriteManifestPart(Part):
    """A published directory's manifest that is gone, and is written anew."""

    path: str
    finding_number: int


class ReadAgainPart(Part):
    """An offset that Spark could not read, and that is tried again."""

    offsets: RangePart
    finding_number: int


class RepairDocument(Document):
    """`repair`: what is, or would be, done."""

    format: Literal["tallystick-repair-1"] = "tallystick-repair-1"
    feed: str
    topic: str
    is_dry_run: bool
    land_again: Sequence[LandAgainPart]
    quarantined: Sequence[QuarantinedPart]
    end_with_strays: Sequence[EndsWithStrayPart]
    write_manifests: Sequence[WriteManifestPart]
    new_generations: Sequence[NewGenerationPart]
    read_again: Sequence[ReadAgainPart]
    finish: Sequence[int]
    """Numbers of findings."""
    adopted: Sequence[str]
    """Ids of the batches that are taken over: those, and those of earlier repairs."""
    not_mended: Sequence[NotMendedPart]
    batches: Sequence[RepairBatchPart]
    closed: Sequence[ClosedPart]
    errors: Sequence[ErrorDetails]


def repair(
    context: typer.Context,
    feed: FeedArgument,
    finding: Annotated[
        list[int] | None,
        typer.Argument(help="Numbers of findings; without one, all open findings."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")
    ] = False,
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIGEST",
            help="What was read: explain shows its digest. Refuse if a finding has another by now.",
        ),
    ] = None,
    moved: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="OLD NEW",
            help="Land nothing: enter that the batches below the one root lie below the other.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Land again what is missing or damaged, move strays to quarantine. Exit 1 if some is left."""
    deliver(
        lambda: _repaired(
            stage_of(context),
            feed,
            tuple(finding or ()),
            [each.strip().lower() for each in evidence or ()],
            dry_run=dry_run,
            moved=moved,
        ),
        as_json=as_json,
    )


def _repaired(
    stage: Stage,
    name: str,
    numbers: tuple[int, ...],
    digests: Sequence[str],
    *,
    dry_run: bool,
    moved: tuple[str, str] | None,
) -> Answer:
    if moved and (numbers or digests):
        raise ConfigurationError("--moved", " ".join(moved), "no finding beside it")
    if moved:
        return moved_entered(stage, name, moved, dry_run=dry_run)
    if digests and not numbers:
        raise ConfigurationError("--evidence", digests[0], "the number of a finding beside it")
    feed = stage.feed(name)
    with watched(stage, feed, f"repairing {name}") as services:
        report = (
            dry_repair(services, numbers, digests=digests)
            if dry_run
            else repair_feed(services, numbers, stage.new_owner(), digests=digests)
        )
    document = RepairDocument(
        feed=report.feed,
        topic=report.topic,
        is_dry_run=report.is_dry_run,
        land_again=[_land_again_part(each) for each in report.plan.land_again],
        quarantined=[
            QuarantinedPart(
                path=each.path, quarantine=each.quarantine, finding_number=each.finding_id
            )
            for each in (report.plan.quarantined if dry_run else report.quarantined)
        ],
        end_with_strays=[
            EndsWithStrayPart(finding_number=each.finding_id, stray_number=each.stray_id)
            for each in report.plan.end_with_strays
        ],
        write_manifests=[
            WriteManifestPart(path=each.path, finding_number=each.finding_id)
            for each in report.plan.write_manifests
        ],
        new_generations=[
            NewGenerationPart(
                partition=each.account.partition.partition,
                generation=each.account.ordinal + 1,
                first_offset=each.first_offset,
                expired_until=each.expired.until_offset if each.expired else None,
                finding_number=each.finding_id,
            )
            for each in report.plan.new_generations
        ],
        read_again=[
            ReadAgainPart(offsets=range_part(each.planned.offsets), finding_number=each.finding_id)
            for each in report.plan.read_again
        ],
        finish=[each.finding_id for each in report.plan.adopt],
        adopted=report.plan.adopted,
        not_mended=[
            NotMendedPart(finding_number=each.finding_id, reason=each.reason)
            for each in report.not_mended
        ],
        batches=[_batch_part(each) for each in report.batches],
        closed=[
            ClosedPart(finding_number=key, closed_by=each) for key, each in report.closed.items()
        ],
        errors=[error_details(each) for each in report.failures],
    )
    return Answer(document, repair_view(document), _repair_code(report))


def _repair_code(report: RepairReport) -> int:
    """Returns the exit code: failures weigh most, then what is left as it is or to others."""
    codes = {exit_code_of(error) for error in report.errors}
    if codes and not report.is_dry_run:
        return COULD_NOT if COULD_NOT in codes else max(codes)
    # A run puts a dry run's error on record, and leaves it; what is gone it names as lost.
    would_find = codes or (report.is_dry_run and any(each.gone for each in report.plan.land_again))
    return FINDINGS if would_find or report.not_mended or report.has_left_batches else CLEAN


def _land_again_part(again: LandAgain) -> LandAgainPart:
    return LandAgainPart(
        old_batch=again.old.batch_id,
        files=[each.name for each in again.replaces],
        generation=again.old.ordinal,
        ranges=[range_part(each.offsets) for each in again.ranges],
        gone=[range_part(each) for each in again.gone],
        finding_numbers=sorted(set(again.finding_ids)),
    )


def _batch_part(outcome: BatchOutcome) -> RepairBatchPart:
    return RepairBatchPart(
        batch=outcome.batch_id,
        outcome=outcome_of(outcome),
        rows=outcome.commit.record_count if outcome.commit else None,
        directory=outcome.directory,
        left_to=outcome.left_to,
        error=error_details(outcome.error) if outcome.error else None,
    )


def repair_view(document: RepairDocument) -> list[Block]:
    """Shows what was, or would be, done; what is left, and why."""
    would = "would be " if document.is_dry_run else ""
    lines: list[Block] = [f"Feed {document.feed}, topic {document.topic}: repair{_dry(document)}."]
    for again in document.land_again:
        files = f"{', '.join(again.files)} of batch {again.old_batch}"
        why = f"for {_numbers(again.finding_numbers)}: {files}"
        lines.append(
            f"{would}landed again, {why}: {_ranges_words(document.topic, again.ranges)}"
            if again.ranges
            else f"{would}given up, {why}"
        )
        if again.gone:
            gone = _ranges_words(document.topic, again.gone)
            lines.append(
                f"Kafka no longer has {gone}, and the files are gone: these rows are lost, as a"
                " finding A8 will say"
            )
    lines += [
        f"{would}moved to quarantine, for finding {each.finding_number}: {each.path} to"
        f" {each.quarantine}"
        for each in document.quarantined
    ]
    lines += [
        f"{would}tried again, for finding {each.finding_number}:"
        f" {_ranges_words(document.topic, [each.offsets])}"
        for each in document.read_again
    ]
    if document.is_dry_run:
        lines += [
            f"would be written anew, for finding {each.finding_number}: {each.path}"
            for each in document.write_manifests
        ]
        lines += [
            f"would end with finding {each.stray_number}: finding {each.finding_number}"
            for each in document.end_with_strays
        ]
    lines += [
        f"{would}opened, for finding {each.finding_number}: generation {each.generation} of"
        f" {document.topic}-{each.partition} at offset {grouped(each.first_offset)}"
        + (
            f"; what lies below {grouped(each.expired_until)} has expired, the next plan records"
            " it as lost"
            if each.expired_until is not None
            else ""
        )
        for each in document.new_generations
    ]
    if document.finish:
        lines.append(f"{would}adopted: the unfinished batches of {_numbers(document.finish)}")
    for batch in document.batches:
        rows = f", {grouped(batch.rows)} rows" if batch.rows is not None else ""
        lines.append(f"batch {batch.batch}: {batch.outcome}{rows}")
        if batch.error:
            lines += [f"  error: {batch.error.what}", f"  next: {batch.error.next_step}"]
    lines += [
        f"finding {each.finding_number} is closed: {each.closed_by}" for each in document.closed
    ]
    lines += [
        f"finding {each.finding_number} is left: {each.reason}" for each in document.not_mended
    ]
    lines += [f"error: {each.what} {each.next_step}" for each in document.errors]
    if len(lines) == 1:
        lines.append("There is nothing to mend.")
    return lines


def _dry(document: RepairDocument) -> str:
    return ", a dry run: nothing is changed" if document.is_dry_run else ""


def _ranges_words(topic: str, ranges: Sequence[RangePart]) -> str:
    shown = "; ".join(_range_words(topic, each) for each in ranges[:_SHOWN_RANGES])
    more = len(ranges) - _SHOWN_RANGES
    return shown + (f"; and {more} more" if more > 0 else "")


def _range_words(topic: str, offsets: RangePart) -> str:
    return (
        f"{topic}-{offsets.partition}"
        f" [{grouped(offsets.from_offset)}, {grouped(offsets.until_offset)})"
    )


def _numbers(findings: Sequence[int]) -> str:
    numbers = [str(each) for each in findings]
    return f"finding {numbers[0]}" if len(numbers) == 1 else f"findings {', '.join(numbers)}"
