"""N3, unfinished batch: it is committed and not shown, nobody has held it for long, it is held for
too long, or fails again and again; or its published directory has lost its manifest.

1. Failures are counted, not the age of a lease: a batch that fails quickly is told too.
2. A lost manifest is no loss: readers of the rows miss nothing. It is told before the ledger is
   lost too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.batch import BatchPlan, TriedBatch, WaitingBatch
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.states import BatchState
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.causes import its_batch
from tallystick.domain.rules.evidence import batch_in, of_batch
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

NOT_SHOWN: Final = "not shown"
LEFT_BEHIND: Final = "left behind"
HELD: Final = "held too long"
FAILING: Final = "failing"
NO_MANIFEST: Final = "manifest lost"


def _its_batch_or_manifest(found: Finding) -> str:
    return found.subject if found.name == NO_MANIFEST else its_batch(found)


N3: Final = Rule(
    code=FindingCode.UNFINISHED_BATCH,
    names=(NOT_SHOWN, LEFT_BEHIND, HELD, FAILING, NO_MANIFEST),
    kind=RuleClass.STALLED,
    compares=(
        "batches against the ledger's clock, and their attempts that ended without a commit;"
        " published directories against their manifests"
    ),
    endings={Level.L1: Ending.LEDGER, Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a lease runs, for as long as it may; it waits for its turn; two failures",
    remedy=(
        "the next run adopts, publishes or sweeps it; mend what its last attempt said; a repair"
        " writes its manifest anew"
    ),
    one_cause=_its_batch_or_manifest,
    mending=Mending.FINISH,
)

# A batch may wait for its turn behind the others of its run. Feeds run hourly or more often as a
# rule, and every run takes up what waits: what is still there after an hour was passed over. One
# that is committed waits for nothing: its lease runs until it is published.
_LEFT_BEHIND_AFTER: Final = timedelta(hours=1)
# Beside its application, an attempt looks at broker and storage, and proves what was written.
_BESIDE_SPARK: Final = timedelta(hours=1)
FAILING_AFTER: Final = 3


def unfinished_batches(
    feed: str, topic: str, waiting: Sequence[WaitingBatch]
) -> tuple[Finding, ...]:
    """Batches that somebody left behind: committed and not shown, or held by nobody for long."""
    return tuple(
        not_shown(feed, topic, each.batch_id, "nobody has published it.")
        if each.state is BatchState.COMMITTED
        else _of_batch(
            feed,
            topic,
            each.batch_id,
            each.state,
            LEFT_BEHIND,
            f"for {_hours(each.seconds)} h nobody has held it.",
            {"seconds": round(each.seconds)},
        )
        for each in waiting
        if each.state is BatchState.COMMITTED or each.seconds > _LEFT_BEHIND_AFTER.total_seconds()
    )


def not_shown(
    feed: str, topic: str, batch_id: BatchId, why: str, *, is_refused: bool = False
) -> Finding:
    """A committed batch that readers of the directories don't see, and why: a sentence.

    `is_refused`: the storage has refused to show it, and would refuse the next one likewise.
    """
    words = f"readers of the directories don't see its rows: {why}"
    evidence = {"refused": why} if is_refused else {}
    return _of_batch(feed, topic, batch_id, BatchState.COMMITTED, NOT_SHOWN, words, evidence)


def not_shown_yet(plan: BatchPlan) -> Iterator[Finding]:
    """Each range of a committed batch that is not published; on record once a look meets it."""
    told = not_shown(plan.feed, plan.topic, plan.batch_id, "it is not published yet.")
    for each in plan.ranges:
        offsets = each.offsets
        yield replace(
            told,
            generation=plan.ordinal,
            partition=offsets.partition.partition,
            from_offset=offsets.from_offset,
            until_offset=offsets.until_offset,
        )


def refused_by_storage(standing: Iterable[Finding]) -> list[BatchId]:
    """The batches that the storage has refused to show, by these findings."""
    refused = [each for each in standing if each.rule == N3 and "refused" in each.evidence]
    return [batch_id for each in refused if (batch_id := batch_in(each.evidence))]


def _of_batch(
    feed: str,
    topic: str,
    batch_id: BatchId,
    state: BatchState,
    name: str,
    words: str,
    evidence: Mapping[str, object],
) -> Finding:
    return finding(
        N3,
        Place(feed=feed, topic=topic, subject=batch_id),
        name=name,
        cause=f"batch {batch_id} is {state.value}, and {words}",
        next_step=f"The next run takes it up: tallystick land {feed}",
        evidence={**of_batch(batch_id), "state": state.value, **evidence},
    )


def held_too_long(
    feed: str, topic: str, tried: Sequence[TriedBatch], longest: timedelta
) -> tuple[Finding, ...]:
    """Batches whose attempt lives, and should have ended long ago."""
    limit = longest + _BESIDE_SPARK
    return tuple(
        finding(
            N3,
            Place(feed=feed, topic=topic, subject=each.plan.batch_id),
            name=HELD,
            cause=(
                f"batch {each.plan.batch_id} has been held by {each.holder} for"
                f" {_hours(each.held_seconds)} h, and an application may run for"
                f" {_hours(longest.total_seconds())} h."
            ),
            next_step=(
                "Look if its Spark application hangs, and end it; the next run takes the batch up:"
                f" tallystick batches {feed}"
            ),
            evidence={
                **of_batch(each.plan.batch_id),
                "holder": each.holder,
                "seconds": round(each.held_seconds),
            },
        )
        for each in tried
        if each.held_seconds is not None and each.held_seconds > limit.total_seconds()
    )


def failing_batches(feed: str, topic: str, tried: Sequence[TriedBatch]) -> tuple[Finding, ...]:
    """Batches that were tried again and again, and never in success."""
    return tuple(_failing(feed, topic, each) for each in tried if each.failures >= FAILING_AFTER)


def _failing(feed: str, topic: str, tried: TriedBatch) -> Finding:
    """Of one partition, where the batch holds no other."""
    ranges = [each.offsets for each in tried.plan.ranges]
    is_alone = len(ranges) == 1
    place = Place.in_batch(tried.plan, ranges[0]) if is_alone else Place(feed=feed, topic=topic)
    said = f"The last reason: {tried.last_failure}" if tried.last_failure else "None said why."
    return finding(
        N3,
        replace(place, subject=tried.plan.batch_id),
        name=FAILING,
        cause=(
            f"batch {tried.plan.batch_id} was tried {tried.failures} times, and failed each time."
            f" {said.rstrip('.')}."
        ),
        next_step=f"Mend what the reason names; every run tries again: tallystick batches {feed}",
        evidence={
            **of_batch(tried.plan.batch_id),
            "failures": tried.failures,
            "reason": tried.last_failure,
            "ranges": [str(each) for each in ranges[:20]],
        },
    )


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f}"


@dataclass(frozen=True, slots=True)
class LostManifest:
    """What became of a published directory's manifest."""

    length_bytes: int | None = None
    """None when it is gone."""
    sha256: str | None = None

    def __str__(self) -> str:
        if self.length_bytes is None:
            return "is gone"
        return f"has {self.length_bytes} bytes that are not the committed ones"


def without_manifest(
    feed: str, topic: str, directories: Mapping[str, LostManifest]
) -> tuple[Finding, ...]:
    """Published directories, each with what became of its manifest: a rebuilt ledger would not know
    their commits as they were.
    """
    return tuple(
        finding(
            N3,
            Place.at_path(feed, topic, manifest),
            name=NO_MANIFEST,
            cause=(
                f"{each} is published, and its {MANIFEST_NAME} {lost}: readers miss nothing, but"
                " a ledger rebuilt from the storage would not know this batch as it was committed."
            ),
            next_step=f"Have it written anew, as it was committed: tallystick repair {feed}",
            evidence={
                "manifest": manifest,
                "length_bytes": lost.length_bytes,
                "sha256": lost.sha256,
            },
        )
        for each, lost in directories.items()
        for manifest in [f"{each}/{MANIFEST_NAME}"]
    )
