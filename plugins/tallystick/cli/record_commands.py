"""`batches` and `files`: what is on record. Asks the ledger only."""

from __future__ import annotations

import typer

from tallystick.cli.answers import Answer, deliver
from tallystick.cli.documents import BatchesDocument, FilesDocument
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.parts import batch_part, file_parts
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.views import batches_view, files_view
from tallystick.domain.identities import FeedName


def batches(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's batches with state, attempts, ranges and holes. Asks the ledger only."""
    deliver(lambda: _batches(stage_of(context), feed), as_json=as_json)


def files(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """List the feed's committed files with their offsets. Asks the ledger only."""
    deliver(lambda: _files(stage_of(context), feed), as_json=as_json)


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
