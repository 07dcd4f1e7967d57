"""Which offsets of a range Spark can't read: found by halving what fails, down to one offset.

1. Only what Spark failed to read twice, alone, is named; and only while another offset of the same
   partition is read well between the two tries: the broker and the cluster were there.
2. The search is bounded. What it had no time for is named nowhere, and is still due. Pieces that
   only need longer than a read may take use up few applications, however many there are of them.
3. A record that kills its application is found too: each read is noted before it begins, and the
   next application goes on behind the one that killed the last.
4. A read does what a landing does with the same records, writing included: what kills a landing
   kills its read. It polls no record from behind its own, if its last offset has one: a hole just
   before a record that can't be read is named with it.
5. `from_plain(T, to_plain(x)) == x` for the plan, the notes and the result.
6. Where none of a few single offsets all over the topic can be read, it is no record's fault, and
   the search is over. Each attempt tries others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.polling import stretches
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, subtract

MOST_UNREADABLE: Final = 64
MOST_PROBES: Final = 400
# Halving ten million offsets down to one takes 24, and each record is tried twice.
MOST_DEATHS: Final = 40
# So many are left for what is read beside suspects, and for the last suspect itself.
_DEATHS_BESIDE: Final = 5
_DIED: Final = "its application ended: {}"
_HUNG: Final = "its application hung, and was ended after {}"
_DEATHS: Final = tuple(each.partition("{")[0] for each in (_DIED, _HUNG))
_PLACES: Final = 3
# One may have hung by chance.
_ENOUGH_SLOW: Final = 2
# A big piece is read by several tasks at once.
_RECORDS_PER_TASK: Final = 250_000

Pieces = tuple[OffsetRange, ...]
Read = Callable[[Pieces], str | None]
"""Lands these offsets and keeps nothing; None when it went well, else why not."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """All that the search is told; it holds no secret."""

    landing: LandingPlan
    """What has failed as a whole; its output is what every read overwrites."""
    logs: Pieces
    """What the log of each partition holds now."""
    output: str
    """Full URI of the directory for the result, which must not exist."""
    longest_seconds: float = 600.0
    """An application begins no read later than that."""
    known: tuple[str | None, ...] = ()
    """What came of the first reads in applications before this one, as `Read` says it."""

    def landing_of(self, pieces: Pieces) -> LandingPlan:
        """What a read of these offsets lands."""
        scans = (Scan(each, _RECORDS_PER_TASK, None, most) for most, each in stretches(pieces))
        return replace(self.landing, scans=tuple(scans))


@dataclass(frozen=True, slots=True)
class ReadNote:
    """Said before each read, and at the end: so it is known what an application died of."""

    number: int
    """From 0, the reads of earlier applications included."""
    before: str | None
    """What came of the read before it."""
    is_end: bool = False
    """True when no read begins: the search is over, and its result is written."""


def death(reason: str, *, has_hung: bool) -> str:
    """What came of a read that has ended its application."""
    return (_HUNG if has_hung else _DIED).format(reason)


def known_after(
    known: Sequence[str | None], notes: Iterable[ReadNote], death: str
) -> list[str | None]:
    """What is known after an application has died: of the last read that it began.

    Nothing new where it has begun none, or where a note is missing. One that dies after its last
    read has died of none.
    """
    begun = sorted(notes, key=lambda each: each.number)
    if [each.number for each in begun] != list(range(len(known), len(known) + len(begun))):
        return list(known)
    came = [each.before for each in begun if each.number > len(known)]
    return [*known, *came, *([death] if begun and not begun[-1].is_end else [])]


def after_known(known: Sequence[str | None], read: Read) -> Read:
    """The same reads; what came of the first ones is known, and nothing is read for them."""
    left = list(reversed(known))

    def next_read(pieces: Pieces) -> str | None:
        return left.pop() if left else read(pieces)

    return next_read


@dataclass(frozen=True, slots=True)
class UnreadableOffset:
    """One offset that Spark can't read, and why."""

    partition: int
    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What the search has found."""

    unreadable: tuple[UnreadableOffset, ...] = ()
    probes: int = 0
    """Reads that it took."""
    reads_nothing: bool = False
    """True when no single offset could be read anywhere: it is not the records."""


@dataclass
class _Search:
    """What is known so far."""

    read: Read
    logs: Pieces
    has_time: Callable[[], bool]
    probes: int = 0
    deaths: int = 0
    """Reads that have ended their applications, or will when a suspect is tried again."""
    well: list[OffsetRange] = field(default_factory=list)
    """Pieces that were read well."""
    hung: list[Pieces] = field(default_factory=list)
    """What was read together when an application hung."""

    def fails(self, pieces: Pieces) -> str | None:
        """Why the pieces can't be read; None when they can."""
        self.probes += 1
        reason = self.read(pieces)
        if reason is None:
            self.well += pieces
        else:
            self.deaths += reason.startswith(_DEATHS)
            if reason.startswith(_DEATHS[1]):
                self.hung.append(pieces)
        return reason

    def must_be_halved(self, pieces: Pieces) -> str | None:
        """Why the pieces can't be read together; None when they were read.

        They are not tried where no more offsets at once have hung, and were read well in halves.
        """
        slow = [
            each
            for each in self.hung
            if _span(each) <= _span(pieces) and not any(subtract(one, self.well) for one in each)
        ]
        needs_longer = len(slow) >= _ENOUGH_SLOW and _span(pieces) > 1
        return "it needs longer" if needs_longer else self.fails(pieces)

    def reads_nothing(self, seed: str) -> bool:
        """True when none of a few single offsets, of different partitions, can be read."""
        chosen, ones = Random(seed), dict[OffsetRange, None]()
        for log in (chosen.sample(self.logs, len(self.logs)) * _PLACES)[:_PLACES]:
            offset = chosen.randrange(log.from_offset, log.until_offset)
            ones[OffsetRange(log.partition, offset, offset + 1)] = None
        if len(ones) < _PLACES:  # it may be the only record that there is
            return False
        return not any(self.is_over or self.fails((each,)) is None for each in ones)

    @property
    def has_suspects_enough(self) -> bool:
        return self.is_over or self.deaths >= MOST_DEATHS - _DEATHS_BESIDE

    @property
    def is_over(self) -> bool:
        return self.probes >= MOST_PROBES or not self.has_time()

    def suspects(self, ranges: Pieces) -> Iterator[OffsetRange]:
        """Single offsets that failed once, from the lowest on; the whole has failed already.

        None of a partition of which nothing is read: its leader may be away.
        """
        found, silent, left = 0, set[TopicPartition](), list(reversed(_halves(ranges)))
        while left and found < MOST_UNREADABLE and not self.has_suspects_enough:
            pieces = tuple(each for each in left.pop() if each.partition not in silent)
            reason = self.must_be_halved(pieces) if pieces else None
            if reason is None:
                continue
            if _span(pieces) > 1:
                left += reversed(_halves(pieces))
            elif self.reads_beside(pieces[0]):
                found += 1
                self.deaths += reason.startswith(_DEATHS)
                yield pieces[0]
            else:
                silent.add(pieces[0].partition)

    def reads_beside(self, suspect: OffsetRange) -> bool:
        """True when another offset of the suspect's partition is read well now."""
        neighbours = (each for each in self._beside(suspect) if not self.is_over)
        return any(self.fails((each,)) is None for each in neighbours)

    def _beside(self, suspect: OffsetRange) -> Iterator[OffsetRange]:
        partition, offset = suspect.partition, suspect.from_offset
        well = [each for each in self.well if each.partition == partition]
        if well:
            nearest = min(well, key=lambda each: abs(each.from_offset - offset))
            yield OffsetRange(partition, nearest.from_offset, nearest.from_offset + 1)
            return
        log = next((each for each in self.logs if each.partition == partition), None)
        if log is None:
            return
        for beside in (offset - 1, offset + 1, log.until_offset - 1):
            if beside in log and beside != offset:
                yield OffsetRange(partition, beside, beside + 1)


def searched(
    ranges: Pieces,
    logs: Pieces,
    read: Read,
    *,
    seed: str = "",
    has_time: Callable[[], bool] = lambda: True,
) -> SearchResult:
    """The offsets that can't be read, lowest first; `ranges` have failed as a whole."""
    search = _Search(read, logs, has_time)
    if search.reads_nothing(seed):
        return SearchResult(probes=search.probes, reads_nothing=True)
    suspects: dict[TopicPartition, list[OffsetRange]] = {}
    for each in search.suspects(ranges):
        suspects.setdefault(each.partition, []).append(each)
    found: list[UnreadableOffset] = []
    for partition, offsets in suspects.items():
        if not search.reads_beside(offsets[0]):
            continue
        for each in offsets:
            reason = search.fails((each,))
            if reason is not None:
                found.append(UnreadableOffset(partition.partition, each.from_offset, reason))
    return SearchResult(tuple(found), search.probes)


def _span(pieces: Pieces) -> int:
    return sum(each.span for each in pieces)


def _halves(pieces: Pieces) -> Sequence[Pieces]:
    """The same offsets in two parts, lower first; one part where nothing can be parted."""
    if len(pieces) > 1:
        middle = len(pieces) // 2
        return pieces[:middle], pieces[middle:]
    [whole] = pieces
    if whole.span == 1:
        return (pieces,)
    middle = whole.from_offset + whole.span // 2
    return (
        (OffsetRange(whole.partition, whole.from_offset, middle),),
        (OffsetRange(whole.partition, middle, whole.until_offset),),
    )
