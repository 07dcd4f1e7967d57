"""`repair FEED --moved OLD NEW`: batches that lie below another root by now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tallystick.cli.answers import CLEAN, FINDINGS, Answer
from tallystick.cli.documents import Document, Part
from tallystick.cli.progress import watched
from tallystick.cli.stage import Stage
from tallystick.workflows.repairing.moved_root import enter_moved


class LeftPart(Part):
    """A batch's directory that the ledger keeps where it was, and why."""

    directory: str
    reason: str


class MovedDocument(Document):
    """`repair --moved`: what is, or would be, entered."""

    format: Literal["tallystick-moved-1"] = "tallystick-moved-1"
    feed: str
    topic: str
    is_dry_run: bool
    from_root: str
    to_root: str
    moved: Sequence[str]
    """Ids of batches."""
    left: Sequence[LeftPart]


def moved_entered(stage: Stage, name: str, roots: tuple[str, str], *, dry_run: bool) -> Answer:
    """The new place on record; or what a dry run would enter."""
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
        left=[LeftPart(directory=each, reason=why) for each, why in report.left.items()],
    )
    return Answer(document, _view(document), FINDINGS if document.left else CLEAN)


def _view(document: MovedDocument) -> list[str]:
    dry = ", a dry run: nothing is changed" if document.is_dry_run else ""
    would = "would be " if document.is_dry_run else ""
    many = "1 batch" if len(document.moved) == 1 else f"{len(document.moved)} batches"
    return [
        f"Feed {document.feed}, topic {document.topic}: repair{dry}.",
        f"{many} {would}entered below {document.to_root}, whole, in place of {document.from_root}",
        *(f"{each.directory} is left: {each.reason}" for each in document.left),
    ]
