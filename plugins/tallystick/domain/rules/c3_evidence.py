"""C3, rows differ: what a finding carries of a difference. Its slices, a digest of each, and the
first few records.

1. `is_as_before` compares all that is on record, not what is shown of it.
2. Evidence is bounded, whatever the records hold and however many differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.second_read import Difference, RecordHead, SeenRecord, SliceRead
from tallystick.domain.rules.findings import Finding

MOST_SHOWN: Final = 3
"""Differences that a finding shows in full; all of them are counted."""
MOST_SLICES: Final = 50


@dataclass(frozen=True, slots=True)
class ComparedSlice:
    """One slice, read by both."""

    read: SliceRead
    differences: tuple[Difference, ...]


def slices_in(finding: Finding) -> tuple[tuple[int, int], ...]:
    """The slices [from, until) in which the finding has seen differences."""
    runs = finding.evidence.get("slices")
    return tuple((int(run[0]), int(run[1])) for run in runs) if isinstance(runs, list) else ()


def _digests_in(finding: Finding) -> Sequence[object]:
    digests = finding.evidence.get("digests")
    return digests if isinstance(digests, list) else ()


def was_compared(partition: int, run: tuple[int, int], compared: Sequence[ComparedSlice]) -> bool:
    """True if both readers have answered for all of the run, in one slice or in several."""
    mine = [each.read for each in compared if each.read.asked.partition.partition == partition]
    answered = OffsetRuns.of((each.from_offset, each.until_offset) for each in mine)
    is_shown = not any(run[0] <= offset < run[1] for each in mine for offset in each.not_shown)
    return is_shown and not OffsetRuns.of([run]).difference(answered)


def is_as_before(
    known: Finding, differing: Sequence[ComparedSlice], compared: Sequence[ComparedSlice]
) -> bool:
    """True if what differs now is what is on record: in each slice the same, and nowhere else.

    Another sample sees other offsets: equal ones change nothing, differing ones make it worse. A
    slice of which a part could not be compared is as it was, if nothing differs in the rest.
    What is on record is the first MOST_SLICES slices: more of them can't stay accepted.
    """
    now = [each for one in differing for each in one.differences]
    recorded = list(zip(slices_in(known), _digests_in(known), strict=False))
    if any(not any(a <= each.offset < b for (a, b), _ in recorded) for each in now):
        return False
    for run, digest in recorded:
        inside = [each for each in now if run[0] <= each.offset < run[1]]
        is_unasked = not inside and not was_compared(known.partition or 0, run, compared)
        if not is_unasked and _digest(inside) != digest:
            return False
    return True


def evidence_of(compared: Sequence[ComparedSlice]) -> Mapping[str, object]:
    """What a finding rests on that tells of the differences in these slices."""
    differing = [each for one in compared for each in one.differences]
    return {
        "differences": len(differing),
        "compared": sum(each.read.answered_count for each in compared),
        "slices": [
            [each.read.from_offset, each.read.until_offset] for each in compared[:MOST_SLICES]
        ],
        # Of every difference in each of these slices: what is shown below is but the first few.
        "digests": [_digest(each.differences) for each in compared[:MOST_SLICES]],
        "more_slices": len(compared[MOST_SLICES:]),
        "records": [_shown_difference(each) for each in differing[:MOST_SHOWN]],
    }


def _digest(differences: Iterable[Difference]) -> str:
    """SHA-256 of all that both sides said at these offsets."""
    said = [
        [each.offset, *(_identity(one) for one in (each.landed, each.served))]
        for each in differences
    ]
    return sha256(json.dumps(said).encode()).hexdigest()


def _identity(record: SeenRecord | None) -> Sequence[object] | None:
    return None if record is None else (record.content_hash.hex(), record.head.timestamp_type)


def _shown_difference(difference: Difference) -> Mapping[str, object]:
    return {
        "offset": difference.offset,
        "landed": _record(difference.landed),
        "served": _record(difference.served),
    }


def _record(record: SeenRecord | None) -> Mapping[str, object] | None:
    if record is None:
        return None
    head: RecordHead = record.head
    return {
        "hash": record.content_hash.hex(),
        "timestamp_ms": head.timestamp_ms,
        "timestamp_type": head.timestamp_type,
        "key": _shown(head.key, head.key_bytes),
        "value": _shown(head.value, head.value_bytes),
        "headers": list(head.header_names),
        "header_count": head.header_count,
    }


def _shown(content: bytes | None, length: int) -> str | None:
    """The first bytes as Python writes them, and how many there are; None for null.

    >>> _shown(b"ab", 2), _shown(b"abc", 5_000)
    ("b'ab'", "b'abc' ... 5000 bytes")
    """
    if content is None:
        return None
    return f"{content!r} ... {length} bytes" if length > len(content) else repr(content)
