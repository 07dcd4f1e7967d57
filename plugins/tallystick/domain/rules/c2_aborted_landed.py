"""C2, aborted landed."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import of_file
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

C2: Final = Rule(
    code=FindingCode.ABORTED_LANDED,
    kind=RuleClass.CORRUPTION,
    compares="landed offsets against the broker's aborted transactions",
    endings={Level.L1: Ending.REPAIR},
    verdicts=(Verdict.PROVEN_DUP,),
    not_when="the feed reads uncommitted records; the range is not retained any more",
    remedy="landed again, read committed",
    one_cause=its_file,
    mending=Mending.LAND_AGAIN,
)


def aborted_landed(
    plan: BatchPlan, file: str, partition: int, landed: OffsetRuns, aborted: OffsetRuns
) -> tuple[Finding, ...]:
    """Offsets of a read_committed batch's file whose transaction the broker lists as aborted."""
    return tuple(
        finding(
            C2,
            Place.in_batch(plan, plan.offsets_in(partition, run)),
            cause=(
                f"batch {plan.batch_id} holds rows of an aborted transaction, though its feed reads"
                " committed records only: nobody should ever see them."
            ),
            next_step=(
                "Look who runs Spark with another isolation level. Land the batch's offsets again:"
                f" tallystick repair {plan.feed}"
            ),
            evidence=of_file(plan.batch_id, file),
        )
        for run in landed.intersection(aborted)
    )
