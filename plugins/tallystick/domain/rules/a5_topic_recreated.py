"""A5, topic recreated: another log has the name; the old one is gone with what nobody had read.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.losses import ACCEPT, lost_unread
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict


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
    mending=Mending.GIVE_UP_FILES,
    traits={Trait.RESTS_ON_FRONTIER, Trait.OF_RUNS},
    why_not_mended=(
        "the old log is gone, with what nobody had read; two people may accept it"
        " (tallystick waive --help)."
    ),
)


def lost_with_topic(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """Offsets that were seen in the old log, and not landed."""
    return lost_unread(
        feed,
        account,
        offsets,
        A5,
        evidence,
        cause="the topic was re-created before these offsets were read",
        advice="Find out who re-created the topic, and why.",
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
        feed,
        account,
        None,
        A5,
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
