"""A5, topic recreated: another log has the name; the old one is gone with what nobody had read.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.

A broker that is behind, or whose user lost a right, denies a topic too. So what looks have seen of
a topic that is gone is UNKNOWN for a day, and lost after it; a plan that finds another topic of
that name states the same with its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.rules.causes import ACCEPT, GOES_ON, unread
from tallystick.domain.rules.findings import Finding, Place, finding, provisional
from tallystick.domain.rules.rule import Ending, Loss, Rule, RuleClass, Trait
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict


def _its_end(found: Finding) -> str:
    return f"end of generation {found.generation} of topic {found.topic}"


A5: Final = Rule(
    code=FindingCode.TOPIC_RECREATED,
    kind=RuleClass.LOSS,
    compares="topic id and cluster id",
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="earliest offset 0: a young topic begins there too",
    remedy="a new generation in a directory of its own",
    one_cause=_its_end,
    traits={Trait.RESTS_ON_FRONTIER, Trait.OF_RUNS},
    why_not_mended=(
        "the old log is gone, with what nobody had read; two people may accept it"
        " (tallystick waive --help)."
    ),
    loss=lambda evidence: Loss(
        unread("the topic was re-created before these offsets were read", evidence),
        f"{GOES_ON} Find out who re-created the topic, and why.",
    ),
)


def unknown_tail(
    feed: str,
    account: GenerationAccount,
    reason: str,
    *,
    topic_id_now: str | None = None,
    is_waiting: bool = False,
) -> Finding:
    """What nobody saw of a log that is over."""
    waits = (
        " Attempts may hold rows of the old log that are not landed yet; nothing of the new log is"
        " planned before all of them could be asked."
    )
    return finding(
        A5,
        Place.of_log(feed, account),
        Verdict.UNKNOWN,
        cause=(
            f"{reason}: what was produced at and after offset {account.last_seen_until}"
            f" before that is not known.{waits if is_waiting else ''}"
        ),
        next_step=(
            "Ask who re-created the topic; the new log lands in a directory of its own. Nobody can"
            f" ever tell more of the old one. {ACCEPT}"
        ),
        evidence={
            **({"topic_id_now": topic_id_now} if topic_id_now else {}),
            **({"is_waiting": True} if is_waiting else {}),
        },
    )


_BELIEVED_AFTER: Final = timedelta(days=1)
_SINCE: Final = "gone_since"
_OF_ANOTHER: Final = ("topic_id_now", "cluster_id_now", "seen_at")


def gone_with_topic(
    told: Iterable[Finding], standing: Sequence[StoredFinding], now: datetime
) -> list[Finding]:
    """What is told of logs without a successor, as offsets of a topic that is gone.

    `standing` says since when that is known, and what people have accepted: that stays as it is.
    """
    known = [str(since) for each in standing if (since := each.finding.evidence.get(_SINCE))]
    since = min(known, default=now.isoformat(timespec="seconds"))
    is_believed = now - datetime.fromisoformat(since) >= _BELIEVED_AFTER
    accepted = {
        each.finding.key: each.finding.verdict
        for each in standing
        if each.state is FindingState.WAIVED
    }
    return [
        replace(
            each,
            verdict=accepted.get(each.key, each.verdict if is_believed else Verdict.UNKNOWN),
            cause=each.cause.replace("the topic was re-created", "the topic was deleted"),
            next_step=(
                "Ask who deleted the topic, and if it can be had from elsewhere. Don't create it by"
                f" hand: that is another log, and these offsets would be lost for good. {ACCEPT}"
            ),
            evidence={
                **{key: said for key, said in each.evidence.items() if key not in _OF_ANOTHER},
                _SINCE: since,
            },
        )
        for each in map(provisional, told)
        if each.rule == A5 and each.from_offset is not None
    ]
