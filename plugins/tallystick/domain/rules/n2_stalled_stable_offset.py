"""N2, stalled stable offset: a transaction is open for longer than any may be.

Slow and stuck are told apart by the longest transaction that the brokers allow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.states import Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds, PastBounds
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict


def _its_producer(found: Finding) -> str:
    producer = found.evidence.get("producer_id")
    name = f"{found.topic}-{found.partition}" if producer is None else f"producer {producer}"
    return f"open transaction of {name}"


N2: Final = Rule(
    code=FindingCode.STALLED_STABLE_OFFSET,
    kind=RuleClass.STALLED,
    compares="last stable offset and high watermark against earlier snapshots",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="open for less than the brokers allow; nothing has come behind it; read_uncommitted",
    remedy="abort the producer's transaction",
    one_cause=_its_producer,
    traits={Trait.GROWS},
)

# The brokers' own default of transaction.max.timeout.ms, for where they don't say.
LONGEST_TRANSACTION: Final = timedelta(minutes=15)


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
                N2,
                Place.of_log(feed, account, held_up),
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
