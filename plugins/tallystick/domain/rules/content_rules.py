"""What landed rows say by their content: doubled offsets, doubled payloads, aborted rows (B2, B3,
C2).

1. A finding holds offsets that are concerned, all of them, and no others.
2. Equal payloads are legal; so B3 is a suspicion, told only to who asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tallystick.domain.batches.states import Verdict
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.b3_payload_twice import B3
from tallystick.domain.rules.c2_aborted_landed import C2
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.rule import Rule


@dataclass(frozen=True, slots=True)
class Place:
    """One generation of one partition of a feed's topic."""

    feed: str
    topic: str
    generation: int
    """Its ordinal."""
    partition: int


@dataclass(frozen=True, slots=True)
class HeldOffsets:
    """The exact offsets of one partition that one batch, or one file of it, holds."""

    batch_id: str
    place: str
    """The file, or the directory."""
    offsets: OffsetRuns
    doubled: OffsetRuns = field(default_factory=OffsetRuns)
    """Those that are there more than once."""


@dataclass(frozen=True, slots=True)
class Payload:
    """One landed row without its place: what a producer sent."""

    offset: int
    timestamp_ms: int
    content_hash: bytes
    """Over key, value and headers."""


def landed_twice(place: Place, held: Sequence[HeldOffsets]) -> tuple[Finding, ...]:
    """Offsets that committed files hold more than once, each run with the places that hold it."""
    ordered = sorted(held, key=lambda each: (each.batch_id, each.place))
    once, twice = OffsetRuns(), OffsetRuns()
    for each in ordered:
        twice = twice.union(once.intersection(each.offsets)).union(each.doubled)
        once = once.union(each.offsets)
    found = []
    for from_offset, until_offset in twice:
        holders = [each for each in ordered if each.offsets.clipped(from_offset, until_offset)]
        found.append(
            _finding(
                place,
                (from_offset, until_offset),
                B2,
                Verdict.PROVEN_DUP,
                Level.L2,
                cause=(
                    f"these offsets are in more than one row, in {len(holders)} committed place(s)."
                ),
                next_step=(
                    "Readers count them twice. See what a repair would do:"
                    f" ./tallystick repair {place.feed} --dry-run"
                ),
                evidence={
                    "places": [each.place for each in holders],
                    "more_than_once_in": [
                        each.place
                        for each in holders
                        if each.doubled.clipped(from_offset, until_offset)
                    ],
                },
            )
        )
    return tuple(found)


def aborted_landed(
    place: Place, landed: OffsetRuns, aborted: OffsetRuns, *, batch_id: str, file: str
) -> tuple[Finding, ...]:
    """Offsets of a read_committed batch's file whose transaction the broker lists as aborted."""
    return tuple(
        _finding(
            place,
            run,
            C2,
            Verdict.PROVEN_DUP,
            Level.L1,
            cause=(
                f"batch {batch_id} holds rows of an aborted transaction, though its feed reads"
                " committed records only: nobody should ever see them."
            ),
            next_step=(
                "Look who runs Spark with another isolation level. Land the batch's offsets again:"
                f" ./tallystick repair {place.feed}"
            ),
            evidence={"batch": batch_id, "file": file},
        )
        for run in landed.intersection(aborted)
    )


def payloads_twice(
    place: Place, payloads: Iterable[Payload], horizon: timedelta
) -> tuple[Finding, ...]:
    """Runs of offsets whose payload an earlier offset of the partition has, sent within `horizon`.

    Payloads come by rising offset. The times are the records' own.
    """
    repeated = list(_repeated(payloads, horizon // timedelta(milliseconds=1)))
    first = {offset: earlier for earlier, offset in repeated}
    runs = OffsetRuns.of((offset, offset + 1) for offset in first)
    return tuple(
        _finding(
            place,
            run,
            B3,
            Verdict.SUSPECTED,
            Level.L3,
            cause=(
                "the same key, value and headers were sent shortly before: offset"
                f" {first[run[0]]} equals offset {run[0]}."
            ),
            next_step=(
                "Ask if the producer sends equal records on purpose, as heartbeats are; if not, let"
                " it write idempotently. The landed rows are what the log holds: leave them."
            ),
            evidence={"first": [first[run[0]], run[0]], "horizon": str(horizon)},
        )
        for run in runs
    )


def _repeated(payloads: Iterable[Payload], horizon_ms: int) -> Iterator[tuple[int, int]]:
    """The earlier and the later offset of each repetition."""
    newest: dict[bytes, Payload] = {}
    for each in payloads:
        earlier = newest.get(each.content_hash)
        if earlier and abs(each.timestamp_ms - earlier.timestamp_ms) <= horizon_ms:
            yield earlier.offset, each.offset
        newest[each.content_hash] = each


def _finding(
    place: Place,
    run: tuple[int, int],
    rule: Rule,
    verdict: Verdict,
    level: Level,
    *,
    cause: str,
    next_step: str,
    evidence: Mapping[str, object],
) -> Finding:
    return Finding(
        rule=rule,
        verdict=verdict,
        level=level,
        feed=place.feed,
        topic=place.topic,
        generation=place.generation,
        partition=place.partition,
        from_offset=run[0],
        until_offset=run[1],
        cause=cause,
        next_step=next_step,
        evidence=evidence,
    )
