"""N5, no run: records wait, and no run has come for several pauses of the schedule.

While a batch is held there is a run, however long ago it planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

N5: Final = Rule(
    code=FindingCode.NO_RUN,
    kind=RuleClass.STALLED,
    compares="the ledger's last sign of a run against the feed's schedule, where records wait",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="nothing waits; a batch is held; less than three pauses of the schedule have passed",
    remedy="find out why the scheduler does not run the feed",
    one_cause=same_topic("missing runs"),
    mending=Mending.NOTHING,
    traits={Trait.GROWS},
)

_RUNS_MISSED: Final = 3


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
    if idle is None or idle <= _RUNS_MISSED * run_period:
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
                feed,
                account,
                waiting,
                N5,
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
