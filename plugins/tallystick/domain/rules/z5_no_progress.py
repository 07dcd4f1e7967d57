"""Z5, no progress: a record from the future keeps every later window's end where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    isolation: Isolation,
) -> Iterator[Finding]:
    """Partitions where all is landed before a record from the future, and more is behind it."""
    border = snapshot.border
    for partition, cut in sorted(border.from_future.items() if border else ()):
        account = generations.get(partition)
        if account is None or account.state is not GenerationState.OPEN:
            continue
        readable = snapshot.partitions[partition].readable_until(isolation)
        is_behind = cut <= account.frontier < readable and cut + 1 < readable
        if is_behind and account.topic_id == snapshot.topic_id:
            yield finding(
                Z5,
                Place.of_log(
                    feed, account, OffsetRange(account.partition, account.frontier, readable)
                ),
                cause=(
                    f"the record at offset {cut} claims a time in the future, so no window's"
                    " end passes it while readable offsets pile up behind it."
                ),
                next_step="Set plan.until: now in the feed, and correct the producer's clock.",
                evidence={"cut": cut},
            )
