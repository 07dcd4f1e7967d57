"""What a rule of reconciliation is: what it compares, what it may say, what ends it, what mends it.

Each rule stands in a module of its own, named by its code; `registry` has them all.

1. A rule says one of its verdicts, at one of its levels, and no other.
2. What is normal has its reason in `not_when`: a finding there is a defect of the rule.
3. What is told at a level has something that ends it there: nothing stands that nobody can end.
   What a rule tells of another kind of subject may end in another way; then it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, NamedTuple

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.verdicts import Verdict

if TYPE_CHECKING:
    from tallystick.domain.rules.findings import Finding


class RuleClass(StrEnum):
    """What kind of trouble a rule is about."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    CORRUPTION = "corruption"
    STALLED = "stalled or unknown"
    WARNING = "warning"


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
    OFFSETS_READ = "a reconcile that reads the batch's offset columns again, and finds all in order"
    FULL_READ = "a full read of its batch (level 3) in which all is well"
    SECOND_READ = "a reconcile at level 4 that compares the same slices again and finds them equal"
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


class SubjectKind(StrEnum):
    """What a finding is about, where its level alone does not say what ends it."""

    BATCH_ROWS = "a batch's rows"


class Mending(Enum):
    """What a repair does about a finding of the rule."""

    LAND_AGAIN = auto()
    """The committed files that it is about are landed again, or given up."""
    LAND_AGAIN_IF_NAMED = auto()
    """The same, on an operator's word only."""
    QUARANTINE = auto()
    """The file that it is about is moved out of the readers' directories, and kept."""
    QUARANTINE_IF_BARE = auto()
    """The same of a directory without a manifest, on an operator's word only."""
    FINISH = auto()
    """The next run takes the batch up; a manifest that is gone is written anew."""
    READ_AGAIN = auto()
    """The offset is asked for again, on an operator's word only."""
    NEW_GENERATION = auto()
    """A new generation is opened, on an operator's word only."""
    NOTHING = auto()
    """No repair mends it: `why_not_mended` says why, or else the finding's next step."""


class Trait(Enum):
    """What is so of all findings of a rule, and decides what others make of them."""

    CUT = auto()
    """A log was cut: its partition stops."""
    RESTS_ON_FRONTIER = auto()
    """A loss of what lies beyond the ledger's frontier, or is in none of its ranges."""
    GROWS = auto()
    """A state that lasts while the log grows behind it."""
    SILENCE = auto()
    """It only says that a witness did not answer: nothing is known to be wrong."""
    LACKS_WITNESS = auto()
    """A witness is missing, or does not know all: while it stands, of nothing beside it can be said
    that it is in order."""
    OF_RUNS = auto()
    """A run records it: its plan with the change that it describes, its batches with what is
    missing in them. The others are reconcile's: no news of a run, however lately seen."""
    DOUBTS_ROWS = auto()
    """While it stands, the committed rows of its offsets don't count as held."""
    DOUBTS_FILE = auto()
    """The same, where it names a committed file."""


class Loss(NamedTuple):
    """How offsets are told that the ledger has recorded as lost."""

    cause: str
    next_step: str
    """How to accept it is told behind it."""
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Two are equal that have the same code."""

    code: FindingCode
    kind: RuleClass = field(compare=False)
    compares: str = field(compare=False)
    endings: Mapping[Level | SubjectKind, Ending] = field(compare=False)
    """The levels at which it is told, the usual one first, each with what ends it there; and what
    ends otherwise."""
    verdicts: tuple[Verdict, ...] = field(compare=False)
    """The usual one first."""
    not_when: str = field(compare=False)
    """The nearest facts that are normal, or that another rule is about."""
    remedy: str = field(compare=False)
    one_cause: Callable[[Finding], str] = field(compare=False)
    """What a finding comes from, in words: findings with the same words are one trouble."""
    names: tuple[str, ...] = field(default=(), compare=False)
    """What its findings are called, where the code has several causes: each names one."""
    mending: Mending = field(default=Mending.NOTHING, compare=False)
    traits: Set[Trait] = field(default=frozenset(), compare=False)
    why_not_mended: str | None = field(default=None, compare=False)
    loss: Callable[[Mapping[str, object]], Loss] | None = field(default=None, compare=False)
    """What a range is told as that the ledger has recorded as lost under its code, with this
    evidence; None for a rule under which none is."""

    def __post_init__(self) -> None:
        if not (self.endings and self.verdicts and self.remedy):
            raise TypeError(
                f"{self.code.value} lacks a level with its ending, a verdict, or a remedy"
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """At which it is told."""
        return tuple(each for each in self.endings if isinstance(each, Level))

    @property
    def name(self) -> str:
        """The code's name in words."""
        return self.code.name.lower().replace("_", " ")

    @property
    def only_name(self) -> str:
        """What its findings are called; ValueError for a rule with several names."""
        [name] = self.names or (self.name,)
        return name

    def has(self, trait: Trait) -> bool:
        """True where the trait is so of its findings."""
        return trait in self.traits

    def require(self, name: str, verdict: Verdict, level: Level) -> None:
        """Raise ValueError for what the rule may not say; what people have accepted it may."""
        is_named = name in (self.names or (self.name,))
        may_say = verdict in (*self.verdicts, Verdict.WAIVED) and level in self.levels
        if not (is_named and may_say):
            raise ValueError(
                f"{self.code.value} {name} is never told as {verdict.value} at {level.value}"
            )
