"""Compares landed rows with the records that the second reader reads from the broker.

A slice is compared as far as both sides have it. What can't be compared is said, and stops nothing:
whatever it would have shown was proven by others before, or will be by the next sample.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.sampling import SampleSize
from tallystick.domain.rows.second_read import SeenRecord, SliceRead, differences, without_untimed
from tallystick.domain.rules.c3_rows_differ import ComparedSlice
from tallystick.ledger.scrubs import TakenSample
from tallystick.ports.broker import SecondReader
from tallystick.workflows.services import Services
from tallystick.workflows.stored.readers_tree import ask_all, asking


@dataclass(frozen=True, slots=True)
class LandedRows:
    """Where rows lie, and which of them are the batch's."""

    directory: str
    files: Sequence[LandedFile]
    isolation: Isolation


def compared_slices(
    services: Services, reader: SecondReader, place: LandedRows, slices: Sequence[OffsetRange]
) -> Sequence[ComparedSlice]:
    """Each slice as both sides have it.

    Broker and storage are asked at the same time. Raises SourceError, StorageError.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="landed-rows") as pool:
        rows = pool.submit(_rows, services, place, slices)
        return _judged(services, reader.read(slices, place.isolation), rows.result())


def _judged(
    services: Services,
    reads: Sequence[SliceRead],
    rows: Mapping[int, Sequence[SeenRecord]],
) -> Sequence[ComparedSlice]:
    """What a compacted topic has cleaned since is no difference; asked only where it matters.

    A policy that was `compact` in some look may have cleaned what was there then.
    """
    found = []
    offsets = {number: [each.offset for each in theirs] for number, theirs in rows.items()}
    for each in reads:
        number = each.asked.partition.partition
        first, until = (
            bisect_left(offsets.get(number, ()), offset)
            for offset in (each.asked.from_offset, each.asked.until_offset)
        )
        landed = rows.get(number, ())[first:until]
        read = without_untimed(each, landed)
        told = differences(read, landed)
        if any(one.served is None for one in told):
            now = services.broker.snapshot(each.asked.partition.topic)
            cleaned = (
                each.asked
                if now.is_compacted
                else services.ledger.cleaned_part(services.feed_name, now.topic_id, each.asked)
            )
            told = differences(read, landed, cleaned)
        found.append(ComparedSlice(read, told))
    return found


def _rows(
    services: Services, place: LandedRows, slices: Sequence[OffsetRange]
) -> Mapping[int, Sequence[SeenRecord]]:
    """The landed rows of the slices, by partition, and there by offset."""

    def rows_of(file: LandedFile) -> list[tuple[int, SeenRecord]]:
        held = [
            each
            for each in slices
            if any(
                one.meets(each.partition.partition, each.from_offset, each.until_offset)
                for one in file.slices
            )
        ]
        if not held:
            return []
        return list(services.store.landed_slices(place.directory, file.name, held))

    rows: dict[int, list[SeenRecord]] = {}
    with asking() as pool:
        for of_file in ask_all(pool, rows_of, place.files):
            for partition, record in of_file:
                rows.setdefault(partition, []).append(record)
    for theirs in rows.values():
        theirs.sort(key=attrgetter("offset"))
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
