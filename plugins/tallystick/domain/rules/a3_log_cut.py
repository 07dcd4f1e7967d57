"""A3, log cut: its partition stops, all others go on, and it goes on by an operator's word only.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.

1. What a plan recorded stays as it was stated then: today's bounds can't tell a cut any more.
2. A log that no witness can judge is unknown, never an empty answer.
3. A log that has stopped may be cut again: each cut is told, with what was seen since the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import Sameness
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.planning.log_changes import EndedGeneration, Observation
from tallystick.domain.rules.causes import ACCEPT, look_in_kept
from tallystick.domain.rules.evidence import kept_in, of_kept
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

TRUNCATED: Final = "truncated"
OVERWRITTEN: Final = "overwritten"
_PERHAPS: Final = "perhaps cut"

A3: Final = Rule(
    code=FindingCode.LOG_CUT,
    names=(TRUNCATED, OVERWRITTEN, _PERHAPS),
    kind=RuleClass.LOSS,
    compares=(
        "same log: its end, the end of the epoch in which it was seen, and the last landed record,"
        " against what was readable"
    ),
    endings={Level.L1: Ending.NEW_GENERATION},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when=(
        "a high watermark that lags while the epochs show a whole log; the last record expired or"
        " was compacted, and the epochs reach past it; an idle log that has expired"
    ),
    remedy="the partition stops; a new generation on the operator's word, beside the old rows",
    one_cause=lambda found: (
        f"cut of {found.topic}-{found.partition}, generation {found.generation}"
    ),
    mending=Mending.NEW_GENERATION,
    traits={Trait.CUT, Trait.OF_RUNS},
)


@dataclass(frozen=True, slots=True)
class CutEvidence:
    """What a partition stopped with."""

    reason: str
    landed_until: int
    """The frontier then (excluded)."""
    cut_at: int | None = None
    """Below it the log is as it was, by its epochs; None where they can't tell."""
    kept: tuple[str, ...] = ()
    """Where files are kept that may hold what was cut."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {
            "reason": self.reason,
            "landed_until": self.landed_until,
            **({} if self.cut_at is None else {"cut_at": self.cut_at}),
            **of_kept(self.kept),
        }

    @classmethod
    def of(cls, found: Finding) -> CutEvidence | None:
        """What the finding of a cut carries; None for any other finding, and for a doubt."""
        landed_until, cut_at = (found.evidence.get(each) for each in ("landed_until", "cut_at"))
        if not found.rule.has(Trait.CUT) or not isinstance(landed_until, int):
            return None
        return cls(
            str(found.evidence.get("reason")),
            landed_until,
            cut_at if isinstance(cut_at, int) else None,
            kept_in(found.evidence),
        )


def cut_finding(
    feed: str, account: GenerationAccount, seen: Observation | None, stopped: EndedGeneration
) -> Finding:
    """A partition whose log was cut, from where it was, as far as that is known.

    A log that ends below what was readable was cut there; where it has grown since, the leader
    epochs say where. Without them, or a look, all that is known is that the last landed record was.
    """
    number = account.partition.partition
    check = seen.logs.get(number) if seen else None
    bounds = seen.snapshot.partitions.get(number) if seen else None
    cut_at = check.cut_at if check else None
    shown_end = None if bounds is None or stopped.is_overwritten else bounds.high_watermark
    ends = [each for each in (shown_end, cut_at) if each is not None]
    from_offset = min(ends, default=account.anchor.offset if account.anchor else None)
    evidence = CutEvidence(stopped.reason, account.frontier, cut_at, tuple(stopped.kept)).as_json()
    cut = (
        None
        if from_offset is None
        else offset_range(account.partition, from_offset, account.readable_before)
    )
    return finding(
        A3,
        Place.of_log(feed, account, cut),
        name=OVERWRITTEN if stopped.is_overwritten else TRUNCATED,
        cause=f"the log was cut: {stopped.reason}.",
        next_step=(
            f"{look_in_kept(evidence)}This partition has stopped, all others go on. Its landed rows"
            " are kept. When you know what happened, name this finding:"
            f" tallystick repair {feed} NUMBER"
        ),
        evidence=evidence,
    )


def doubted_logs(
    feed: str, generations: Mapping[int, GenerationAccount], seen: Observation
) -> Iterator[Finding]:
    """Logs that no witness can judge: landing goes on under a new one, and the doubt stays.

    Not where nothing was landed and all that was seen has expired: what is lost is told as that.
    """
    for partition, check in sorted(seen.logs.items()):
        if check.sameness is not Sameness.UNKNOWN:
            continue
        account, bounds = generations[partition].since_cut, seen.snapshot.partitions[partition]
        if account.read_until is None and bounds.log_start_offset >= account.last_seen_until:
            continue
        yield finding(
            A3,
            Place.of_log(feed, account),
            Verdict.UNKNOWN,
            name=_PERHAPS,
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


def has_lost_unlanded(cut: Finding) -> bool:
    """True where offsets were cut that had not been landed: no new generation brings them back.

    So it may be where nobody can tell.
    """
    evidence = CutEvidence.of(cut)
    if evidence is None:
        return cut.verdict is Verdict.UNKNOWN
    return cut.until_offset is not None and cut.until_offset > evidence.landed_until


def ended_by_reopening(each: Finding, account: GenerationAccount | None) -> str | None:
    """What a new generation says of a cut before it; None where that leaves the cut standing."""
    if account is None or not each.rule.has(Trait.CUT) or each.generation is None:
        return None
    if account.ordinal <= each.generation or has_lost_unlanded(each):
        return None
    return f"Generation {account.ordinal} was opened at offset {account.first_offset}."
