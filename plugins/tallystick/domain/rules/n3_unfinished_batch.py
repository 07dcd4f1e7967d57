"""N3, unfinished batch: nobody has held or published it for long, or it is held for too long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.states import BatchState, Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N3: Final = Rule(
    code=FindingCode.UNFINISHED_BATCH,
    kind=RuleClass.STALLED,
    compares="batches against the ledger's clock; published directories against their manifests",
    endings={Level.L1: Ending.LEDGER, Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a lease runs, for as long as it may; it waits for its turn, or for its rename",
    remedy="the next run adopts, publishes or sweeps it; a repair writes its manifest anew",
    mending=Mending.FINISH,
)

# A batch may wait: for its turn behind the others of its run, or for a worker that publishes it.
# Feeds run hourly or more often as a rule, and every run takes up what waits: what is still there
# after an hour was passed over.
_LEFT_BEHIND_AFTER: Final = timedelta(hours=1)
# Beside its application, an attempt looks at broker and storage, and proves what was written.
_BESIDE_SPARK: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ManifestAt:
    """Evidence of a published batch whose manifest is gone, or another one."""

    manifest: str
    """Its path."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {"manifest": self.manifest}

    @classmethod
    def of(cls, found: Finding) -> ManifestAt | None:
        """What a finding N3 of a manifest carries; None for any other finding."""
        manifest = found.evidence.get("manifest")
        return cls(manifest) if found.rule == N3 and isinstance(manifest, str) else None


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
        if each.seconds > _LEFT_BEHIND_AFTER.total_seconds()
    )


def held_too_long(
    feed: str, topic: str, tried: Sequence[TriedBatch], longest: timedelta
) -> tuple[Finding, ...]:
    """Batches whose attempt lives, and should have ended long ago."""
    limit = longest + _BESIDE_SPARK
    return tuple(
        Finding(
            rule=N3,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=topic,
            cause=(
                f"batch {each.plan.batch_id} has been held by {each.holder} for"
                f" {_hours(each.held_seconds)} h, and an application may run for"
                f" {_hours(longest.total_seconds())} h."
            ),
            next_step=(
                "Look if its Spark application hangs, and end it; the next run takes the batch up:"
                f" ./tallystick batches {feed}"
            ),
            evidence={
                "batch": each.plan.batch_id,
                "holder": each.holder,
                "seconds": round(each.held_seconds),
            },
            # That nobody holds it is another trouble.
            subject=f"{each.plan.batch_id} is held",
        )
        for each in tried
        if each.held_seconds is not None and each.held_seconds > limit.total_seconds()
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f}"
