"""What is stated about a feed: small predicates over ledger, broker and storage, clock passed in.

Finding is here, judging is not: a caller decides what fails a run. Each function is one family of
rules and returns findings with exact offsets; an empty answer means that these rules hold.

1. A finding names its code, its interval, its cause, and the next step with a command.
2. What is missing as evidence becomes UNKNOWN, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batch import WaitingBatch
from tallystick.domain.findings import Finding, FindingCode, Level
from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.log_changes import AnchorCheck, LogChanges, Observation
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.domain.states import BatchState, Verdict

# A batch may wait: for its turn behind the others of its run, or for a worker that publishes it.
# Feeds run hourly or more often as a rule, and every run takes up what waits: what is still there
# after an hour was passed over.
LEFT_BEHIND_AFTER: Final = timedelta(hours=1)


def finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange | None,
    code: FindingCode,
    verdict: Verdict,
    *,
    level: Level,
    cause: str,
    next_step: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """A finding about one generation; the interval is empty where the rule can't bound it."""
    return Finding(
        code=code,
        verdict=verdict,
        level=level,
        feed=feed,
        topic=account.partition.topic,
        generation=account.ordinal,
        partition=account.partition.partition,
        from_offset=offsets.from_offset if offsets else None,
        until_offset=offsets.until_offset if offsets else None,
        cause=cause,
        next_step=next_step,
        evidence=dict(evidence or {}),
    )


def lost_finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    code: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """What a range recorded as lost means: produced, and to be had nowhere any more."""
    causes = {
        FindingCode.EXPIRED: "the log start passed these offsets before they were read",
        FindingCode.PURGED: "these offsets were deleted on purpose before they were read",
        FindingCode.RECREATED: "the topic was re-created before these offsets were read",
    }
    kind = FindingCode(code)
    return finding(
        feed,
        account,
        offsets,
        kind,
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=causes.get(kind, "these offsets can be read nowhere any more") + ".",
        next_step=(
            "Nothing can bring them back from this topic; landing goes on after them."
            " Lengthen retention.ms or the schedule's pace, and tell the producers' owners."
        ),
        evidence=evidence,
    )


def change_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the changes that a snapshot forces mean for the feed."""
    by_id = {each.generation_id: each for each in generations.values()}
    gone = [(each.generation_id, each.offsets, each.code, each.evidence) for each in changes.lost]
    gone += [
        (each.generation_id, each.offsets, each.code, {"batch": each.batch_id})
        for each in changes.cuts
        if each.becomes == "lost"
    ]
    lost = [
        lost_finding(feed, by_id[generation_id], offsets, code, evidence)
        for generation_id, offsets, code, evidence in gone
    ]
    stopped = [
        stopped_finding(feed, by_id[each.generation_id], seen.snapshot, each.code, each.reason)
        for each in changes.stopped
    ]
    closed = [
        finding(
            feed,
            by_id[each.generation_id],
            None,
            FindingCode.RECREATED,
            Verdict.UNKNOWN,
            level=Level.L1,
            cause=(
                f"{each.reason}: what was produced at and after offset"
                f" {by_id[each.generation_id].last_seen_until} before that is not known."
            ),
            next_step="Ask who re-created the topic; the new log lands in a directory of its own.",
            evidence={"topic_id_now": seen.snapshot.topic_id},
        )
        for each in changes.closed
    ]
    return (*lost, *stopped, *closed)


def stopped_finding(
    feed: str,
    account: GenerationAccount,
    snapshot: BrokerSnapshot,
    code: FindingCode,
    reason: str,
) -> Finding:
    """A partition whose log was cut: it stops, all others go on."""
    bounds = snapshot.partitions.get(account.partition.partition)
    is_visible = code is FindingCode.TRUNCATED and bounds is not None
    until = account.accounted_until
    from_offset = bounds.high_watermark if is_visible and bounds else None
    if from_offset is None and account.anchor:
        from_offset = account.anchor.offset
    interval = (
        OffsetRange(account.partition, from_offset, until)
        if from_offset is not None and from_offset < until
        else None
    )
    return finding(
        feed,
        account,
        interval,
        code,
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=f"the log was cut: {reason}.",
        next_step=(
            "This partition has stopped, all others go on. Its landed rows are kept."
            " Open a new generation when you know what happened (docs/runbook.md, A3)."
        ),
        evidence={"reason": reason},
    )


def standing_findings(
    feed: str, generations: Mapping[int, GenerationAccount], seen: Observation
) -> tuple[Finding, ...]:
    """Anchors that can't be judged: unknown as long as it lasts."""
    return tuple(
        finding(
            feed,
            account,
            None,
            FindingCode.OVERWRITTEN,
            Verdict.UNKNOWN,
            level=Level.L1,
            cause=(
                f"the last landed record, offset {account.anchor.offset}, is gone, and the"
                " leader epochs do not say if the log was cut."
            ),
            next_step="Nothing, if the topic was not touched; look at its leader changes.",
        )
        for partition, account in sorted(generations.items())
        if account.state is not GenerationState.STOPPED
        and seen.anchors.get(partition) is AnchorCheck.GONE
        and account.anchor
    )


def leaderless_partitions(feed: str, snapshot: BrokerSnapshot) -> tuple[Finding, ...]:
    """Partitions that nobody can read now: unknown as long as it lasts, while others go on."""
    return tuple(
        Finding(
            code=FindingCode.COULD_NOT_TELL,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            cause="this partition has no leader, so nobody can read it.",
            next_step="Bring its brokers back; the next run lands what has piled up.",
            evidence={"topic_id": snapshot.topic_id},
        )
        for partition in sorted(snapshot.leaderless)
    )


def recorded_stops(
    generations: Mapping[int, GenerationAccount], recorded: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The findings with which partitions stopped that are stopped still, as they were stated then.

    Today's bounds can't tell any more where the log was cut: it may have grown since.
    """
    stopped = {
        (partition, account.ordinal)
        for partition, account in generations.items()
        if account.state is GenerationState.STOPPED
    }
    return tuple(
        each
        for each in recorded
        if each.code in (FindingCode.TRUNCATED, FindingCode.OVERWRITTEN)
        and each.verdict is Verdict.PROVEN_LOSS
        and (each.partition, each.generation) in stopped
    )


def recorded_unknown_tails(recorded: Sequence[Finding]) -> tuple[Finding, ...]:
    """What nobody saw of logs that were re-created: unknown for ever, until a person waives it."""
    return tuple(
        each
        for each in recorded
        if each.code is FindingCode.RECREATED and each.verdict is Verdict.UNKNOWN
    )


def unread_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions with records that the broker has and the ledger doesn't know."""
    return tuple(
        Finding(
            code=FindingCode.UNREAD_PARTITION,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            from_offset=bounds.log_start_offset,
            until_offset=bounds.high_watermark,
            cause="no plan has looked at this partition yet.",
            next_step=f"The next run starts it at its log start: ./tallystick land {feed}",
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if partition not in generations and bounds.log_start_offset < bounds.high_watermark
    )


def frozen_time_index(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    *,
    cuts: Mapping[int, int | None],
    after_now: Mapping[int, int | None],
) -> tuple[Finding, ...]:
    """Partitions where a record from the future keeps every later window's end where it is.

    `after_now` are the first offsets whose timestamp is after the clock's now: where that is the
    cut itself, at or before the frontier, and more is readable, no window will ever move on.
    """
    found = []
    for partition, account in sorted(generations.items()):
        cut, bounds = cuts.get(partition), snapshot.partitions.get(partition)
        if cut is None or bounds is None or account.state is not GenerationState.OPEN:
            continue
        is_frozen = after_now.get(partition) == cut and cut <= account.frontier
        if is_frozen and bounds.high_watermark > account.frontier:
            interval = OffsetRange(account.partition, account.frontier, bounds.high_watermark)
            found.append(
                finding(
                    feed,
                    account,
                    interval,
                    FindingCode.NO_PROGRESS,
                    Verdict.UNKNOWN,
                    level=Level.L1,
                    cause=(
                        f"the record at offset {cut} claims a time in the future, so no window's"
                        " end passes it while readable offsets pile up behind it."
                    ),
                    next_step="Set plan.until: now in the feed, and correct the producer's clock.",
                )
            )
    return tuple(found)


def unfinished_batches(
    feed: str, topic: str, waiting: Sequence[WaitingBatch]
) -> tuple[Finding, ...]:
    """Batches that somebody left behind: nobody has held, or published, them for long."""
    return tuple(
        Finding(
            code=FindingCode.UNFINISHED_BATCH,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=topic,
            cause=(
                f"batch {each.batch_id} is {each.state.value}, and for {_hours(each.seconds)} h"
                f" nobody has {'published' if each.state is BatchState.COMMITTED else 'held'} it."
            ),
            next_step=f"The next run takes it up: ./tallystick land {feed}",
            evidence={"batch": each.batch_id, "seconds": round(each.seconds)},
            subject=each.batch_id,
        )
        for each in waiting
        if each.seconds > LEFT_BEHIND_AFTER.total_seconds()
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f}"


def could_not_tell(feed: str, topic: str, *, what: str, reason: str, seen_at: datetime) -> Finding:
    """A witness did not answer: everything it would have said is unknown."""
    return Finding(
        code=FindingCode.COULD_NOT_TELL,
        verdict=Verdict.UNKNOWN,
        level=Level.L1,
        feed=feed,
        topic=topic,
        cause=f"{what} could not be asked: {reason}",
        next_step=f"Run again when it answers: ./tallystick reconcile {feed}",
        evidence={"seen_at": seen_at.isoformat()},
    )
