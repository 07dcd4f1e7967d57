"""Z5, no progress: a record from the future keeps every later window's end where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

Z5: Final = Rule(
    code=FindingCode.NO_PROGRESS,
    kind=RuleClass.STALLED,
    compares="the window's cut against the first record after now",
    endings={Level.L1: Ending.LANDING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="late or unordered times; no record that late; nothing behind it",
    remedy="plan.until: now; correct the producer's clock",
    one_cause=same_topic("records from the future"),
    traits={Trait.GROWS, Trait.OF_RUNS},
)


def frozen_time_index(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    *,
    isolation: Isolation,
    cuts: Mapping[int, int | None],
    after_now: Mapping[int, int | None],
) -> tuple[Finding, ...]:
    """Partitions where a record from the future keeps every later window's end where it is.

    `after_now` are the first offsets whose timestamp is after the clock's now: where that is the
    cut itself, at or before the frontier, what is readable behind it waits for that time.
    """
    found = []
    for partition in may_be_frozen(generations, snapshot, isolation, cuts):
        account, bounds = generations[partition], snapshot.partitions[partition]
        cut = cuts[partition]
        if after_now.get(partition) == cut:
            readable = bounds.readable_until(isolation)
            interval = OffsetRange(account.partition, account.frontier, readable)
            found.append(
                finding(
                    Z5,
                    Place.of_log(feed, account, interval),
                    cause=(
                        f"the record at offset {cut} claims a time in the future, so no window's"
                        " end passes it while readable offsets pile up behind it."
                    ),
                    next_step="Set plan.until: now in the feed, and correct the producer's clock.",
                    evidence={"cut": cut},
                )
            )
    return tuple(found)


def may_be_frozen(
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    isolation: Isolation,
    cuts: Mapping[int, int | None],
) -> tuple[int, ...]:
    """Partitions where nothing is due, and more is readable behind the record at the cut."""
    return tuple(
        partition
        for partition, account in sorted(generations.items())
        if account.state is GenerationState.OPEN
        and account.topic_id == snapshot.topic_id
        and (cut := cuts.get(partition)) is not None
        and (bounds := snapshot.partitions.get(partition)) is not None
        and cut <= account.frontier < (readable := bounds.readable_until(isolation))
        and cut + 1 < readable
    )
