"""Findings: what reconciliation states, as values with exact offsets, a cause and a next step.

1. A finding says what its rule may say, at a level at which the rule looks; no other can be made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.finding_codes import FindingCode as FindingCode
from tallystick.domain.finding_codes import Level as Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.rule import Rule, Trait
from tallystick.domain.verdicts import Verdict

_PROVISIONAL: Final = "provisional"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a finding is about, with what each finding there carries."""

    feed: str
    topic: str
    generation: int | None = None
    """Ordinal of the generation; None when the trouble is not of one log."""
    partition: int | None = None
    from_offset: int | None = None
    """Included."""
    until_offset: int | None = None
    """Excluded."""
    subject: str = ""
    """What it is about where no interval tells two of a code apart: a file, the rows of a file, a
    path, a batch."""
    level: Level | None = None
    """How deep a check looks there; None where each rule has its own."""
    evidence: Mapping[str, object] = field(default_factory=dict, hash=False)

    @classmethod
    def of_log(
        cls, feed: str, account: GenerationAccount, offsets: OffsetRange | None = None
    ) -> Place:
        """One generation; without an interval where its rule can't bound it."""
        place = cls(
            feed=feed,
            topic=account.partition.topic,
            generation=account.ordinal,
            partition=account.partition.partition,
        )
        return place.at(offsets.from_offset, offsets.until_offset) if offsets else place

    @classmethod
    def in_batch(cls, plan: BatchPlan, offsets: OffsetRange) -> Place:
        """Offsets of a batch."""
        return cls(
            feed=plan.feed,
            topic=plan.topic,
            generation=plan.ordinal,
            partition=offsets.partition.partition,
            from_offset=offsets.from_offset,
            until_offset=offsets.until_offset,
        )

    @classmethod
    def at_path(cls, feed: str, topic: str, path: str) -> Place:
        """A file or a directory, whatever offsets it holds."""
        return cls(feed=feed, topic=topic, subject=path, level=Level.L2)

    def at(self, from_offset: int, until_offset: int) -> Place:
        """These offsets of it."""
        return replace(self, from_offset=from_offset, until_offset=until_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Place):
    """One thing that is wrong, named to the offset; several may be one trouble."""

    rule: Rule
    verdict: Verdict
    level: Level
    cause: str
    next_step: str
    name: str = ""
    """Which of its rule's names it has; may be left out where the rule has but one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.rule.only_name)
        self.rule.require(self.name, self.verdict, self.level)

    @property
    def code(self) -> FindingCode:
        """Its rule's."""
        return self.rule.code

    @property
    def key(self) -> tuple[object, ...]:
        """What it is about: the same trouble seen again has the same key, whatever its words.

        A state that lasts is the same one while the log grows: its end is where a look saw the log.
        """
        return (
            self.code,
            self.name,
            self.topic,
            self.generation,
            self.partition,
            self.from_offset,
            None if self.rule.has(Trait.GROWS) else self.until_offset,
            self.subject,
        )

    @property
    def trouble(self) -> str:
        """What it comes from, by its rule: findings with the same words are one trouble."""
        return self.rule.one_cause(self)

    @property
    def is_provisional(self) -> bool:
        """True for what the ledger does not hold, and looks alone tell: it stands as long as they
        do.
        """
        return self.evidence.get(_PROVISIONAL) is True

    def account_in(self, generations: Mapping[int, GenerationAccount]) -> GenerationAccount | None:
        """The newest generation of its partition; None where it has none."""
        return None if self.partition is None else generations.get(self.partition)

    def __str__(self) -> str:
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        if self.from_offset is not None and self.until_offset is not None:
            place += f" [{self.from_offset}, {self.until_offset})"
        return f"{place} {self.code.value} {self.verdict.value}: {self.cause} {self.next_step}"


def finding(
    rule: Rule,
    place: Place,
    verdict: Verdict | None = None,
    *,
    cause: str,
    next_step: str,
    evidence: Mapping[str, object] | None = None,
    name: str = "",
) -> Finding:
    """What the rule says of the place: its usual verdict where none is named.

    A name is said where the rule has several.
    """
    where = {each.name: getattr(place, each.name) for each in fields(Place)}
    told = {
        "level": place.level or rule.levels[0],
        "evidence": {**place.evidence, **(evidence or {})},
    }
    return Finding(
        **(where | told),
        rule=rule,
        verdict=verdict or rule.verdicts[0],
        cause=cause,
        next_step=next_step,
        name=name,
    )


def provisional(found: Finding) -> Finding:
    """The finding where the change that it tells of can't be recorded yet."""
    return replace(found, evidence={**found.evidence, _PROVISIONAL: True})


# Everything above what is harmless or accepted: a run's check fails on it, and so does reconcile.
FAILING_VERDICTS: Final = frozenset(
    {Verdict.SUSPECTED, Verdict.UNKNOWN, Verdict.PROVEN_DUP, Verdict.PROVEN_LOSS}
)


def once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without repeats of the same key, the first one's words; worst first."""
    seen: dict[tuple[object, ...], Finding] = {}
    for each in findings:
        seen.setdefault(each.key, each)
    return sorted(seen.values(), key=lambda each: -each.verdict.severity)


def why_nothing_is_proven(silent: Sequence[Finding], unrecorded: Iterable[Finding]) -> str | None:
    """Why a look does not prove that all is complete up to it: the ledger alone can't say it later.

    A witness was silent, or the look shows what is not recorded with it: the worst of it.
    """
    if silent:
        return f"the look proves nothing, for {silent[0].cause}"
    found = max(unrecorded, key=lambda each: each.verdict.severity, default=None)
    if found is None:
        return None
    return (
        f"the look proves nothing, for it showed {found.code.value} {found.verdict.value} of"
        f" partition {found.partition}, and that is not on record."
    )


class Outcome(Enum):
    """What is made of all that a reconcile has found."""

    CLEAN = "nothing to fail on"
    SILENCE = "a witness did not answer, and nothing is known to be wrong: that may pass"
    TROUBLE = "something is wrong, whoever was silent"


def outcome_of(
    found: Iterable[tuple[Rule, Verdict]], fail_on: Collection[str] = FAILING_VERDICTS
) -> Outcome:
    """Of the findings, each with what is said of it now; `fail_on` are the verdicts that count."""
    failing = [rule for rule, verdict in found if verdict in fail_on]
    if not failing:
        return Outcome.CLEAN
    is_silence = all(rule.has(Trait.SILENCE) for rule in failing)
    return Outcome.SILENCE if is_silence else Outcome.TROUBLE
