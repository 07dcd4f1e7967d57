"""B3, payload twice.

Equal payloads are legal; so it is a suspicion, told only to who asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

B3: Final = Rule(
    code=FindingCode.PAYLOAD_TWICE,
    kind=RuleClass.DUPLICATE,
    compares="key, value and headers of landed rows within a horizon",
    endings={Level.L3: Ending.PAYLOADS},
    verdicts=(Verdict.SUSPECTED,),
    not_when="equal heartbeats are legal, so it is asked for by reconcile.payload_horizon",
    remedy="make the producer idempotent; never touch raw rows",
    one_cause=same_topic("repeated payloads"),
)


def payloads_twice(
    place: Place, payloads: Iterable[Payload], horizon: timedelta
) -> tuple[Finding, ...]:
    """Runs of offsets whose payload an earlier offset of the partition has, sent within `horizon`.

    The place is one generation of a partition. Payloads come by rising offset. The times are the
    records' own.
    """
    repeated = list(_repeated(payloads, horizon // timedelta(milliseconds=1)))
    first = {offset: earlier for earlier, offset in repeated}
    runs = OffsetRuns.of((offset, offset + 1) for offset in first)
    return tuple(
        finding(
            B3,
            place.at(from_offset, until_offset),
            cause=(
                "the same key, value and headers were sent shortly before: offset"
                f" {first[from_offset]} equals offset {from_offset}."
            ),
            next_step=(
                "Ask if the producer sends equal records on purpose, as heartbeats are; if not, let"
                " it write idempotently. The landed rows are what the log holds: leave them."
            ),
            evidence={"first": [first[from_offset], from_offset], "horizon": str(horizon)},
        )
        for from_offset, until_offset in runs
    )


def _repeated(payloads: Iterable[Payload], horizon_ms: int) -> Iterator[tuple[int, int]]:
    """The earlier and the later offset of each repetition."""
    newest: dict[bytes, Payload] = {}
    for each in payloads:
        earlier = newest.get(each.content_hash)
        if earlier and abs(each.timestamp_ms - earlier.timestamp_ms) <= horizon_ms:
            yield earlier.offset, each.offset
        newest[each.content_hash] = each
