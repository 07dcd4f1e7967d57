"""How the slices of a batch become files: big ones split, small ones packed together.

1. Every offset is in exactly one scan.
2. A packed file holds whole slices; a scan packs slices of like size only, so no file grows far
   beyond what it is packed to: Spark shares partitions among files by number, not by size.
3. A slice that is worth a file of its own gets one: a file is written by one core.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from tallystick.domain.batches.landing import Scan
from tallystick.domain.batches.polling import stretches
from tallystick.domain.offsets.ranges import OffsetRange

# A slice below this part of the target is small; small ones share files up to the second part. With
# a target of 256 MiB: slices from 8 MiB on stay alone, smaller ones share files of 32 MiB.
_SMALL: Final = 1 / 32
_PACKED: Final = 1 / 8
# Slices whose sizes differ by less than this factor share a scan; the last class takes the rest.
_LIKE_SIZE: Final = 4
_SMALL_CLASSES: Final = 3


def pack(
    ranges: Sequence[OffsetRange],
    *,
    bytes_per_record: float,
    target_file_bytes: int,
    stops_at_ends: bool = False,
) -> tuple[Scan, ...]:
    """The scans of one batch: at most one for big slices and a few for the classes of small ones.

    `bytes_per_record` is what a row takes in a landed file, as far as known. With `stops_at_ends`
    no poll goes beyond the end of a range, which takes a few more scans and files.
    """
    target_records = max(1, int(target_file_bytes / bytes_per_record))
    parts = stretches(ranges) if stops_at_ends else ((None, ranges),)
    return tuple(
        replace(scan, max_poll_records=most)
        for most, each in parts
        for scan in _packed(each, target_records)
    )


def _packed(ranges: Sequence[OffsetRange], target_records: int) -> tuple[Scan, ...]:
    classes: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    for each in sorted(ranges):
        classes[_size_class(each.span, target_records * _SMALL)].append(each)
    return tuple(
        Scan(tuple(classes[size]), target_records, None)
        if size == 0
        else Scan(tuple(classes[size]), None, _file_count(classes[size], target_records))
        for size in sorted(classes)
    )


def _size_class(span: int, small_records: float) -> int:
    """0 for a slice worth a file of its own; then one more for every factor of like size."""
    size = 0
    while span < small_records and size < _SMALL_CLASSES:
        small_records /= _LIKE_SIZE
        size += 1
    return size


def _file_count(ranges: Sequence[OffsetRange], target_records: int) -> int:
    total = sum(each.span for each in ranges)
    return min(len(ranges), ceil(total / max(1, target_records * _PACKED)))
