"""N1, overdue: a partition that no plan has looked at; a run, or a reconcile, that does not come.

While a batch is held there is a run, however long ago it planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.evidence import of_topic
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

UNREAD: Final = "unread partition"
NO_RUN: Final = "no run"
NO_RECONCILE: Final = "no reconcile"


def _what_is_late(found: Finding) -> str:
    return f"{found.name} of topic {found.topic}"


N1: Final = Rule(
    code=FindingCode.OVERDUE,
    names=(UNREAD, NO_RUN, NO_RECONCILE),
    kind=RuleClass.STALLED,
    compares=(
        "the broker's partitions against the ledger's; where records wait, the last sign of a run"
        " against the schedule; the last listing of all files against the reconciles' schedule"
    ),
    endings={Level.L1: Ending.BROKER, Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when=(
        "a partition without a record; nothing waits; a batch is held; less than three pauses of"
        " the schedule have passed, of reconciles two days"
    ),
    remedy="find out why the scheduler does not run the feed, or its reconcile",
    one_cause=_what_is_late,
    traits={Trait.GROWS},
)

_MISSED: Final = 3
# A reconcile may be longer than the pause of its schedule; one a day is often enough.
STORAGE_IS_DUE: Final = timedelta(days=2)


def unread_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions with records that the broker has and the ledger doesn't know."""
    return tuple(
        finding(
            N1,
            Place(feed=feed, topic=snapshot.topic, partition=partition).at(
                bounds.log_start_offset, bounds.high_watermark
            ),
            name=UNREAD,
            cause="no plan has looked at this partition yet.",
            next_step=f"The next run starts it at its log start: tallystick land {feed}",
            evidence=of_topic(snapshot.topic_id),
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if partition not in generations and bounds.log_start_offset < bounds.high_watermark
    )


def missed_runs(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    *,
    isolation: Isolation,
    idle: timedelta | None,
    run_period: timedelta,
) -> tuple[Finding, ...]:
    """Partitions in which records wait, while no run has come for several pauses of the schedule.

    `idle` is the time since the last sign of a run; None for a feed that was never planned.
    """
    if idle is None or idle <= _MISSED * run_period:
        return ()
    hours = f"{idle.total_seconds() / 3600:.1f}"
    found = []
    for partition, account in sorted(generations.items()):
        bounds = snapshot.partitions.get(partition)
        if bounds is None or account.state is not GenerationState.OPEN:
            continue
        readable = bounds.readable_until(isolation)
        waiting = offset_range(account.partition, account.frontier, readable)
        # What is claimed, set aside or landed behind a gap waits for something else.
        if waiting is None or account.accounted_until >= readable:
            continue
        found.append(
            finding(
                N1,
                Place.of_log(feed, account, waiting),
                name=NO_RUN,
                cause=(
                    f"records wait here, and no run has come for {hours} h; the schedule's longest"
                    f" pause is {run_period.total_seconds() / 3600:.1f} h."
                ),
                next_step=(
                    "Look if the DAG is paused and the scheduler runs. Land now: tallystick land"
                    f" {feed}"
                ),
                evidence={"seconds": round(idle.total_seconds())},
            )
        )
    return tuple(found)


def missed_reconcile(
    feed: str, topic: str, heard_at: datetime, pause: timedelta, now: datetime
) -> tuple[Finding, ...]:
    """What is told where storage has answered no reconcile since this instant; `pause` is the
    longest of their schedule.
    """
    if now - heard_at <= max(STORAGE_IS_DUE, _MISSED * pause):
        return ()
    return (
        finding(
            N1,
            Place(feed=feed, topic=topic, level=Level.L2),
            name=NO_RECONCILE,
            cause=(
                f"no reconcile has listed the feed's files since {heard_at:%Y-%m-%d %H:%M} UTC:"
                " nobody would know if one is gone."
            ),
            next_step=(
                "Look if the reconcile's DAG is paused, and why its runs fail. Reconcile now:"
                f" tallystick reconcile {feed}"
            ),
            evidence={"seconds": round((now - heard_at).total_seconds())},
        ),
    )
