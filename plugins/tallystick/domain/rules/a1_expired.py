"""A1, expired: the log start passed these offsets before they were landed.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.

Retention deletes whole segments, and a segment begins with a batch: a log that begins within a
batch was shortened on purpose. At a batch's border the two look alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.causes import ACCEPT, GOES_ON, NOT_MENDED, unread
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Loss, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict


def _is_purged(evidence: Mapping[str, object]) -> bool:
    first, log_start = evidence.get("first_batch"), evidence.get("log_start_offset")
    return isinstance(first, list) and isinstance(log_start, int) and first[0] < log_start


def _its_deletion(found: Finding) -> str:
    by = "deleted records" if _is_purged(found.evidence) else "what retention took"
    return f"{by} of topic {found.topic}"


def _loss(evidence: Mapping[str, object]) -> Loss:
    if _is_purged(evidence):
        cause = (
            "these offsets were deleted on purpose before they were read: the log begins within a"
            " batch, and retention deletes whole segments"
        )
        advice = "Find out who deleted them, and why."
    else:
        cause = "the log start passed these offsets before they were read"
        advice = "Land more often, or lengthen retention.ms, and tell the producers' owners."
    return Loss(unread(cause, evidence), f"{GOES_ON} {advice}")


A1: Final = Rule(
    code=FindingCode.EXPIRED,
    kind=RuleClass.LOSS,
    compares=(
        "same log, log start above the frontier; of a new log, above 0; within a batch, it was"
        " deleted on purpose"
    ),
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when=(
        "log start equals the frontier; all was landed before it expired; a live attempt holds it"
    ),
    remedy="recorded as lost; land more often, or lengthen the retention; two people may waive it",
    one_cause=_its_deletion,
    traits={Trait.RESTS_ON_FRONTIER, Trait.OF_RUNS},
    why_not_mended=NOT_MENDED,
    loss=_loss,
)


def unseen_beginning(feed: str, account: GenerationAccount) -> Finding:
    """A log that began above offset 0 before the feed first saw it: a new log begins at 0."""
    return finding(
        A1,
        Place.of_log(feed, account, OffsetRange(account.partition, 0, account.first_offset)),
        Verdict.UNKNOWN,
        cause=(
            "the partition was added, or the topic re-created, and when this log was first looked"
            f" at, it began at offset {account.first_offset} already: what was below that, nobody"
            " has seen."
        ),
        next_step=(
            "Ask what was produced to it before; landing goes on after it."
            " Lengthen retention.ms, or land soon after partitions or topics are made."
            f" {ACCEPT}"
        ),
        evidence={"log_start_offset": account.first_offset, "topic_id": account.topic_id},
    )
