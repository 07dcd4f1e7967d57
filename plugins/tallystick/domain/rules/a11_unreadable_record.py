"""A11, unreadable record: Spark cannot read it, while it reads what is beside it.

`planning.unreadable` finds the offset; the batch's other records are landed without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.causes import GOES_ON, look_in_kept
from tallystick.domain.rules.evidence import of_kept
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Loss, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict


def _its_record(found: Finding) -> str:
    return f"record {found.from_offset} of {found.topic}-{found.partition}"


A11: Final = Rule(
    code=FindingCode.UNREADABLE_RECORD,
    kind=RuleClass.LOSS,
    compares=(
        "single offsets that Spark failed to read twice, beside one of the partition that it read"
    ),
    endings={Level.L0: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="nothing of the partition can be read; the landing fails for another reason",
    remedy="all around it is landed; a repair tries it again; two people may give it up",
    one_cause=_its_record,
    mending=Mending.READ_AGAIN,
    traits={Trait.OF_RUNS},
    loss=lambda _: Loss("two people gave this record up, which Spark could not read.", GOES_ON),
)


def unreadable_record(
    plan: BatchPlan, offsets: OffsetRange, reason: str, kept: Sequence[str] = ()
) -> Finding:
    """One offset that Spark can't read, while it reads what is beside it; `kept` are the places of
    files that may hold it.
    """
    evidence = {"reason": reason, "topic_id": plan.topic_id, **of_kept(kept)}
    return finding(
        A11,
        Place.in_batch(plan, offsets),
        cause=(
            f"Spark can't read the record at offset {offsets.from_offset}, and reads what is beside"
            f" it: {reason.rstrip('.')}."
        ),
        next_step=(
            f"{look_in_kept(evidence)}All around it is landed. Try it again after an upgrade,"
            f" before retention deletes it: tallystick repair {plan.feed} NUMBER. Two people may"
            " give it up: tallystick waive --help"
        ),
        evidence=evidence,
    )


def standing_unreadable(
    generations: Mapping[int, GenerationAccount],
    recorded: Sequence[Finding],
    claimed: Collection[OffsetRange],
) -> tuple[Finding, ...]:
    """The unreadable records whose offset is neither landed nor lost to this day.

    `claimed` are the ranges that unfinished batches hold: a try is no landing.
    """
    return tuple(
        each for each in recorded if each.rule == A11 and _is_open(generations, each, claimed)
    )


def _is_open(
    generations: Mapping[int, GenerationAccount], found: Finding, claimed: Collection[OffsetRange]
) -> bool:
    account = found.account_in(generations)
    if account is None or account.ordinal != found.generation or found.from_offset is None:
        return False
    settled = set(account.beyond) - set(account.unreadable) - set(claimed)
    is_settled = any(found.from_offset in each for each in settled)
    return found.from_offset >= account.frontier and not is_settled
