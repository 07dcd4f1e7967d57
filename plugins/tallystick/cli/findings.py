"""`findings`, `explain`, `waive` and `unwaive`: what is wrong, what it means, what is accepted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from tallystick.cli.answers import (
    CLEAN,
    FINDINGS,
    Answer,
    Block,
    Table,
    deliver,
    to_second,
)
from tallystick.cli.options import FeedArgument, JsonOption, given_instant
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.identities import FeedName
from tallystick.domain.report.finding_part import FindingPart, WaiverState
from tallystick.domain.report.troubles import Trouble, named_findings, spans_of, troubles_of
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.waivers import Waiver, as_read, is_same_person, still_to_come
from tallystick.domain.verdicts import FindingState
from tallystick.errors import ConfigurationError
from tallystick.ledger.ledger import Ledger
from tallystick.report.documents import Document, ExplainDocument, explained
from tallystick.report.wording import (
    concern_text,
    grouped,
    place_text,
    places_text,
    trouble_lines,
    troubles_text,
)

_MOST_SAID: Final = 3


class FindingsDocument(Document):
    """`findings`."""

    format: str = "tallystick-findings-1"
    feed: str
    findings: Sequence[FindingPart]


def findings(
    context: typer.Context,
    feed: FeedArgument,
    everything: Annotated[
        bool, typer.Option("--all", help="Closed findings too, with what closed them.")
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
        list[str],
        typer.Option(
            metavar="DIGEST",
            help="The evidence that both people have read: each digest, as explain shows it.",
        ),
    ],
    reason: Annotated[str, typer.Option(help="Why it is accepted.")],
    asked_by: Annotated[str, typer.Option(metavar="NAME", help="Who asks for the waiver.")],
    approved_by: Annotated[
        str, typer.Option(metavar="NAME", help="Who else has read the evidence and agrees.")
    ],
    until: Annotated[str, typer.Option(metavar="T", help="When the waiver ends (excluded).")],
    as_json: JsonOption = False,
) -> None:
    """Accept an open finding, and its trouble, for a time. Two people have read the evidence."""
    deliver(
        lambda: _waived(
            stage_of(context),
            Waiver(
                finding_id=finding,
                reason=reason,
                asked_by=asked_by,
                approved_by=approved_by,
                expires_at=_still_to_come("--until", until),
                digest="",
            ),
            [each.strip().lower() for each in evidence],
        ),
        as_json=as_json,
    )


def unwaive(
    context: typer.Context,
    finding: Annotated[int, typer.Argument(help="The finding's number.")],
    reason: Annotated[str, typer.Option(help="Why it is accepted no longer.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who says so.")],
    as_json: JsonOption = False,
) -> None:
    """End the waiver of a finding, and of its trouble: it is open again at once."""
    deliver(lambda: _unwaived(stage_of(context), finding, by, reason), as_json=as_json)


def _listed(stage: Stage, name: str, *, everything: bool) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = (
            ledger.all_findings(FeedName(name)) if everything else ledger.findings(FeedName(name))
        )
        document = FindingsDocument(feed=name, findings=ledger.told_findings(found))
    is_open = any(
        each.state is FindingState.OPEN and each.finding.verdict in FAILING_VERDICTS
        for each in found
    )
    return Answer(document, findings_view(document), FINDINGS if is_open else CLEAN)


def _explained(stage: Stage, number: int) -> Answer:
    with stage.ledger() as ledger:
        document = _explanation(ledger, number)
    return Answer(document, explain_view(document))


def _explanation(ledger: Ledger, number: int) -> ExplainDocument:
    found = ledger.finding(number)
    if found is None:
        accepted = "a number that tallystick findings FEED --all shows"
        raise ConfigurationError("FINDING", str(number), accepted)
    (told,) = ledger.told_findings([found])
    return explained(found, told, ledger.findings(FeedName(found.finding.feed)))


def _waived(stage: Stage, waiver: Waiver, read: Sequence[str]) -> Answer:
    if is_same_person(waiver.asked_by, waiver.approved_by):
        raise ConfigurationError("--approved-by", waiver.approved_by, "another person's name")
    with stage.ledger() as ledger:
        before = _explanation(ledger, waiver.finding_id)
        ledger.waive(
            [
                replace(waiver, finding_id=each, digest=as_read(digest, read))
                for each, digest in before.waiver_evidence.items()
            ]
        )
        until = f"waived until {waiver.expires_at.isoformat()}, or until the evidence changes"
        return _became(ledger, before, until)


def _unwaived(stage: Stage, number: int, by: str, reason: str) -> Answer:
    with stage.ledger() as ledger:
        before = _explanation(ledger, number)
        ledger.end_waivers(before.waiver_evidence, by=by, reason=reason)
        return _became(ledger, before, "open again")


def _became(ledger: Ledger, before: ExplainDocument, state: str) -> Answer:
    numbers = sorted(before.waiver_evidence)
    said = f"{named_findings(numbers).capitalize()} {'is' if len(numbers) == 1 else 'are'} {state}."
    return Answer(_explanation(ledger, before.finding.number or 0), [said])


def _still_to_come(option: str, value: str) -> datetime:
    try:
        return still_to_come(given_instant(option, value), datetime.now(UTC))
    except ValueError as error:
        raise ConfigurationError(option, value, str(error)) from None


def findings_view(document: FindingsDocument) -> list[Block]:
    """One row for each trouble, worst first, with what closed its findings."""
    if not document.findings:
        return [f"Feed {document.feed} has no findings."]
    troubles = troubles_of(document.findings)
    has_closed = any(each.closed_by for each in document.findings)
    rows = [
        [
            spans_of(each.numbers),
            _said_once(_state_of(one) for one in each.findings),
            each.worst.verdict,
            _said_once(f"{one.code} {one.name}" for one in each.by_rule),
            places_text(each.findings) or place_of(each.worst),
            to_second(min(filter(None, (one.first_seen_at for one in each.findings)))),
            _said_once(one.evidence_digest for one in each.findings),
            " ".join(filter(None, [concern_text(each), *(one.cause for one in each.by_rule)])),
            *([_said_once(one.closed_by or "-" for one in each.findings)] if has_closed else []),
        ]
        for each in troubles
    ]
    headers = ["finding#", "state", "verdict", "what", "where", "first seen", "evidence", "cause"]
    if has_closed:
        headers.append("closed by")
    return [
        f"Feed {document.feed}: {troubles_text(len(troubles), len(document.findings))}.",
        Table(headers, rows),
        "next: tallystick explain FINDING says what one means and what to do.",
    ]


def _said_once(texts: Iterable[str]) -> str:
    """Each of the texts once; how many there are, where they are too many to be read."""
    different = list(dict.fromkeys(texts))
    if len(different) > _MOST_SAID:
        return f"{grouped(len(different))} of them"
    return "; ".join(different)


def explain_view(document: ExplainDocument) -> list[Block]:
    """The finding, its rule, its history, its waiver and its evidence; what to do, if anything."""
    found = document.finding
    others = [each for each in document.finding_ids if each != found.number]
    lines: list[Block] = [
        f"Finding {found.number} of feed {found.feed}: {found.code} {found.name}, {found.verdict},"
        f" {found.state}.",
        f"where: {place_of(found)}"
        + (f", generation {found.generation}" if found.generation else ""),
        *([f"how much: {much}"] if (much := concern_text(Trouble("", (found,)))) else []),
        f"cause: {found.cause}",
        f"trouble: {found.trouble}" + (f", with findings {spans_of(others)}" if others else ""),
        f"rule: {document.compares} (level {found.level})",
        f"it is no finding when: {document.not_when}",
        f"first seen {to_second(found.first_seen_at)}, last confirmed"
        f" {to_second(found.last_confirmed_at)}",
    ]
    lines += _waiver_lines(found)
    lines += [f"evidence: {key} = {json.dumps(each)}" for key, each in found.evidence.items()]
    lines.append(f"evidence digest: {found.evidence_digest}")
    if found.closed_by:
        return [*lines, f"closed: {found.closed_by}"]
    lines.append(f"remedy: {document.remedy}")
    if found.is_waived:
        return lines
    return [
        *lines,
        f"if two people accept it: {_waive_command(document)}",
        f"next: {found.next_step}",
    ]


def _waive_command(document: ExplainDocument) -> str:
    """The command that accepts the trouble with this evidence, and with no other."""
    read = dict.fromkeys(document.waiver_evidence.values())
    evidence = "".join(f" --evidence {each}" for each in read)
    return (
        f"tallystick waive {document.finding.number}{evidence}"
        " --reason TEXT --asked-by NAME --approved-by NAME --until T"
    )


def _state_of(finding: FindingPart) -> str:
    """The state, and what became of the waiver."""
    if finding.waiver is None or finding.closed_by:
        return str(finding.state)
    until = to_second(finding.waiver.expires_at)
    if finding.is_waived:
        return f"waived until {until}"
    if finding.waiver.state is WaiverState.EXPIRED:
        return f"{finding.state}, waiver expired {until}"
    return f"{finding.state}, waiver {finding.waiver.state}"


def _waiver_lines(finding: FindingPart) -> list[str]:
    waiver = finding.waiver
    if waiver is None:
        return []
    until = to_second(waiver.expires_at)
    if finding.is_waived:
        said = f"waived until {until}, or until its evidence changes"
    elif end := waiver.ending:
        said = f"was waived until {to_second(end.ended_at)}: {end.ended_by} ended it ({end.reason})"
    elif waiver.state is WaiverState.EXPIRED:
        said = f"was waived until {until}, which is over"
    elif finding.state is FindingState.OPEN:
        said = f"was waived until {until}, which is void: its evidence has changed"
    else:
        said = f"was waived until {until}"
    people = f"asked by {waiver.asked_by}, approved by {waiver.approved_by}"
    return [f"{said}: {people}, because: {waiver.reason}"]


def place_of(finding: FindingPart) -> str:
    """Topic, partition and offsets, as far as the finding has them; else its path or batch."""
    place = place_text(finding)
    has_offsets = finding.from_offset is not None and finding.until_offset is not None
    return place if has_offsets else f"{place} {finding.subject}".rstrip()


def finding_lines(findings: Sequence[FindingPart]) -> list[Block]:
    """Each trouble: what it is, where, and what to do next, unless it is accepted."""
    troubles = troubles_of(findings)
    counted = [troubles_text(len(troubles), len(findings)) + ":"] if len(findings) > 1 else []
    return [*counted, *(line for each in troubles for line in trouble_lines(each))]
