"""`batches` and `files`: what is on record, and where a record is. Asks the ledger only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import typer

from tallystick.cli.answers import Answer, Block, Table, deliver, hole_count
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.identities import FeedName
from tallystick.errors import ConfigurationError
from tallystick.report.batch_parts import BatchPart, FilePart, batch_part, file_parts
from tallystick.report.documents import Document
from tallystick.report.whereabouts import FOUND_BY, FindDocument, whereabouts
from tallystick.report.wording import counted, grouped, window_text


class BatchesDocument(Document):
    """`batches`."""

    format: str = "tallystick-batches-1"
    feed: str
    batches: Sequence[BatchPart]


class FilesDocument(Document):
    """`files`: one entry for each file and partition."""

    format: str = "tallystick-files-1"
    feed: str
    file_count: int
    """Each file once, however many partitions it holds."""
    total_bytes: int
    """Of all files, each once."""
    files: Sequence[FilePart]


def batches(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's batches with state, attempts, ranges and holes. Asks the ledger only."""
    deliver(lambda: _batches(stage_of(context), feed), as_json=as_json)


FindOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--find",
        metavar="WHAT",
        help="Only where this is: \"orders-3 41007\", an instant, a batch's id, a file's name.",
    ),
]


def files(
    context: typer.Context, feed: FeedArgument, what: FindOption = None, as_json: JsonOption = False
) -> None:
    """List the feed's committed files with their offsets, or find one. Asks the ledger only."""
    stage = stage_of(context)
    deliver(
        lambda: _files(stage, feed) if what is None else _find(stage, feed, what), as_json=as_json
    )


def _batches(stage: Stage, name: str) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.batches(FeedName(name))
    document = BatchesDocument(feed=name, batches=[batch_part(each) for each in found])
    return Answer(document, batches_view(document))


def _files(stage: Stage, name: str) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.files(FeedName(name))
    parts = [part for each in found for part in file_parts(each)]
    document = FilesDocument(
        feed=name,
        file_count=len(found),
        total_bytes=sum(each.file.length_bytes for each in found),
        files=parts,
    )
    return Answer(document, files_view(document))


def _find(stage: Stage, name: str, what: str) -> Answer:
    with stage.ledger_of_feed(name) as (ledger, _):
        document = whereabouts(ledger, FeedName(name), what)
    if document is None:
        raise ConfigurationError("--find", what, FOUND_BY)
    return Answer(document, find_view(document))


def find_view(document: FindDocument) -> list[Block]:
    """Where it is, and in which files."""
    blocks: list[Block] = []
    for place in document.places:
        batch = f" Batch {place.batch_id}." if place.batch_id else ""
        blocks += [f"{place.state.value}: {place.said}{batch}"]
        blocks += [f"  {path}" for path in dict.fromkeys(each.path for each in place.files)]
    return [*blocks, *([document.about] if document.about else [])]


def batches_view(document: BatchesDocument) -> list[Block]:
    """All batches, one row each."""
    if not document.batches:
        return [f"Feed {document.feed} has no batch yet."]
    headers = (
        "batch", "state", "gen#", "window (UTC)", "parts#", "offsets#", "rows#", "holes#", "tries#"
    )  # fmt: skip
    rows = [
        [
            each.batch_id,
            "replaced" if each.is_replaced else each.state,
            str(each.generation),
            window_text(each.window),
            grouped(len(each.ranges)),
            grouped(each.offsets),
            grouped(each.rows),
            hole_count(each.holes),
            str(len(each.attempts)),
        ]
        for each in document.batches
    ]
    held = [
        f"Batch {each.batch_id} is held by {each.held_by}."
        for each in document.batches
        if each.held_by
    ]
    replaced = [
        f"Of batch {each.batch_id} {'all' if each.is_replaced else 'some files'} are"
        f" replaced by batch {' and '.join(each.replaced.by)}."
        for each in document.batches
        if each.replaced
    ]
    return [Table(headers, rows), *held, *replaced]


def files_view(document: FilesDocument) -> list[Block]:
    """All committed files, one row for each partition in each."""
    if not document.files:
        return [f"Feed {document.feed} has no committed file yet."]
    headers = ("partition#", "from#", "until#", "rows#", "bytes#", "published", "path")
    rows: list[list[str]] = []
    told: set[str] = set()
    for each in document.files:
        # The length is the whole file's: it stands once, so that who adds up gets the right sum.
        length = "" if each.path in told else grouped(each.bytes)
        told.add(each.path)
        rows.append(
            [
                str(each.partition),
                grouped(each.from_offset),
                grouped(each.until_offset),
                grouped(each.rows),
                length,
                "yes" if each.published else "no",
                each.path,
            ]
        )
    many = counted("file", document.file_count)
    return [Table(headers, rows), f"{many}, {grouped(document.total_bytes)} bytes."]
