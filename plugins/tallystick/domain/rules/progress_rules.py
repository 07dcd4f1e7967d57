"""What does not get on: partitions nobody reads, batches left behind, time that stands still.

Each rule tells slow from stuck by a bound that is passed in or stands here with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState, Isolation, Verdict
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds, PastBounds
from tallystick.domain.offsets.ranges import OffsetRange, offset_range
from tallystick.domain.rules.findings import Finding, Level, finding
from tallystick.domain.rules.n1_unread_partition import N1
from tallystick.domain.rules.n2_stalled_stable_offset import N2
from tallystick.domain.rules.n3_unfinished_batch import N3
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.rules.z5_no_progress import Z5

# A batch may wait: for its turn behind the others of its run, or for a worker that publishes it.
# Feeds run hourly or more often as a rule, and every run takes up what waits: what is still there
# after an hour was passed over.
LEFT_BEHIND_AFTER: Final = timedelta(hours=1)
# The brokers' own default of transaction.max.timeout.ms, for where they don't say.
LONGEST_TRANSACTION: Final = timedelta(minutes=15)


def unread_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions with records that the broker has and the ledger doesn't know."""
    return tuple(
        Finding(
            rule=N1,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            from_offset=bounds.log_start_offset,
            until_offset=bounds.high_watermark,
            cause="no plan has looked at this partition yet.",
            next_step=f"The next run starts it at its log start: ./tallystick land {feed}",
            evidence={"topic_id": snapshot.topic_id},
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if partition not in generations and bounds.log_start_offset < bounds.high_watermark
    )


def unheard_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions of which the broker said nothing: unknown as long as it lasts; others go on."""
    leaderless = (
        Finding(
            rule=U1,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            cause=(
                "no leader can say how far this partition may be read: it has none, or a new one"
                " waits for its replicas."
            ),
            next_step="Bring its brokers back; the next run lands what has piled up.",
            evidence={"topic_id": snapshot.topic_id},
        )
        for partition in sorted(snapshot.leaderless)
    )
    unlisted = (_unlisted(feed, generations[each], snapshot) for each in sorted(snapshot.unlisted))
    return (*leaderless, *unlisted)


def _unlisted(feed: str, account: GenerationAccount, snapshot: BrokerSnapshot) -> Finding:
    unread = offset_range(account.partition, account.frontier, account.last_seen_until)
    seen = (
        f"it was seen to reach offset {unread.until_offset}, and is landed up to"
        f" {unread.from_offset}"
        if unread
        else f"all that was seen of it, up to offset {account.last_seen_until}, is accounted for"
    )
    return finding(
        feed,
        account,
        unread,
        U1,
        Verdict.UNKNOWN,
        level=Level.L1,
        cause=f"the broker does not list this partition any more, under the same topic id; {seen}.",
        next_step=(
            "A topic never loses a partition, so a broker lags behind: compare what each of them"
            f" says (kafka-topics.sh --describe --topic {snapshot.topic}). The look that shows the"
            " partition again ends this."
        ),
        evidence={"topic_id": snapshot.topic_id, "last_seen_until": account.last_seen_until},
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
                    feed,
                    account,
                    interval,
                    Z5,
                    Verdict.UNKNOWN,
                    level=Level.L1,
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


def stalled_stable_offsets(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    outlook: Outlook,
    *,
    isolation: Isolation,
    now: datetime,
) -> tuple[Finding, ...]:
    """Partitions where a transaction is open for longer than any may be, and more piles up behind.

    An earlier plan saw the same last stable offset, at least the longest transaction ago, and the
    log has grown since.
    """
    if isolation is not Isolation.READ_COMMITTED:
        return ()
    longest = outlook.longest_transaction or LONGEST_TRANSACTION
    found = []
    for partition, account in sorted(generations.items()):
        bounds, past = snapshot.partitions.get(partition), outlook.past.get(partition, ())
        if bounds is None or account.topic_id != snapshot.topic_id:
            continue
        stable = bounds.last_stable_offset
        # A look at which nothing was open yet may have ended where the transaction began.
        since = next(
            (each for each in past if each.last_stable_offset == stable < each.high_watermark), None
        )
        held_up = offset_range(account.partition, stable, bounds.high_watermark)
        if held_up is None or since is None or not _is_stalled(since, bounds, now - longest):
            continue
        head = outlook.at_stable.get(partition)
        producer = head.producer_id if head else None
        of_whom = "a producer" if producer is None else f"producer {producer}"
        found.append(
            finding(
                feed,
                account,
                held_up,
                N2,
                Verdict.UNKNOWN,
                level=Level.L1,
                cause=(
                    f"a transaction of {of_whom} has been open at offset {stable} since"
                    f" {since.looked_at.isoformat(timespec='seconds')} at the latest, longer than"
                    " any may be; nothing behind it can be read."
                ),
                next_step="Find and abort it: kafka-transactions.sh find-hanging, then abort.",
                evidence={
                    "last_stable_offset": stable,
                    "producer_id": producer,
                    "seen_first_at": since.looked_at.isoformat(),
                },
            )
        )
    return tuple(found)


def _is_stalled(since: PastBounds, bounds: PartitionBounds, long_ago: datetime) -> bool:
    """True when it was open long ago, and records have come behind it since."""
    return since.looked_at < long_ago and since.high_watermark < bounds.high_watermark


def unfinished_batches(
    feed: str, topic: str, waiting: Sequence[WaitingBatch]
) -> tuple[Finding, ...]:
    """Batches that somebody left behind: nobody has held, or published, them for long."""
    return tuple(
        Finding(
            rule=N3,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=topic,
            cause=(
                f"batch {each.batch_id} is {each.state.value}, and for {_hours(each.seconds)} h"
                f" nobody has {'published' if each.state is BatchState.COMMITTED else 'held'} it."
            ),
            next_step=f"The next run takes it up: ./tallystick land {feed}",
            evidence={
                "batch": each.batch_id,
                "state": each.state.value,
                "seconds": round(each.seconds),
            },
            subject=each.batch_id,
        )
        for each in waiting
        if each.seconds > LEFT_BEHIND_AFTER.total_seconds()
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f}"


def could_not_tell(
    feed: str, topic: str, *, what: str, reason: str, seen_at: datetime, remedy: str = ""
) -> Finding:
    """A witness did not answer: everything it would have said is unknown.

    `remedy` is for what waiting alone does not mend.
    """
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L1,
        feed=feed,
        topic=topic,
        cause=f"{what} could not be asked: {reason}",
        next_step=remedy or f"Run again when it answers: ./tallystick reconcile {feed}",
        evidence={"seen_at": seen_at.isoformat()},
    )
