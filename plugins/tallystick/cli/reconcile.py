"""`reconcile`: what ledger, broker and storage show beside one another."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import typer

from tallystick.cli.answers import Answer, WrittenAnswer, deliver
from tallystick.cli.documents import Document, Instant, Part, ShownFinding, holes_part
from tallystick.cli.findings import finding_lines
from tallystick.cli.options import FeedArgument, FormatOption, JsonOption, LevelOption, OutOption
from tallystick.cli.progress import watched
from tallystick.cli.report import exit_code_of_report, form_of, written
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.text import Block, Table, counted
from tallystick.domain.report.finding_part import finding_part
from tallystick.domain.rules.findings import Level
from tallystick.errors import ConfigurationError
from tallystick.report.wording import grouped
from tallystick.workflows.comparing.second_reading import SecondReadReport
from tallystick.workflows.reconciling import reconciliation, reporting
from tallystick.workflows.reconciling.reconcile_report import PartitionAccount
from tallystick.workflows.reconciling.scrubbing import ScrubReport

_LEVELS: Final = {1: Level.L1, 2: Level.L2, 3: Level.L3, 4: Level.L4}


class PartitionPart(Part):
    """One partition as ledger, broker and storage show it; the broker's part is null without it."""

    partition: int
    generation: int
    state: str
    verdict: str
    first_offset: int
    frontier: int
    log_start_offset: int | None
    readable_until: int | None
    lag: int | None
    rows: int
    holes: Mapping[str, int]
    lost: int


class FullReadsPart(Part):
    """Counts what a look at level 3 has read in full, and what waits."""

    batches_read: int
    bytes_read: int
    fingerprints_taken: int
    """Of slices that were never read before."""
    batches_due: int
    batches_never_read: int
    batches: int
    """All that are published."""


class SecondReaderPart(Part):
    """Counts what a look at level 4 has compared, and what waits."""

    batches_compared: int
    offsets_compared: int
    batches_due: int
    """Which the broker still has, and which were not compared this time."""
    not_compared: Sequence[str]
    """What could not be compared, and why; the first ones."""


class ReconcileDocument(Document):
    """`reconcile`."""

    format: Literal["tallystick-reconcile-1"] = "tallystick-reconcile-1"
    feed: str
    topic: str
    taken_at: Instant
    levels: Sequence[str]
    verdict: str
    is_complete: bool
    full_reads: FullReadsPart | None
    """None below level 3."""
    second_reader: SecondReaderPart | None
    """None below level 4, and where the feed has none."""
    findings: Sequence[ShownFinding]
    partitions: Sequence[PartitionPart]
    warnings: Sequence[str]
    """What the feed's file says otherwise than the ledger."""


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
        is_verbatim=form is not None,
    )


def _level(number: int) -> Level:
    """The level of that number; raises ConfigurationError where there is none."""
    if number not in _LEVELS:
        raise ConfigurationError("--level", number, "1, 2, 3 or 4")
    return _LEVELS[number]


def _reconciled(
    stage: Stage, name: str, level: Level, form: str | None, out: Path | None
) -> Answer | WrittenAnswer:
    feed = stage.feed(name)
    with watched(stage, feed, f"reconciling {name}", logging.ERROR) as services:
        found = reconciliation.reconcile(services, level)
        kept = reporting.report_of(services, found)
        reporting.store_report(services, kept)
        on_record = services.ledger.findings(services.feed_name)
    stored = {each.finding.key: each for each in on_record}
    code = exit_code_of_report(kept)
    if form is not None:
        return written(kept, form, out, code)
    document = ReconcileDocument(
        feed=found.feed,
        topic=found.topic,
        taken_at=found.taken_at,
        levels=[each.value for each in found.levels],
        verdict=found.verdict.value,
        is_complete=found.is_complete,
        full_reads=_full_reads_part(found.scrub) if found.scrub else None,
        second_reader=_second_reader_part(found.second_read) if found.second_read else None,
        findings=[finding_part(each, stored.get(each.key)) for each in found.findings],
        partitions=[_partition_part(each) for each in found.partitions],
        warnings=found.warnings,
    )
    return Answer(document, _reconcile_view(document), code)


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


def _partition_part(account: PartitionAccount) -> PartitionPart:
    """One partition's account."""
    generation = account.account
    return PartitionPart(
        partition=generation.partition.partition,
        generation=generation.ordinal,
        state=generation.state.value,
        verdict=account.verdict.value,
        first_offset=generation.first_offset,
        frontier=generation.frontier,
        log_start_offset=account.log_start_offset,
        readable_until=account.readable_until,
        lag=account.lag,
        rows=account.record_count,
        holes=holes_part(account.holes),
        lost=account.lost_count,
    )


def _reconcile_view(document: ReconcileDocument) -> list[Block]:
    """The verdict, every partition's account, and every finding with its next step."""
    asked = ", ".join(document.levels)
    blocks: list[Block] = [
        f"Feed {document.feed}, topic {document.topic}: {document.verdict} (levels {asked})."
    ]
    blocks += [f"warning: {each}" for each in document.warnings]
    if not document.is_complete:
        blocks.append("A witness did not answer: what it would have shown is UNKNOWN.")
    rows = [
        [
            f"{document.topic}-{each.partition}",
            str(each.generation),
            f"[{grouped(each.first_offset)}, {grouped(each.frontier)})",
            each.verdict,
            f"{grouped(each.rows)} rows{_other_words({**each.holes, 'lost': each.lost})}",
            grouped(each.lag),
        ]
        for each in document.partitions
    ]
    if rows:
        headers = ("partition", "generation#", "accounted", "verdict", "evidence", "lag#")
        blocks.append(Table(headers, rows))
    read = document.full_reads
    if read:
        blocks.append(
            f"Read in full: {counted('batch', read.batches_read)},"
            f" {grouped(read.bytes_read)} bytes, {grouped(read.fingerprints_taken)} fingerprints"
            f" taken. {grouped(read.batches_due)} still due; {grouped(read.batches_never_read)} of"
            f" {grouped(read.batches)} never read."
        )
    second = document.second_reader
    if second:
        blocks.append(
            f"Second reader: {grouped(second.offsets_compared)} offsets of"
            f" {counted('batch', second.batches_compared)} compared with the broker;"
            f" {grouped(second.batches_due)} wait for their turn."
        )
        blocks += [f"  not compared: {each}" for each in second.not_compared]
    return [*blocks, *finding_lines(document.findings)]


def _other_words(counts: Mapping[str, int]) -> str:
    words = [f"{grouped(count)} {kind}" for kind, count in counts.items() if count]
    return " + " + " + ".join(words) if words else ""
