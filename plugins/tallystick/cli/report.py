"""`reconcile`, `report` and `complete`: reports, made and stored, and how far a feed is proven.

`report` and `complete` ask the ledger only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import typer

from tallystick.cli.answers import (
    CLEAN,
    COULD_NOT,
    FINDINGS,
    Answer,
    Block,
    WrittenAnswer,
    deliver,
    to_second,
    whole_file,
)
from tallystick.cli.options import (
    AtOption,
    FeedArgument,
    FormatOption,
    JsonOption,
    LevelOption,
    OutOption,
    instant_of,
)
from tallystick.cli.progress import watched
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.identities import FeedName
from tallystick.domain.report.completeness import CompleteBy, Proof
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.held_back import held_back_by
from tallystick.domain.report.looks import CameLate
from tallystick.domain.rules.findings import (
    FAILING_VERDICTS,
    FindingCode,
    Level,
    Outcome,
    outcome_of,
)
from tallystick.domain.rules.registry import RULE_OF
from tallystick.errors import ConfigurationError, ReportMissing
from tallystick.report.documents import Document
from tallystick.report.wording import before_text, by_text, landed_text, late_text
from tallystick.workflows.reconciling import reporting

_FORMS: Final = ("text", "json", "csv", "html")
_BY_SUFFIX: Final = {".txt": "text", ".json": "json", ".csv": "csv", ".html": "html"}
_LEVELS: Final = {1: Level.L1, 2: Level.L2, 3: Level.L3, 4: Level.L4}
_PROOF_CODES: Final = {
    Proof.PROVEN: CLEAN,
    Proof.NOT_PROVEN: FINDINGS,
    Proof.UNKNOWN: COULD_NOT,
}


class CompleteDocument(Document):
    """`complete`."""

    format: str = "tallystick-complete-1"
    feed: str
    at: datetime | None
    """Null when nobody has looked at the broker yet."""
    proof: Literal["proven", "not proven", "unknown"]
    complete_up_to: datetime | None
    complete_window_end: datetime | None
    complete_by: CompleteBy
    late: CameLate | None
    """By record time, what came too late for its own window, or for those before `--at`."""
    newest_look_at: datetime | None
    last_heard: Mapping[str, datetime | None]
    """By level: when the witness answered a reconcile last."""
    partitions_behind: int
    held_back_by: Sequence[str]
    accepted: Sequence[FindingPart]
    """What would hold it back, had not two people accepted it."""


def reconcile(
    context: typer.Context,
    feed: FeedArgument,
    level: LevelOption = 2,
    form: FormatOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare ledger, broker and HDFS. Exit 0 clean, 1 findings, 3 if one of them is silent."""
    deliver(
        lambda: _reconciled(
            stage_of(context), feed, _level(level), form_of(form, out, as_json=as_json), out
        ),
        as_json=as_json or form == "json",
        is_verbatim=True,
    )


def report(
    context: typer.Context,
    feed: FeedArgument,
    at: AtOption = None,
    form: FormatOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the newest stored report, or the newest at T. Exit as its reconcile did."""
    deliver(
        lambda: _reported(
            stage_of(context),
            feed,
            instant_of("--at", at),
            form_of(form, out, as_json=as_json),
            out,
        ),
        as_json=as_json or form == "json",
        is_verbatim=True,
    )


def complete(
    context: typer.Context, feed: FeedArgument, at: AtOption = None, as_json: JsonOption = False
) -> None:
    """Say if everything before T is proven to be landed. Exit 0 yes, 1 no, 3 could not tell."""
    deliver(lambda: _completed(stage_of(context), feed, instant_of("--at", at)), as_json=as_json)


def _level(number: int) -> Level:
    """The level of that number; raises ConfigurationError where there is none."""
    if number not in _LEVELS:
        raise ConfigurationError("--level", number, "1, 2, 3 or 4")
    return _LEVELS[number]


def form_of(form: str | None, out: Path | None, *, as_json: bool) -> str:
    """The report's form, by its option or the file's name.

    Raises ConfigurationError for a form that there is none of, and for two answers at once.
    """
    if form is not None and form not in _FORMS:
        raise ConfigurationError("--format", form, "one of " + ", ".join(_FORMS))
    if as_json and (form or out):
        raise ConfigurationError("--json", "with --format or --out", "one of them")
    if form is None and out is not None and out.suffix:
        if out.suffix not in _BY_SUFFIX:
            accepted = f"a file with one of {', '.join(_BY_SUFFIX)}, or --format beside it"
            raise ConfigurationError("--out", str(out), accepted)
        return _BY_SUFFIX[out.suffix]
    return "json" if as_json else form or "text"


def _reconciled(
    stage: Stage, name: str, level: Level, form: str, out: Path | None
) -> WrittenAnswer:
    from tallystick.workflows.reconciling import reconciliation  # with adapters that others spare

    feed = stage.feed(name)
    with watched(stage, feed, f"reconciling {name}", logging.ERROR) as services:
        made = reporting.report_of(services, reconciliation.reconcile(services, level))
        reporting.store_report(services, made)
    return written(made, form, out)


def _reported(
    stage: Stage, name: str, at: datetime | None, form: str, out: Path | None
) -> WrittenAnswer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.report_at(FeedName(name), at)
    if found is None:
        when = f" at or before {at.isoformat()}" if at else ""
        raise ReportMissing(f"feed {name} has no stored report{when}.")
    return written(found, form, out)


def written(document: ReportDocument, form: str, out: Path | None) -> WrittenAnswer:
    """The report's face: on standard output, or whole in a file."""
    from tallystick.report.faces import face_of  # pandas takes a second, other commands need none

    text, code = face_of(document, form), exit_code_of_report(document)
    if out is None:
        return WrittenAnswer(text, code)
    with whole_file(out) as file:
        file.write(text)
    return WrittenAnswer("", code, [f"The report is in {out}."])


def _completed(stage: Stage, name: str, at: datetime | None) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, topic):
        found = reporting.feed_completeness(ledger, FeedName(name), at)
        accepted = ledger.told_findings(found.accepted)
    proven = found.proven
    instant = at or proven.newest_look_at
    proof = proven.proof_of(instant) if instant else Proof.UNKNOWN
    document = CompleteDocument(
        feed=name,
        at=instant,
        proof=proof.value,
        complete_up_to=proven.up_to,
        complete_window_end=found.window_end,
        complete_by=proven.by,
        late=found.late,
        newest_look_at=proven.newest_look_at,
        last_heard={level.value: each.heard_at for level, each in found.heard.items()},
        partitions_behind=len(proven.holding_back(instant)) if instant else 0,
        held_back_by=held_back_by(topic, proven, instant, found.numbers)
        if instant and proof is not Proof.PROVEN
        else (),
        accepted=accepted,
    )
    return Answer(document, _complete_view(document), _PROOF_CODES[proof])


def exit_code_of_report(report: ReportDocument) -> int:
    """A proven trouble is one, whoever was silent; silence alone is `could not tell`."""
    found = ((RULE_OF[FindingCode(each.code)], each.standing_verdict) for each in report.findings)
    if outcome_of(found) is Outcome.TROUBLE:
        return FINDINGS
    # Of a partition nothing may be proven, though nothing was found.
    is_told = report.is_complete and report.verdict not in FAILING_VERDICTS
    return CLEAN if is_told else COULD_NOT


def _complete_view(document: CompleteDocument) -> list[Block]:
    """Shows if everything up to the instant is proven, and what is not."""
    at = to_second(document.at) if document.at else "any instant"
    before = before_text(document.complete_by, at)
    said = {
        "proven": f"Everything {before} is {landed_text(document.accepted)}.",
        "not proven": f"Not everything {before} is proven to be landed.",
        "unknown": f"It is unknown if everything {before} is landed.",
    }[document.proof]
    up_to = document.complete_up_to
    end = document.complete_window_end
    reach = (
        f"Complete up to {to_second(up_to)}{by_text(document.complete_by)}"
        + (f", every window to {end.isoformat()}." if end else ".")
        if up_to
        else "Complete up to: unknown."
    )
    return [
        f"Feed {document.feed}: {said}",
        reach,
        *([late_text(document.late)] if document.late else []),
        f"Storage was heard last: {to_second(document.last_heard.get('L2'))}.",
        *(f"  {each}" for each in document.held_back_by),
        *(
            [f"next: It has no plan yet: tallystick land {document.feed}"]
            if document.newest_look_at is None and document.complete_by is CompleteBy.READABLE
            else []
        ),
    ]
