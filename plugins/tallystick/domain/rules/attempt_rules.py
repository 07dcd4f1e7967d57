"""Attempts and runs: held for too long, failing again and again, or not coming at all (N3 to N5).

1. Failures are counted, not the age of a lease: a batch that fails quickly is told too.
2. While a batch is held there is a run, however long ago it planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.batches.states import Isolation, Verdict
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.findings import Finding, Level, finding
from tallystick.domain.rules.n3_unfinished_batch import N3
from tallystick.domain.rules.n4_failing_batch import N4
from tallystick.domain.rules.n5_no_run import N5

FAILING_AFTER: Final = 3
_RUNS_MISSED: Final = 3
# Beside its application, an attempt looks at broker and storage, and proves what was written.
_BESIDE_SPARK: Final = timedelta(hours=1)


def held_too_long(
    feed: str, topic: str, tried: Sequence[TriedBatch], longest: timedelta
) -> tuple[Finding, ...]:
    """Batches whose attempt lives, and should have ended long ago."""
    limit = longest + _BESIDE_SPARK
    return tuple(
        Finding(
            rule=N3,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=topic,
            cause=(
                f"batch {each.plan.batch_id} has been held by {each.holder} for"
                f" {each.held_seconds / 3600:.1f} h, and an application may run for"
                f" {longest.total_seconds() / 3600:.1f} h."
            ),
            next_step=(
                "Look if its Spark application hangs, and end it; the next run takes the batch up:"
                f" ./tallystick batches {feed}"
            ),
            evidence={
                "batch": each.plan.batch_id,
                "holder": each.holder,
                "seconds": round(each.held_seconds),
            },
            # That nobody holds it is another trouble.
            subject=f"{each.plan.batch_id} is held",
        )
        for each in tried
        if each.held_seconds is not None and each.held_seconds > limit.total_seconds()
    )


def failing_batches(feed: str, topic: str, tried: Sequence[TriedBatch]) -> tuple[Finding, ...]:
    """Batches that were tried again and again, and never in success."""
    return tuple(_failing(feed, topic, each) for each in tried if each.failures >= FAILING_AFTER)


def _failing(feed: str, topic: str, tried: TriedBatch) -> Finding:
    """Of one partition, where the batch holds no other."""
    ranges = [each.offsets for each in tried.plan.ranges]
    alone = ranges[0] if len(ranges) == 1 else None
    said = f"The last reason: {tried.last_failure}" if tried.last_failure else "None said why."
    return Finding(
        rule=N4,
        verdict=Verdict.UNKNOWN,
        level=Level.L1,
        feed=feed,
        topic=topic,
        generation=tried.plan.ordinal if alone else None,
        partition=alone.partition.partition if alone else None,
        from_offset=alone.from_offset if alone else None,
        until_offset=alone.until_offset if alone else None,
        cause=(
            f"batch {tried.plan.batch_id} was tried {tried.failures} times, and failed each time."
            f" {said.rstrip('.')}."
        ),
        next_step=f"Mend what the reason names; every run tries again: ./tallystick batches {feed}",
        evidence={
            "batch": tried.plan.batch_id,
            "failures": tried.failures,
            "reason": tried.last_failure,
            "ranges": [str(each) for each in ranges[:20]],
        },
        subject=tried.plan.batch_id,
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
    # 2
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
                Verdict.UNKNOWN,
                level=Level.L1,
                cause=(
                    f"records wait here, and no run has come for {hours} h; the schedule's longest"
                    f" pause is {run_period.total_seconds() / 3600:.1f} h."
                ),
                next_step=(
                    "Look if the DAG is paused and the scheduler runs. Land now: ./tallystick land"
                    f" {feed}"
                ),
                evidence={"seconds": round(idle.total_seconds())},
            )
        )
    return tuple(found)
