"""What a feed's file says otherwise than what the ledger has of the feed: one comparison for every
command that reads the file.

1. What would mix offsets, or hide what is found, is refused; all else is said, and goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import FeedName

ONLY_TOPIC: Final = "{}, which this feed has landed so far; give another topic a new feed"


@dataclass(frozen=True, slots=True)
class FeedInFile:
    """What a feed's file says of where, when and how it lands."""

    topic: str
    root: str
    isolation: Isolation
    until: str
    cron: str
    timezone: str
    complete_within_seconds: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeedOnRecord:
    """What the ledger has of the same feed."""

    topic: str | None = None
    """None before the feed's first plan."""
    roots: Sequence[str] = ()
    """Below which it has batches."""
    isolations: Collection[Isolation] = ()
    """Of its committed batches."""
    others: Collection[str] = ()
    """Feeds that have landed a topic of the file's name, and are not retired."""
    retired: str | None = None
    """By whom, when and why; None for a feed that lives."""


@dataclass(frozen=True, slots=True)
class FeedEdit:
    """One thing that the file says otherwise."""

    key: tuple[str, ...]
    """In the file."""
    value: str
    words: str
    """What is accepted, where it is refused; a sentence else."""
    is_refused: bool = False


def feed_edits(
    feed: FeedName, file: FeedInFile, record: FeedOnRecord, declared: Collection[str] | None
) -> list[FeedEdit]:
    """What differs between the file and the ledger; empty where nothing does.

    `declared` are the feeds that have a file; None where nobody knows.
    """
    source, root = ("source", "topic"), ("target", "root")
    if record.retired:
        words = f"another name, for a feed of this one was retired by {record.retired}"
        return [FeedEdit(("feed",), feed, words, is_refused=True)]
    if record.topic not in (None, file.topic):
        return [FeedEdit(source, file.topic, ONLY_TOPIC.format(record.topic), is_refused=True)]
    edits = []
    if record.roots and file.root not in record.roots:
        edits.append(
            FeedEdit(
                root,
                file.root,
                f"target.root is {file.root}, and all batches of this feed lie below"
                f" {', '.join(record.roots)}: new ones will lie below the new root alone, and no"
                " reader of one directory finds the rows of the other.",
            )
        )
    if words := _isolation_words(file.isolation, record.isolations):
        edits.append(FeedEdit(("source", "isolation"), file.isolation.value, words))
    if declared is not None and not record.roots:
        edits += [
            FeedEdit(
                ("feed",),
                feed,
                f"Feed {other} has landed a topic named {file.topic}, and has no file any more. If"
                f" it was renamed to {feed}, all will be landed once more beside its old"
                f" directory: give the file its old name back. If it has ended:"
                f" tallystick feed retire {other}",
            )
            for other in sorted(record.others)
            if other not in declared
        ]
    return edits


def _isolation_words(isolation: Isolation, landed: Collection[Isolation]) -> str:
    if len({*landed, isolation}) < 2:
        return ""
    if len(landed) > 1:
        return (
            f"Batches of two isolations lie in this feed's directory, and source.isolation is"
            f" {isolation.value} now: some of them have the records of aborted transactions, others"
            " lack them. Each batch's _tally.json names its isolation."
        )
    [before] = landed
    return (
        f"source.isolation is {isolation.value}, and all batches of this feed were read"
        f" {before.value}: what is landed from now on"
        f" {'has' if isolation is Isolation.READ_UNCOMMITTED else 'lacks'} the records of aborted"
        " transactions, and earlier batches stay as they are."
    )
