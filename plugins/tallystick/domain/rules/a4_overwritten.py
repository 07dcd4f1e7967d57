"""A4, overwritten: the log was cut below what was landed, and has grown over it.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.

A log that no witness can judge is unknown, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import Sameness
from tallystick.domain.planning.log_changes import EndedGeneration, Observation
from tallystick.domain.rules.causes import same_log
from tallystick.domain.rules.cut_log import cut_finding
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.losses import ACCEPT
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

A4: Final = Rule(
    code=FindingCode.OVERWRITTEN,
    kind=RuleClass.LOSS,
    compares="last landed record, or end of the epoch in which the log was seen, against the log",
    endings={Level.L1: Ending.NEW_GENERATION},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when=(
        "the record expired or was compacted, and the epochs reach past it; an idle log that has"
        " expired"
    ),
    remedy="as A3; the old rows stay in the old generation",
    one_cause=same_log("cut"),
    mending=Mending.NEW_GENERATION,
    traits={Trait.CUT, Trait.OF_RUNS},
)


def overwritten(
    feed: str, account: GenerationAccount, seen: Observation | None, stopped: EndedGeneration
) -> Finding:
    """A partition whose log holds other records now where some were landed."""
    return cut_finding(feed, account, seen, stopped, A4)


def doubted_logs(
    feed: str, generations: Mapping[int, GenerationAccount], seen: Observation
) -> Iterator[Finding]:
    """Logs that no witness can judge: landing goes on under a new one, and the doubt stays.

    Not where nothing was landed and all that was seen has expired: what is lost is told as that.
    """
    for partition, check in sorted(seen.logs.items()):
        if check.sameness is not Sameness.UNKNOWN:
            continue
        account, bounds = generations[partition], seen.snapshot.partitions[partition]
        if account.read_until is None and bounds.log_start_offset >= account.last_seen_until:
            continue
        yield finding(
            feed,
            account,
            None,
            A4,
            Verdict.UNKNOWN,
            cause=(
                f"nobody can tell if the log was cut below offset {account.last_seen_until}: the"
                " broker has forgotten the leader epoch in which it was seen to reach there, and"
                " the last landed record is gone."
            ),
            next_step=(
                "Look at the topic's leader changes in the broker's log. If none of them was"
                f" unclean, two people may accept this. {ACCEPT}"
            ),
            evidence={
                "seen_until": account.last_seen_until,
                "seen_epoch": account.seen_epoch,
                "log_start_offset": bounds.log_start_offset,
            },
        )
