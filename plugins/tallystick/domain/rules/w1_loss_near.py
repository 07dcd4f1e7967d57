"""W1, loss near: unread records that the broker will delete soon.

1. Nothing unread is nothing to lose: idle, empty and landed partitions are silent.
2. A log that is younger, or smaller, than half of what it may be is silent: with a retention
   shorter than the warning, every record would be told at its birth.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.outlook import Outlook, TimeToLoss, as_time, bytes_behind, time_to_loss
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

W1: Final = Rule(
    code=FindingCode.LOSS_NEAR,
    kind=RuleClass.WARNING,
    compares="age and size of what is unread against the topic's retention",
    endings={Level.L1: Ending.UNREAD_HEAD},
    verdicts=(Verdict.SUSPECTED,),
    not_when="nothing is unread; more than half of the retention is left",
    remedy="land it now, or lengthen the retention first",
    one_cause=same_topic("loss near"),
    traits={Trait.GROWS},
)

# A run may fail, and the next one must come in time.
_RUNS_IN_TIME: Final = 2


def losses_near(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    outlook: Outlook,
    *,
    now: datetime,
    warn: timedelta,
    run_period: timedelta,
) -> tuple[Finding, ...]:
    """One finding for each partition whose first unread batch may be gone before long.

    Before long is within `warn`, or within two runs, whichever is more.
    """
    before_long = max(warn, _RUNS_IN_TIME * run_period)
    found = []
    for partition, account in sorted(generations.items()):
        bounds, head = snapshot.partitions.get(partition), outlook.at_frontier.get(partition)
        if bounds is None or head is None or account.state is not GenerationState.OPEN:
            continue
        unread = offset_range(account.partition, account.frontier, bounds.high_watermark)
        left = time_to_loss(snapshot, partition, outlook, now=now)
        fullness = _fullness(snapshot, bytes_behind(head, bounds))
        if unread is None or not _is_near(left, before_long, snapshot.retention_ms, fullness):
            continue
        shortest = left.shortest or timedelta()
        found.append(
            finding(
                W1,
                Place.of_log(feed, account, unread),
                cause=_cause(account.frontier, shortest),
                next_step=(
                    f"Land it now: tallystick land {feed}. If that can't be in time, lengthen"
                    " the topic's retention first."
                ),
                evidence={
                    "seconds": round(shortest.total_seconds()),
                    "retention_ms": snapshot.retention_ms,
                    "retention_bytes": snapshot.retention_bytes,
                },
            )
        )
    return tuple(found)


def _is_near(
    left: TimeToLoss, before_long: timedelta, retention_ms: int | None, fullness: float
) -> bool:
    by_age, by_size = left.by_age, left.by_size
    half_age = as_time(retention_ms) / 2 if retention_ms is not None else timedelta()
    return (by_age is not None and by_age < min(before_long, half_age)) or (
        by_size is not None and by_size < before_long and fullness > 0.5
    )


def _fullness(snapshot: BrokerSnapshot, unread_bytes: float) -> float:
    """What part of the size that the log may have is unread."""
    return unread_bytes / snapshot.retention_bytes if snapshot.retention_bytes else 0.0


def _cause(frontier: int, left: timedelta) -> str:
    if left <= timedelta():
        return (
            f"offset {frontier} is not landed, and is older than the topic's retention: the broker"
            " may delete it at any moment."
        )
    hours = f"{left.total_seconds() / 3600:.1f}"
    return f"offset {frontier} is not landed, and the broker keeps it for {hours} h more."
