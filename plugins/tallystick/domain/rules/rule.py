"""What a rule of reconciliation is: what it compares, what it may say, what ends it, what mends it.

Each rule stands in a module of its own, named by its code; `registry` has them all.

1. A rule says one of its verdicts, at one of its levels, and no other.
2. What is normal has its reason in `not_when`: a finding there is a defect of the rule.
3. What is told at a level has something that ends it there: nothing stands that nobody can end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level


class RuleClass(StrEnum):
    """What kind of trouble a rule is about."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    CORRUPTION = "corruption"
    STALLED = "stalled or unknown"
    WARNING = "warning"
    BENIGN = "benign"


class Ending(StrEnum):
    """What ends a finding, beside a repair that takes the place of the file that it is about."""

    LEDGER = "a reconcile that finds it no more in the ledger"
    BROKER = "a reconcile that finds it no more, if the broker answers for the partition"
    UNREAD_HEAD = (
        "a reconcile that finds it no more, if the broker tells with what the unread part of the"
        " partition begins"
    )
    LISTING = (
        "a reconcile that lists all directories, can ask the file that it is about, and finds it no"
        " more"
    )
    FULL_READ = "a full read of its batch (level 3) in which all is well"
    SECOND_READ = (
        "a reconcile at level 4 that compares the same slices again and finds them equal; of an"
        " attempt, also a commit whose sample does, or the loss of all its offsets"
    )
    PAYLOADS = (
        "a reconcile at level 3 that compares the payloads of all rows and finds it no more, or"
        " one of a feed that sets no `reconcile.payload_horizon`"
    )
    REPAIR = "a repair, and nothing else"
    LANDING = "landing that passes its offsets, or the end of their log: a new generation after it"
    NEW_GENERATION = (
        "a new generation, opened by `repair FEED NUMBER`; where it is UNKNOWN, two people who"
        " accept it"
    )
    ACCEPTANCE = "two people who accept it for a time: it is so for ever"
    NEVER_RECORDED = "nothing: it is normal, and on no record"


class Mending(Enum):
    """What a repair does about a finding of the rule."""

    LAND_AGAIN = auto()
    """The committed files that it is about are landed again, moved back, or given up."""
    LAND_AGAIN_IF_NAMED = auto()
    """The same, on an operator's word only."""
    MOVE_ASIDE = auto()
    """The file that it is about is moved out of the readers' directories, and kept."""
    MOVE_ASIDE_IF_BARE = auto()
    """The same of a directory without a manifest, on an operator's word only."""
    FINISH = auto()
    """The next run takes the batch up; a manifest that is gone is written anew."""
    READ_AGAIN = auto()
    """The offset is asked for again, on an operator's word only."""
    NEW_GENERATION = auto()
    """A new generation is opened, on an operator's word only."""
    NOTHING = auto()
    """No repair mends it: `why_not_mended` says why, or else the finding's next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Two are equal that have the same code."""

    code: FindingCode
    kind: RuleClass = field(compare=False)
    compares: str = field(compare=False)
    endings: Mapping[Level, Ending] = field(compare=False)
    """The levels at which it is told, each with what ends it there."""
    verdicts: tuple[Verdict, ...] = field(compare=False)
    not_when: str = field(compare=False)
    """The nearest facts that are normal, or that another rule is about."""
    remedy: str = field(compare=False)
    mending: Mending = field(compare=False)
    why_not_mended: str | None = field(default=None, compare=False)
    is_cut: bool = field(default=False, compare=False)
    """True for a log that was cut: its partition stops."""
    rests_on_frontier: bool = field(default=False, compare=False)
    """True for a loss of what lies beyond the ledger's frontier, or is in none of its ranges."""
    grows: bool = field(default=False, compare=False)
    """True for a state that lasts while the log grows behind it."""
    is_silence: bool = field(default=False, compare=False)
    """True for what only says that a witness did not answer: nothing is known to be wrong."""
    lacks_witness: bool = field(default=False, compare=False)
    """True for what says that a witness is missing, or does not know all: while it stands, of
    nothing beside it can be said that it is in order."""
    is_of_runs: bool = field(default=False, compare=False)
    """True for what a run records: its plan with the change that it describes, its batches with
    what is missing in them. The others are reconcile's: no news of a run, however lately seen."""

    def __post_init__(self) -> None:
        if not (self.endings and self.verdicts and self.remedy):
            raise TypeError(
                f"{self.code.value} lacks a level with its ending, a verdict, or a remedy"
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """At which it is told."""
        return tuple(self.endings)

    @property
    def name(self) -> str:
        """The code's name in words."""
        return self.code.name.lower().replace("_", " ")

    def require(self, verdict: Verdict, level: Level) -> None:
        """Raise ValueError for what the rule may not say; what people have accepted it may."""
        if verdict not in (*self.verdicts, Verdict.WAIVED) or level not in self.levels:
            raise ValueError(
                f"{self.code.value} {self.name} is never told as {verdict.value} at {level.value}"
            )
