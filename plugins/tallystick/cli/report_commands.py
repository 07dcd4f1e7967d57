"""`reconcile`, `report` and `complete`: if what is on record is true, and how far it is proven."""

from __future__ import annotations

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Final

import typer

from tallystick.cli.answers import CLEAN, COULD_NOT, FINDINGS, Answer, WrittenAnswer, deliver
from tallystick.cli.documents import (
    CompleteDocument,
    FullReadsPart,
    ReconcileDocument,
    SecondReaderPart,
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
from tallystick.cli.parts import accepted_part, finding_part, partition_part
from tallystick.cli.progress import first_word, told
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.views import complete_view, reconcile_view
from tallystick.domain.identities import FeedName
from tallystick.domain.report.completeness import Proof
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.rules.findings import FAILING_VERDICTS, FindingCode, Level
from tallystick.errors import ConfigurationError, ReportMissing
from tallystick.workflows.committing.second_reading import SecondReadReport
from tallystick.workflows.reconciling import reconciliation, reporting
from tallystick.workflows.reconciling.scrubbing import ScrubReport

_LEVELS: Final = {1: Level.L1, 2: Level.L2, 3: Level.L3, 4: Level.L4}
_FORMS: Final = ("text", "json", "csv", "html")
_BY_SUFFIX: Final = {".txt": "text", ".json": "json", ".csv": "csv", ".html": "html"}
_PROOF_CODES: Final = {
    Proof.PROVEN: CLEAN,
    Proof.NOT_PROVEN: FINDINGS,
    Proof.UNKNOWN: COULD_NOT,
}


def reconcile(
    context: typer.Context,
    feed: FeedArgument,
    level: LevelOption = 2,
    form: FormatOption = None,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare ledger, broker and HDFS. Exit 0 clean, 1 findings, 3 when one of them is silent."""
    deliver(
        lambda: _reconciled(
            stage_of(context), feed, _level(level), _form(form, out, as_json=as_json), out
        ),
        as_json=as_json or form == "json",
        is_verbatim=form is not None,
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
            _form("json" if as_json and form is None else form, out) or "text",
            out,
        ),
        as_json=as_json or form == "json",
        is_verbatim=True,
    )


def complete(
    context: typer.Context, feed: FeedArgument, at: AtOption = None, as_json: JsonOption = False
) -> None:
    """Say if all that was appended before T is proven. Exit 0 yes, 1 no, 3 could not tell."""
    deliver(lambda: _completed(stage_of(context), feed, instant_of("--at", at)), as_json=as_json)


def _form(form: str | None, out: Path | None, *, as_json: bool = False) -> str | None:
    """The report's form, by its option or the file's name; None where no report is asked for.

    Raises ConfigurationError for a form that there is none of, and for two answers at once.
    """
    if form is not None and form not in _FORMS:
        raise ConfigurationError("--format", form, "one of " + ", ".join(_FORMS))
    if as_json and (form or out):
        raise ConfigurationError("--json", "with --format or --out", "one of them")
    if form is None and out is not None:
        if out.suffix and out.suffix not in _BY_SUFFIX:
            accepted = f"a file with one of {', '.join(_BY_SUFFIX)}, or --format beside it"
            raise ConfigurationError("--out", str(out), accepted)
        return _BY_SUFFIX.get(out.suffix, "text")
    return form


def _level(number: int) -> Level:
    """The level of that number; raises ConfigurationError where there is none."""
    if number not in _LEVELS:
        raise ConfigurationError("--level", number, "1, 2, 3 or 4")
    return _LEVELS[number]


def _reconciled(
    stage: Stage, name: str, level: Level, form: str | None, out: Path | None
) -> Answer | WrittenAnswer:
    feed = stage.feed(name)
    with told(f"reconciling {name}", logging.ERROR), stage.services(feed) as services:
        first_word(services)
        found = reconciliation.reconcile(services, level)
        kept = reporting.report_of(services, found)
        reporting.store_report(services, kept)
        stored = services.ledger.findings(services.feed_name)
    numbers = {each.finding.key: each.finding_id for each in stored}
    code = _exit_code(found)
    if form is not None:
        return _written(kept, form, out, code)
    document = ReconcileDocument(
        feed=found.feed,
        topic=found.topic,
        taken_at=found.taken_at,
        levels=[each.value for each in found.levels],
        verdict=found.verdict.value,
        is_complete=found.is_complete,
        full_reads=_full_reads_part(found.scrub) if found.scrub else None,
        second_reader=_second_reader_part(found.second_read) if found.second_read else None,
        findings=[finding_part(each, numbers.get(each.key)) for each in found.findings],
        partitions=[partition_part(each) for each in found.partitions],
    )
    return Answer(document, reconcile_view(document), code)


def _full_reads_part(scrub: ScrubReport) -> FullReadsPart:
    return FullReadsPart(
        batches_read=len(scrub.checked),
        bytes_read=scrub.read_bytes,
        fingerprints_taken=scrub.taken,
        batches_due=scrub.left_due,
        batches_never_read=scrub.standing.never_read,
        batches=scrub.standing.batches,
    )


def _second_reader_part(read: SecondReadReport) -> SecondReaderPart:
    return SecondReaderPart(
        batches_compared=read.batches,
        offsets_compared=read.offsets,
        batches_due=read.left_due,
        not_compared=read.not_compared,
    )


def _reported(
    stage: Stage, name: str, at: datetime | None, form: str, out: Path | None
) -> WrittenAnswer:
    stage.feed(name)  # a mistyped name is told, not answered with an empty list
    with stage.ledger() as ledger:
        found = ledger.report_at(FeedName(name), at)
    if found is None:
        when = f" at or before {at.isoformat()}" if at else ""
        raise ReportMissing(f"feed {name} has no stored report{when}.")
    code = _exit_code(found)
    return _written(found, form, out, code)


def _written(document: ReportDocument, form: str, out: Path | None, code: int) -> WrittenAnswer:
    """The report's face: on standard output, or whole in a file."""
    from tallystick.report.faces import face_of  # pandas takes a second, other commands need none

    text = face_of(document, form)
    if out is None:
        return WrittenAnswer(text, code)
    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise ConfigurationError("--out", str(out), f"a file that can be written ({reason})") from (
            error
        )
    return WrittenAnswer("", code, [f"The report is in {out}."])


def _completed(stage: Stage, name: str, at: datetime | None) -> Answer:
    feed = stage.feed(name)
    with stage.ledger() as ledger:
        found = reporting.feed_completeness(ledger, FeedName(name))
    proven = found.proven
    instant = at or proven.newest_look_at
    proof = proven.proof_of(instant) if instant else Proof.UNKNOWN
    document = CompleteDocument(
        feed=name,
        at=instant,
        proof=proof.value,
        complete_up_to=proven.up_to,
        complete_window_end=found.window_end,
        newest_look_at=proven.newest_look_at,
        partitions_behind=len(proven.holding_back(instant)) if instant else 0,
        held_back_by=reporting.held_back_by(feed.source.topic, proven, instant, found.numbers)
        if instant and proof is not Proof.PROVEN
        else (),
        accepted=[accepted_part(each) for each in found.accepted],
    )
    return Answer(document, complete_view(document), _PROOF_CODES[proof])


def _exit_code(report: reconciliation.ReconcileReport | ReportDocument) -> int:
    """A proven trouble is one, whoever was silent; silence alone is `could not tell`."""
    failing = [each.code for each in report.findings if each.verdict in FAILING_VERDICTS]
    if any(code != FindingCode.COULD_NOT_TELL for code in failing):
        return FINDINGS
    # Of a partition nothing may be proven, though nothing was found.
    is_told = report.is_complete and report.verdict not in FAILING_VERDICTS
    return CLEAN if is_told else COULD_NOT
