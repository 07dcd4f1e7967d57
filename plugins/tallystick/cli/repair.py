"""`repair`: what is, or would be, done about findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from tallystick.cli.answers import (
    CLEAN,
    COULD_NOT,
    FINDINGS,
    Answer,
    Block,
    deliver,
    error_details,
    exit_code_of,
)
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.progress import watched
from tallystick.cli.run import LandedBatchPart, landed_part
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.repair.facts import NotMended
from tallystick.domain.repair.finishing import WriteManifest
from tallystick.domain.repair.landing_again import LandAgain
from tallystick.domain.repair.quarantining import EndsWithStray, Quarantine
from tallystick.errors import ConfigurationError
from tallystick.report.documents import Document, ErrorDetails, Part, RangePart, range_part
from tallystick.report.wording import counted, grouped
from tallystick.workflows.repairing.moved_root import enter_moved
from tallystick.workflows.repairing.plan_lines import plan_lines
from tallystick.workflows.repairing.repair import RepairReport, dry_repair, repair_feed


class LandAgainPart(Part):
    """Files whose offsets are landed again, as one batch."""

    old_batch: str
    files: Sequence[str]
    generation: int
    ranges: Sequence[RangePart]
    gone: Sequence[RangePart]
    finding_ids: Sequence[int]


class NewGenerationPart(Part):
    """A log that is landed anew, after it was cut."""

    partition: int
    generation: int
    first_offset: int
    expired_until: int | None
    """End (excluded) of what expired since; the next plan records it as lost."""
    finding_id: int


class ReadAgainPart(Part):
    """An offset that Spark could not read, and that is tried again."""

    offsets: RangePart
    finding_id: int


class RepairDocument(Document):
    """`repair`: what is, or would be, done."""

    format: str = "tallystick-repair-1"
    feed: str
    topic: str
    is_dry_run: bool
    land_again: Sequence[LandAgainPart]
    quarantined: Sequence[Quarantine]
    end_with_strays: Sequence[EndsWithStray]
    write_manifests: Sequence[WriteManifest]
    new_generations: Sequence[NewGenerationPart]
    read_again: Sequence[ReadAgainPart]
    finish: Sequence[int]
    """Numbers of findings."""
    adopted: Sequence[str]
    """Ids of the batches that are taken over: those, and those of earlier repairs."""
    not_mended: Sequence[NotMended]
    batches: Sequence[LandedBatchPart]
    closed: Mapping[int, str]
    """By finding, what closed it."""
    errors: Sequence[ErrorDetails]


class MovedDocument(Document):
    """`repair --moved`: what is, or would be, entered."""

    format: str = "tallystick-moved-1"
    feed: str
    topic: str
    is_dry_run: bool
    from_root: str
    to_root: str
    moved: Sequence[str]
    """Ids of batches."""
    left: Mapping[str, str]
    """By directory, why the ledger keeps it where it was."""


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
        return _moved(stage, name, moved, dry_run=dry_run)
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
        quarantined=report.plan.quarantined if dry_run else report.quarantined,
        end_with_strays=report.plan.end_with_strays,
        write_manifests=report.plan.write_manifests,
        new_generations=[
            NewGenerationPart(
                partition=each.account.partition.partition,
                generation=each.account.ordinal + 1,
                first_offset=each.first_offset,
                expired_until=each.expired.until_offset if each.expired else None,
                finding_id=each.finding_id,
            )
            for each in report.plan.new_generations
        ],
        read_again=[
            ReadAgainPart(offsets=range_part(each.planned.offsets), finding_id=each.finding_id)
            for each in report.plan.read_again
        ],
        finish=[each.finding_id for each in report.plan.adopt],
        adopted=report.plan.adopted,
        not_mended=report.not_mended,
        batches=[
            landed_part(each, is_adopted=each.batch_id in report.plan.adopted)
            for each in report.batches
        ],
        closed=report.closed,
        errors=[error_details(each) for each in report.failures],
    )
    return Answer(document, _view(report, document), _repair_code(report))


def _moved(stage: Stage, name: str, roots: tuple[str, str], *, dry_run: bool) -> Answer:
    feed = stage.feed(name)
    with watched(stage, feed, f"comparing {name}") as services:
        report = enter_moved(services, *roots, stage.new_owner(), dry_run=dry_run)
    document = MovedDocument(
        feed=report.feed,
        topic=report.topic,
        is_dry_run=report.is_dry_run,
        from_root=roots[0],
        to_root=roots[1],
        moved=report.moved,
        left=report.left,
    )
    return Answer(document, moved_view(document), FINDINGS if document.left else CLEAN)


def _repair_code(report: RepairReport) -> int:
    """What could not be done weighs most; then what is left as it is, or to somebody else."""
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
        finding_ids=sorted(set(again.finding_ids)),
    )


def _view(report: RepairReport, document: RepairDocument) -> list[Block]:
    """What was, or would be, done; what became of it; what is left, and why."""
    lines: list[Block] = [_heading(document), *(words for _, words in plan_lines(report.plan))]
    for batch in document.batches:
        rows = f", {grouped(batch.rows)} rows" if batch.rows is not None else ""
        lines.append(f"batch {batch.batch_id}: {batch.outcome}{rows}")
        if batch.error:
            lines += [f"  error: {batch.error.what}", f"  next: {batch.error.next_step}"]
    lines += [f"finding {number} is closed: {why}" for number, why in document.closed.items()]
    undone = [each for each in document.not_mended if each not in report.plan.not_mended]
    lines += [f"Finding {each.finding_id} is left: {each.reason}" for each in undone]
    return [*lines, *(f"error: {each.what} {each.next_step}" for each in document.errors)]


def moved_view(document: MovedDocument) -> list[Block]:
    """What was, or would be, entered below the new root, and what is left."""
    would = "would be " if document.is_dry_run else ""
    many = counted("batch", len(document.moved))
    return [
        _heading(document),
        f"{many} {would}entered below {document.to_root}, whole, in place of {document.from_root}",
        *(f"{each} is left: {why}" for each, why in document.left.items()),
    ]


def _heading(document: RepairDocument | MovedDocument) -> str:
    dry = ", a dry run: nothing is changed" if document.is_dry_run else ""
    return f"Feed {document.feed}, topic {document.topic}: repair{dry}."
