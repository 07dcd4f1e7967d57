"""Which batch and which file hold a record: by partition and offset, by time, or by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.report.whereabouts import (
    FileSought,
    LogSeen,
    OffsetRecord,
    OffsetSought,
    Place,
    file_sought,
    offset_sought,
    place_of,
)
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.overview import BatchHead, FeedHead
from tallystick.report.batch_parts import FilePart, file_parts
from tallystick.report.documents import Document, Part
from tallystick.report.wording import instant_text, window_text, with_capital
from tallystick.settings import notation

FOUND_BY: Final = (
    "a partition and an offset (orders-3 41007), an instant with its offset from UTC"
    " (2026-11-28T10:00Z), a batch's id, or a file's name"
)
WINDOWS: Final = (
    "Each record lies under its own time's window; one that came late under a later one."
)
PLANS: Final = (
    "The first plan after an instant lands what the log had then; where that was more than one run"
    " takes, the next ones do."
)


class PlacePart(Part):
    """Where what was asked for is, or why it is nowhere."""

    state: Place
    said: str
    generation: int | None = None
    """The life of the log, for an offset."""
    batch_id: BatchId | None = None
    files: Sequence[FilePart] = ()
    """Those that hold it, each with what it has of the partition."""


class FindDocument(Document):
    """`files --find`: the answer to "where is it"."""

    format: str = "tallystick-find-1"
    feed: str
    asked: str
    places: Sequence[PlacePart]
    about: str = ""
    """How a time leads to a batch."""


def whereabouts(ledger: Ledger, feed: FeedName, text: str) -> FindDocument | None:
    """Where it is; None for a text that asks for nothing of this feed, see `FOUND_BY`."""
    asked, about = text.strip(), ""
    heads = ledger.feed_heads(feed, most_runs=1)
    if not heads:
        return None
    if at := _instant(asked):
        is_by_window = _is_by_window(heads[0])
        about = WINDOWS if is_by_window else PLANS
        places = _places_at(ledger, heads[0], at, by_window=is_by_window)
    elif (offset := offset_sought(asked)) and offset.topic in (None, heads[0].topic):
        places = _places_of_offset(ledger, heads[0], offset)
    elif file := file_sought(asked):
        places = [_place_of_file(ledger, feed, file)]
    else:
        return None
    return FindDocument(feed=feed, asked=asked, places=places, about=about)


def _instant(text: str) -> datetime | None:
    try:
        return notation.instant(text)
    except ValueError:
        return None


def _is_by_window(head: FeedHead) -> bool:
    return head.described is not None and head.described.until == "window_end"


def _places_of_offset(ledger: Ledger, head: FeedHead, sought: OffsetSought) -> list[PlacePart]:
    records = ledger.offset_records(head.feed, sought.partition, sought.offset)
    if not records:
        words = f"The feed knows no partition {sought.partition}."
        return [PlacePart(state=Place.NOT_LANDED, said=words)]
    # An ended log in which nobody has seen it tells nothing, but where there is no other one.
    told = [each for each in records if each.state or not each.has_ended] or records[:1]
    return [_place_in_log(ledger, head, sought, each) for each in told]


def _place_in_log(
    ledger: Ledger, head: FeedHead, sought: OffsetSought, record: OffsetRecord
) -> PlacePart:
    state, words = place_of(sought.offset, record, _seen(ledger, head, sought.partition, record))
    files: list[FilePart] = []
    batch_id = record.batch_id
    if record.state == "committed":
        run = (sought.offset, sought.offset + 1)
        holding = (
            [batch_id]
            if batch_id
            else ledger.batches_holding(head.feed, record.ordinal, sought.partition, *run)
        )
        files = [
            part
            for each in holding
            for file in ledger.files(batch_id=each)
            if not file.replaced_by
            for part in file_parts(file)
            if part.partition == sought.partition
            and part.from_offset <= sought.offset < part.until_offset
        ]
        batch_id = batch_id or (BatchId(files[0].batch_id) if files else None)
        if state is Place.HOLE:
            files = []
        elif not files:
            state, words = Place.UNKNOWN, "is committed, but no file on record holds it"
        elif not all(each.published for each in files):
            words = "is committed, and readers see it once its batch is published"
    return PlacePart(
        state=state,
        said=f"Offset {sought.offset} of {head.topic}-{sought.partition} {words}.",
        generation=record.ordinal,
        batch_id=batch_id,
        files=files,
    )


def _seen(ledger: Ledger, head: FeedHead, partition: int, record: OffsetRecord) -> LogSeen | None:
    shown = ledger.newest_bounds(head.feed)
    if shown is None or shown.topic_id != record.topic_id:
        return None
    if partition not in shown.high_watermarks:
        return None
    high = shown.high_watermarks[partition]
    reads_all = head.described and head.described.isolation is Isolation.READ_UNCOMMITTED
    return LogSeen(
        shown.looked_at,
        high if reads_all else shown.last_stable_offsets[partition],
        shown.due_ends[partition],
        high,
    )


def _places_at(ledger: Ledger, head: FeedHead, at: datetime, *, by_window: bool) -> list[PlacePart]:
    found = _standing(ledger, head.feed, ledger.batches_at(head.feed, at, by_window=by_window))
    if found:
        return [_place_of_batch(each) for each in found]
    looked_at, border = head.looked_at, head.border_at
    if by_window and (border is None or at >= border):
        words = f"The window of {instant_text(at)} was not over when Kafka was asked last"
    elif by_window:
        words = f"No batch has a window that holds {instant_text(at)}: nothing was due in it"
    elif looked_at and looked_at > at:
        words = f"No plan since {instant_text(at)} has found anything to land"
    else:
        words = f"Kafka was not asked since {instant_text(at)}"
    return [PlacePart(state=Place.NOT_LANDED, said=f"{words} ({instant_text(looked_at)}).")]


def _standing(ledger: Ledger, feed: FeedName, batch_ids: Sequence[BatchId]) -> Sequence[BatchHead]:
    """These batches, oldest first, in place of replaced ones those that hold their offsets now."""
    known: dict[BatchId, BatchHead] = {}
    left = list(batch_ids)
    while left:
        heads = ledger.batch_heads(feed, batch_ids=left, most=len(left))
        known |= {each.batch_id: each for each in heads}
        replaced = [each for head in heads if head.replaced for each in head.replaced.by]
        left = [each for each in replaced if each not in known]
    standing = [each for each in known.values() if not (each.replaced and each.replaced.is_whole)]
    return sorted(standing, key=lambda each: each.number)


def _place_of_batch(head: BatchHead) -> PlacePart:
    window = f", of the window {window_text(head.window)} (UTC)" if head.window else ""
    state, words = Place.LANDED, f"{with_capital(head.state)}{window}."
    if head.committed_at is None:
        state = Place.IN_FLIGHT
    elif not head.rows and not head.holes:  # a repair that gives files up
        state, words = Place.LOST, "Given up: what was in the files that it replaced is lost."
    return PlacePart(state=state, said=words, batch_id=head.batch_id)


def _place_of_file(ledger: Ledger, feed: FeedName, sought: FileSought) -> PlacePart:
    batch_id = sought.batch_id
    if ledger.feed_of_batch(batch_id) != feed:
        words = f"Batch {batch_id} is none of this feed: no committed file has that name."
        return PlacePart(state=Place.UNKNOWN, said=words)
    of_batch = [part for each in ledger.files(batch_id=batch_id) for part in file_parts(each)]
    files = [each for each in of_batch if each.path.endswith(f"/{sought.name}") or not sought.name]
    if sought.name and not files:
        words = (
            f"Batch {batch_id} has committed no such file: an attempt that died may have left it."
        )
        return PlacePart(state=Place.UNKNOWN, said=words, batch_id=batch_id)
    [head] = ledger.batch_heads(feed, batch_ids=[batch_id], most=1)
    if gone := {each.replaced_by for each in files if each.replaced_by}:
        by = " and ".join(sorted(gone))
        words = f"Readers read it no more: a repair has taken its place, batch {by}."
        repairs = ledger.batch_heads(feed, batch_ids=sorted(gone), most=len(gone))
        is_lost = any(_place_of_batch(each).state is Place.LOST for each in repairs)
        state = Place.LOST if is_lost else Place.LANDED
        return PlacePart(state=state, said=words, batch_id=batch_id, files=files)
    return _place_of_batch(head).but(files=files)
