"""U1, could not tell: a witness did not answer, so all that it would have said is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import file_in, of_topic
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

_WITNESSES: Final = {Level.L1: "broker", Level.L2: "storage", Level.L3: "landed rows"}


def _its_witness(found: Finding) -> str:
    if file_in(found.evidence):
        return its_file(found)
    return found.subject or f"brokers of topic {found.topic}"


U1: Final = Rule(
    code=FindingCode.COULD_NOT_TELL,
    kind=RuleClass.STALLED,
    compares="the witnesses' answers against what was asked",
    endings={
        Level.L1: Ending.BROKER,
        Level.L2: Ending.LISTING,
        Level.L3: Ending.FULL_READ,
        Level.L4: Ending.BROKER,
    },
    verdicts=(Verdict.UNKNOWN,),
    not_when="every witness answered, and the broker for every partition",
    remedy="mend the witness and run again",
    one_cause=_its_witness,
    mending=Mending.LAND_AGAIN_IF_NAMED,
    traits={Trait.SILENCE, Trait.LACKS_WITNESS, Trait.OF_RUNS, Trait.DOUBTS_FILE},
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
            evidence=of_topic(snapshot.topic_id),
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
        level=Level.L1,
        cause=f"the broker does not list this partition any more, under the same topic id; {seen}.",
        next_step=(
            "A topic never loses a partition, so a broker lags behind: compare what each of them"
            f" says (kafka-topics.sh --describe --topic {snapshot.topic}). The look that shows the"
            " partition again ends this."
        ),
        evidence={**of_topic(snapshot.topic_id), "last_seen_until": account.last_seen_until},
    )


def could_not_tell(
    feed: str,
    topic: str,
    level: Level,
    *,
    what: str,
    reason: str,
    seen_at: datetime,
    remedy: str = "",
) -> Finding:
    """A witness did not answer: everything it would have said is unknown.

    `remedy` is for what waiting alone does not mend.
    """
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=level,
        feed=feed,
        topic=topic,
        cause=f"{what} could not be asked: {reason}",
        next_step=remedy or f"Run again when it answers: tallystick reconcile {feed}",
        evidence={"seen_at": seen_at.isoformat()},
        subject=_WITNESSES[level],
    )


def could_not_compare(feed: str, topic: str, reason: str) -> Finding:
    """The second reader, or what it is compared with, gave no answer."""
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L4,
        feed=feed,
        topic=topic,
        cause=f"the second reader could not compare: {reason}",
        next_step=f"Run again when it answers: tallystick reconcile {feed} --level 4",
        subject="second reader",
    )
