"""`findings`, `explain`, `waive` and `repair`: what is wrong, what it means, and what is done."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

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
from tallystick.cli.documents import FindingPart, RangePart
from tallystick.cli.finding_documents import (
    ClosedPart,
    EndsWithStrayPart,
    ExplainDocument,
    FindingsDocument,
    LandAgainPart,
    MoveBackPart,
    NewGenerationPart,
    NotMendedPart,
    PutAsidePart,
    ReadAgainPart,
    RepairBatchPart,
    RepairDocument,
    StoredFindingPart,
    WaiveDocument,
    WaiverPart,
    WriteManifestPart,
)
from tallystick.cli.finding_views import explain_view, findings_view, repair_view
from tallystick.cli.options import FeedArgument, JsonOption, instant_of
from tallystick.cli.parts import finding_part
from tallystick.cli.progress import first_word, told
from tallystick.cli.run_commands import outcome_of
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.batches.states import FindingState
from tallystick.domain.identities import FeedName
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.repair.plan import LandAgain
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.waivers import Waiver
from tallystick.errors import ConfigurationError
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import Ledger
from tallystick.workflows.landing.run import BatchOutcome
from tallystick.workflows.repairing.repair import RepairReport, dry_repair, repair_feed


def findings(
    context: typer.Context,
    feed: FeedArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Those that have ended too, with what ended them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """List the feed's findings by number. Asks the ledger only. Exit 1 while one is open."""
    deliver(
        lambda: _listed(stage_of(context), feed, everything=everything),
        as_json=as_json,
    )


def explain(
    context: typer.Context,
    finding: Annotated[int, typer.Argument(help="The finding's number.")],
    as_json: JsonOption = False,
) -> None:
    """Say what a finding means, what it rests on, and what to do. Asks the ledger only."""
    deliver(lambda: _explained(stage_of(context), finding), as_json=as_json)


def waive(
    context: typer.Context,
    finding: Annotated[int, typer.Argument(help="The finding's number.")],
    evidence: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="What both have read: explain shows its digest."),
    ],
    reason: Annotated[str, typer.Option(help="Why it is accepted.")],
    asked_by: Annotated[str, typer.Option(metavar="NAME", help="Who asks for it.")],
    approved_by: Annotated[str, typer.Option(metavar="NAME", help="Somebody else who agrees.")],
    until: Annotated[str, typer.Option(metavar="T", help="When the waiver ends (excluded).")],
    as_json: JsonOption = False,
) -> None:
    """Accept an open finding as both have read it, for a time, by two people's word."""
    deliver(
        lambda: _waived(
            stage_of(context),
            Waiver(
                finding_id=finding,
                reason=reason,
                asked_by=asked_by,
                approved_by=approved_by,
                expires_at=_still_to_come("--until", until),
                digest=evidence.strip().lower(),
            ),
        ),
        as_json=as_json,
    )


def repair(
    context: typer.Context,
    feed: FeedArgument,
    finding: Annotated[
        list[int] | None, typer.Argument(help="Findings by number; without one, all open ones.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Mend what can be mended: land again what is missing or damaged, move strays aside."""
    deliver(
        lambda: _repaired(stage_of(context), feed, tuple(finding or ()), dry_run=dry_run),
        as_json=as_json,
    )


def _listed(stage: Stage, name: str, *, everything: bool) -> Answer:
    stage.feed(name)  # a mistyped name is told, not answered with an empty list
    with stage.ledger() as ledger:
        found = (
            ledger.all_findings(FeedName(name)) if everything else ledger.findings(FeedName(name))
        )
    document = FindingsDocument(feed=name, findings=[stored_part(each) for each in found])
    is_open = any(
        each.state is FindingState.OPEN and each.finding.verdict in FAILING_VERDICTS
        for each in found
    )
    return Answer(document, findings_view(document), FINDINGS if is_open else CLEAN)


def _explained(stage: Stage, number: int) -> Answer:
    with stage.ledger() as ledger:
        found = _finding(ledger, number)
    rule = found.finding.rule
    document = ExplainDocument(
        finding=stored_part(found),
        compares=rule.compares,
        not_when=rule.not_when,
        remedy=rule.remedy,
    )
    return Answer(document, explain_view(document))


def _waived(stage: Stage, waiver: Waiver) -> Answer:
    number, until = waiver.finding_id, waiver.expires_at
    if waiver.asked_by.strip().lower() == waiver.approved_by.strip().lower():
        raise ConfigurationError("--approved-by", waiver.approved_by, "another person's name")
    with stage.ledger() as ledger:
        _finding(ledger, number)
        ledger.waive(waiver)
        found = _finding(ledger, number)
    document = WaiveDocument(finding=stored_part(found), expires_at=until)
    words = f"Finding {number} is waived until {until.isoformat()}, or until its evidence changes."
    return Answer(document, [words])


def _still_to_come(option: str, value: str) -> datetime:
    instant = instant_of(option, value)
    if instant is None or instant <= datetime.now(instant.tzinfo):
        raise ConfigurationError(option, value, "an instant that is still to come")
    return instant


def _finding(ledger: Ledger, number: int) -> StoredFinding:
    found = ledger.finding(number)
    if found is None:
        accepted = "a number that ./tallystick findings FEED --all shows"
        raise ConfigurationError("FINDING", str(number), accepted)
    return found


def _repaired(stage: Stage, name: str, numbers: tuple[int, ...], *, dry_run: bool) -> Answer:
    feed = stage.feed(name)
    with told(f"repairing {name}"), stage.services(feed) as services:
        first_word(services)
        report = (
            dry_repair(services, numbers)
            if dry_run
            else repair_feed(services, numbers, stage.new_owner())
        )
    document = RepairDocument(
        feed=report.feed,
        topic=report.topic,
        is_dry_run=report.is_dry_run,
        land_again=[_land_again_part(each) for each in report.plan.land_again],
        put_aside=[
            PutAsidePart(path=each.path, quarantine=each.quarantine, finding=each.finding_id)
            for each in (report.plan.put_aside if dry_run else report.put_aside)
        ],
        move_back=[
            MoveBackPart(path=each.path, target=each.target, finding=each.finding_id)
            for each in report.plan.move_back
            if dry_run or each.finding_id in report.closed
        ],
        end_with_strays=[
            EndsWithStrayPart(finding=each.finding_id, stray=each.stray_id)
            for each in report.plan.end_with_strays
        ],
        write_manifests=[
            WriteManifestPart(path=each.path, finding=each.finding_id)
            for each in report.plan.write_manifests
        ],
        new_generations=[
            NewGenerationPart(
                partition=each.account.partition.partition,
                generation=each.account.ordinal + 1,
                first_offset=each.first_offset,
                expired_until=each.expired.until_offset if each.expired else None,
                finding=each.finding_id,
            )
            for each in report.plan.new_generations
        ],
        read_again=[
            ReadAgainPart(offsets=_range_part(each.planned.offsets), finding=each.finding_id)
            for each in report.plan.read_again
        ],
        finish=report.plan.finish,
        not_mended=[
            NotMendedPart(finding=each.finding_id, reason=each.reason) for each in report.not_mended
        ],
        batches=[_batch_part(each) for each in report.batches],
        closed=[ClosedPart(finding=key, closed_by=each) for key, each in report.closed.items()],
        errors=[error_details(each) for each in report.troubles],
    )
    return Answer(document, repair_view(document), _repair_code(report))


def _repair_code(report: RepairReport) -> int:
    """What could not be done weighs most; then what is left as it is, or to somebody else."""
    codes = {exit_code_of(error) for error in report.errors}
    if codes:
        return COULD_NOT if COULD_NOT in codes else max(codes)
    return FINDINGS if report.not_mended or report.has_left_batches else CLEAN


def _land_again_part(again: LandAgain) -> LandAgainPart:
    return LandAgainPart(
        old_batch=again.old.batch_id,
        files=[each.name for each in again.replaces],
        generation=again.old.ordinal,
        ranges=[_range_part(each.offsets) for each in again.ranges],
        gone=[_range_part(each) for each in again.gone],
        findings=sorted(set(again.finding_ids)),
    )


def _range_part(offsets: OffsetRange) -> RangePart:
    return RangePart(
        partition=offsets.partition.partition,
        from_offset=offsets.from_offset,
        until_offset=offsets.until_offset,
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


def stored_part(stored: StoredFinding) -> StoredFindingPart:
    """A finding on record, with its history."""
    plain: FindingPart = finding_part(stored.finding, stored.finding_id)
    return StoredFindingPart(
        **plain.model_dump(),
        state=stored.state.value,
        first_seen_at=stored.first_seen_at,
        last_confirmed_at=stored.last_confirmed_at,
        closed_at=stored.closed_at,
        closed_by=stored.closed_by,
        evidence_digest=stored.digest,
        waiver=_waiver_part(stored),
    )


def _waiver_part(stored: StoredFinding) -> WaiverPart | None:
    waiver = stored.waiver
    if waiver is None:
        return None
    over: Literal["expired", "void"] = "expired" if stored.has_waiver_expired else "void"
    return WaiverPart(
        state="in force" if stored.state is FindingState.WAIVED else over,
        reason=waiver.reason,
        asked_by=waiver.asked_by,
        approved_by=waiver.approved_by,
        expires_at=waiver.expires_at,
        evidence_digest=waiver.digest,
    )
