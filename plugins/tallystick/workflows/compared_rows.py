"""Compares landed rows with the records that the second reader reads from the broker.

A slice is compared as far as both sides have it. What can't be compared is said, and stops nothing:
whatever it would have shown was proven by others before, or will be by the next sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.sampling import SampleSize
from tallystick.domain.rows.second_read import SeenRecord, SliceRead, differences, without_untimed
from tallystick.domain.rules.c3_evidence import ComparedSlice
from tallystick.ports.scrubs import TakenSample
from tallystick.ports.second_reader import SecondReader
from tallystick.workflows.services import Services


@dataclass(frozen=True, slots=True)
class LandedRows:
    """Where rows lie, and which of them are the batch's."""

    directory: str
    files: Sequence[LandedFile]
    isolation: Isolation


def compared_slices(
    services: Services, reader: SecondReader, place: LandedRows, slices: Sequence[OffsetRange]
) -> Sequence[ComparedSlice]:
    """Each slice as both sides have it. Where they differ, the file is read once more, plainly.

    Raises SourceError, StorageError.
    """
    reads = reader.read(slices, place.isolation)
    found = _judged(services, reads, _rows(services, place, slices, by_pages=True))
    differing = [each.read.asked for each in found if each.differences]
    if not differing:
        return found
    plain = _judged(
        services,
        [each.read for each in found if each.differences],
        _rows(services, place, differing, by_pages=False),
    )
    again = {each.read.asked: each for each in plain}
    return [again.get(each.read.asked, each) for each in found]


def _judged(
    services: Services,
    reads: Sequence[SliceRead],
    rows: Mapping[int, Sequence[SeenRecord]],
) -> Sequence[ComparedSlice]:
    """What a compacted topic has cleaned since is no difference; asked only where it matters.

    A policy that was `compact` in some look may have been so when the record went.
    """
    found = []
    for each in reads:
        landed = rows.get(each.asked.partition.partition, ())
        read = without_untimed(each, landed)
        told = differences(read, landed, is_compacted=False)
        if any(one.served is None for one in told):
            now = services.broker.snapshot(each.asked.partition.topic)
            may_be_cleaned = now.is_compacted or services.ledger.was_compacted(
                services.feed_name, now.topic_id
            )
            told = differences(read, landed, is_compacted=may_be_cleaned)
        found.append(ComparedSlice(read, told))
    return found


def _rows(
    services: Services, place: LandedRows, slices: Sequence[OffsetRange], *, by_pages: bool
) -> Mapping[int, Sequence[SeenRecord]]:
    """The landed rows of the slices, by partition."""
    rows: dict[int, list[SeenRecord]] = {}
    for file in place.files:
        held = [
            each
            for each in slices
            if any(
                one.meets(each.partition.partition, each.from_offset, each.until_offset)
                for one in file.slices
            )
        ]
        if held:
            for partition, record in services.store.landed_slices(
                place.directory, file.name, held, by_pages=by_pages
            ):
                rows.setdefault(partition, []).append(record)
    return rows


def taken_sample(
    turn: int, size: SampleSize, compared: Sequence[ComparedSlice], reason: str | None = None
) -> TakenSample:
    """What was compared, as it is on record; `reason` says why nothing was."""
    reasons = [f"{each.read.asked}: {each.read.reason}" for each in compared if each.read.reason]
    not_shown = sum(len(each.read.not_shown) for each in compared)
    if not_shown:
        reasons.append(f"{not_shown} records whose time, or header names, librdkafka can't show")
    more = f" and {len(reasons) - 3} more slices" if len(reasons) > 3 else ""
    return TakenSample(
        turn=turn,
        slices=size.slices,
        span=size.span,
        offsets=sum(each.read.answered_count for each in compared),
        not_compared=reason or ("; ".join(reasons[:3]) + more if reasons else None),
    )
