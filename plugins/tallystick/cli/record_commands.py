"""`batches`, `files` and `reconcile`: what is on record, and if it is true."""

from __future__ import annotations

import logging

import typer

from tallystick.cli.answers import CLEAN, COULD_NOT, FINDINGS, Answer, deliver
from tallystick.cli.documents import BatchesDocument, FilesDocument, ReconcileDocument
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.parts import batch_part, file_parts, finding_part, partition_part
from tallystick.cli.progress import told
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.views import batches_view, files_view, reconcile_view
from tallystick.domain.findings import FAILING_VERDICTS, FindingCode
from tallystick.domain.identities import FeedName
from tallystick.workflows import reconciliation


def batches(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's batches with state, attempts, ranges and holes. Asks the ledger only."""
    deliver(lambda: _batches(stage_of(context), feed), as_json=as_json)


def files(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's committed files with their offsets. Asks the ledger only."""
    deliver(lambda: _files(stage_of(context), feed), as_json=as_json)


def reconcile(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """Compare ledger, broker and HDFS. Exit 0 clean, 1 findings, 3 when one of them is silent."""
    deliver(lambda: _reconciled(stage_of(context), feed), as_json=as_json)


def _batches(stage: Stage, name: str) -> Answer:
    stage.feed(name)  # a mistyped name is told, not answered with an empty list
    with stage.ledger() as ledger:
        found = ledger.batches(FeedName(name))
    document = BatchesDocument(feed=name, batches=[batch_part(each) for each in found])
    return Answer(document, batches_view(document))


def _files(stage: Stage, name: str) -> Answer:
    stage.feed(name)  # a mistyped name is told, not answered with an empty list
    with stage.ledger() as ledger:
        found = ledger.files(FeedName(name))
    parts = [part for each in found for part in file_parts(each)]
    document = FilesDocument(feed=name, files=parts)
    return Answer(document, files_view(document))


def _reconciled(stage: Stage, name: str) -> Answer:
    feed = stage.feed(name)
    with told(f"reconciling {name}", logging.ERROR), stage.services(feed) as services:
        report = reconciliation.reconcile(services)
    document = ReconcileDocument(
        feed=report.feed,
        topic=report.topic,
        taken_at=report.taken_at,
        levels=[each.value for each in report.levels],
        verdict=report.verdict.value,
        is_complete=report.is_complete,
        findings=[finding_part(each) for each in report.findings],
        partitions=[partition_part(each) for each in report.partitions],
    )
    return Answer(document, reconcile_view(document), _exit_code(report))


def _exit_code(report: reconciliation.ReconcileReport) -> int:
    """A proven trouble is one, whoever was silent; silence alone is `could not tell`."""
    failing = [each for each in report.findings if each.verdict in FAILING_VERDICTS]
    if any(each.code is not FindingCode.COULD_NOT_TELL for each in failing):
        return FINDINGS
    return CLEAN if report.is_complete and not failing else COULD_NOT
