"""How the slices of a batch become files: big ones split, small ones packed to a target size.

1. Every range is in exactly one scan.
2. A packed file holds whole slices; a scan packs slices of like size only, so no file grows far
   beyond the target: Spark shares partitions among files by number, not by size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import Final

from tallystick.domain.landing import Scan
from tallystick.domain.ranges import OffsetRange

# Slices whose sizes differ by less than this factor share a scan.
_LIKE_SIZE: Final = 4


def pack(
    ranges: Sequence[OffsetRange], *, bytes_per_record: float, target_file_bytes: int
) -> tuple[Scan, ...]:
    """The scans of one batch: at most one for big slices and a few for the classes of small ones.

    `bytes_per_record` is what a row takes in a landed file, as far as known.
    """
    target_records = max(1, int(target_file_bytes / bytes_per_record))
    classes: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    for each in sorted(ranges):
        classes[_size_class(each.span, target_records)].append(each)
    return tuple(
        Scan(tuple(classes[size]), target_records, None)
        if size == 0
        else Scan(tuple(classes[size]), None, _file_count(classes[size], target_records))
        for size in sorted(classes)
    )


def _size_class(span: int, target_records: int) -> int:
    """0 for a slice that fills a file alone; then one more for every factor of like size.

    The last class holds everything below 1/64 of the target: two thousand of those are small still.
    """
    ratio = target_records / span
    size = 0
    while ratio > 2 and size < 4:
        ratio /= _LIKE_SIZE
        size += 1
    return size


def _file_count(ranges: Sequence[OffsetRange], target_records: int) -> int:
    total = sum(each.span for each in ranges)
    return min(len(ranges), max(1, ceil(total / target_records)))
