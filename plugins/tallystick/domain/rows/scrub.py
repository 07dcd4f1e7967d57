"""What a scrub reads and what it says: files in full, slice by slice, without any judgement.

1. `ScrubPlan.from_json(p.to_json()) == p`, and the same for the result.
2. The result stays small whatever the files hold: runs of offsets are bounded, totals are exact.
3. Every file of the plan is in the result: with its slices, or with the reason why it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.plain_json import from_line, to_line
from tallystick.domain.rows.fingerprint import Fingerprint

PLAN_FORMAT: Final = "tallystick-scrub-3"
RESULT_FORMAT: Final = "tallystick-scrub-result-4"
MOST_RUNS: Final = 100


@dataclass(frozen=True, slots=True)
class ExpectedSlice:
    """What a file was committed with of one partition."""

    partition: int
    first_offset: int
    """Smallest offset (included)."""
    last_offset: int
    """Largest offset (included)."""
    holes: OffsetRuns
    """Proven holes between the two."""
    fingerprint: Fingerprint | None = None
    """The one on record, taken when the offsets were proven; None before the first full read."""

    @property
    def offsets(self) -> OffsetRuns:
        """The offsets that rows must have, each exactly once."""
        return self.holes.complement(self.first_offset, self.last_offset + 1)

    @property
    def record_count(self) -> int:
        """Rows that must be there."""
        return self.last_offset + 1 - self.first_offset - self.holes.count

    @property
    def known(self) -> Fingerprint | None:
        """The fingerprint on record; None where that is none, or of other offsets."""
        found = self.fingerprint
        is_theirs = found and self.fits(found) and found.offset_sum == self.offsets.sum
        return found if is_theirs else None

    def fits(self, found: Fingerprint) -> bool:
        """True for as many rows, from the first offset to the last one."""
        wanted = (self.record_count, self.first_offset, self.last_offset)
        return wanted == (found.record_count, found.first_offset, found.last_offset)


@dataclass(frozen=True, slots=True)
class ScrubFile:
    """One file to be read in full."""

    name: str
    """Unique among all files of a ledger."""
    uri: str
    length_bytes: int
    slices: tuple[ExpectedSlice, ...]

    @property
    def record_count(self) -> int:
        """Rows that must be there."""
        return sum(each.record_count for each in self.slices)


@dataclass(frozen=True, slots=True)
class ScrubPlan:
    """All that the scrubbing function knows."""

    scrub_id: str
    files: tuple[ScrubFile, ...]
    output: str
    """Full URI of the directory for the result, which must not exist."""
    replication: int | None
    """Of the result; None: the file system's default."""

    def __post_init__(self) -> None:
        if len({each.name for each in self.files}) < len(self.files):
            raise ValueError("two files of a scrub have one name: one would hide the other")

    def to_json(self) -> str:
        """The plan as text, on one line."""
        return to_line(PLAN_FORMAT, self)

    @classmethod
    def from_json(cls, text: str) -> ScrubPlan:
        """The plan again; ValueError when the text is none."""
        return from_line(cls, PLAN_FORMAT, text)


@dataclass(frozen=True, slots=True)
class BoundedRuns:
    """Offsets of which the first runs are named, and the rest is counted."""

    count: int
    """Offsets in all."""
    run_count: int
    """Runs in all."""
    first_offset: int | None
    """Smallest of all (included); None if there is none."""
    last_offset: int | None
    """Largest of all (included); None if there is none."""
    runs: tuple[tuple[int, int], ...]
    """The first runs [from, until), `MOST_RUNS` at most."""
    digest: str
    """SHA-256 of all runs: sets that only begin alike have different ones."""

    @classmethod
    def of(cls, offsets: OffsetRuns) -> BoundedRuns:
        """The offsets, bounded."""
        runs = tuple(run for run, _ in zip(offsets, range(MOST_RUNS), strict=False))
        bounds = (offsets.first_offset, offsets.last_offset)
        return cls(offsets.count, len(offsets), *bounds, runs, offsets.digest)

    def as_evidence(self) -> Mapping[str, object]:
        """Which offsets these are, to the last one, whatever their number."""
        return {
            "offsets": self.count,
            "runs": self.run_count,
            "first_runs": [list(run) for run in self.runs],
            "runs_sha256": self.digest,
        }

    @property
    def reach(self) -> tuple[int, int] | None:
        """From the first to behind the last of all, holes between them included."""
        if self.first_offset is None or self.last_offset is None:
            return None
        return self.first_offset, self.last_offset + 1

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def are_all_named(self) -> bool:
        """False when there are more runs than are named."""
        return self.run_count == len(self.runs)


NOTHING: Final = BoundedRuns.of(OffsetRuns())


@dataclass(frozen=True, slots=True)
class ReadSlice:
    """What a file holds of one partition, every row of it read."""

    partition: int
    fingerprint: Fingerprint
    missing: BoundedRuns = NOTHING
    """Offsets that were committed, and that no row has."""
    doubled: BoundedRuns = NOTHING
    """Offsets that two rows or more have."""
    foreign: BoundedRuns = NOTHING
    """Offsets of single rows that were not committed with this file."""

    @property
    def has_its_offsets(self) -> bool:
        """True when each committed offset is there exactly once, and no other one."""
        return not (self.missing or self.doubled or self.foreign)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What a full read of one file gave."""

    name: str
    slices: tuple[ReadSlice, ...] = ()
    failure: str | None = None
    """Why it could not be read, in one line; None when it was."""
    is_damaged: bool = False
    """True when the failure proves that the bytes are no longer a whole Parquet file; otherwise the
    reason may lie elsewhere."""


@dataclass(frozen=True, slots=True)
class ScrubResult:
    """What a scrub says of each file of its plan."""

    scrub_id: str
    files: tuple[ReadFile, ...]

    def to_json(self) -> str:
        """The result as text, on one line."""
        return to_line(RESULT_FORMAT, self)

    @classmethod
    def from_json(cls, text: str) -> ScrubResult:
        """The result again; ValueError when the text is none."""
        return from_line(cls, RESULT_FORMAT, text)


def compared(
    expected: ExpectedSlice | None,
    partition: int,
    fingerprint: Fingerprint,
    *,
    present: OffsetRuns,
    doubled: OffsetRuns,
) -> ReadSlice:
    """What was read of a slice against what was committed; None: nothing of this partition was."""
    wanted = expected.offsets if expected else OffsetRuns()
    if present == wanted and not doubled:
        return ReadSlice(partition, fingerprint)
    return ReadSlice(
        partition,
        fingerprint,
        missing=BoundedRuns.of(wanted.difference(present)),
        doubled=BoundedRuns.of(doubled),
        foreign=BoundedRuns.of(present.difference(wanted).difference(doubled)),
    )


def is_proven_by_sums(
    expected: ExpectedSlice | None, fingerprint: Fingerprint, distinct_count: int
) -> bool:
    """True when exactly the committed offsets are there, by what was summed up alone: the rows are
    those on record, or so many different numbers as there are fill the whole span.
    """
    if expected is None:
        return False
    # `known` goes through all holes: only where the cheap comparison does not settle it.
    return (fingerprint == expected.fingerprint and expected.known is not None) or (
        not expected.holes
        and fingerprint.record_count == distinct_count
        and expected.fits(fingerprint)
    )
