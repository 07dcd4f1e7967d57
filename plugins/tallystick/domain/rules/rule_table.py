"""Every rule of reconciliation in one table: what it compares, what it says, what it must not say.

The same table stands in docs/runbook.md, under "Findings", and its codes, levels and verdicts in
the tests; a test proves the three equal. Nothing here finds anything: the predicates are in the
modules of the families, `*_rules.py`.

1. A rule says one of its verdicts, at one of its levels, and no other.
2. What is normal has its reason in `not_when`: a finding there is a defect of the rule.
3. What is told at a level has something that ends it there: nothing stands that nobody can end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    code: FindingCode
    kind: RuleClass
    compares: str
    endings: Mapping[Level, Ending]
    """The levels at which it is told, each with what ends it there."""
    verdicts: tuple[Verdict, ...]
    not_when: str
    """The nearest facts that are normal, or that another rule is about."""
    remedy: str

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


_LOSS, _UNKNOWN, _DUP = Verdict.PROVEN_LOSS, Verdict.UNKNOWN, Verdict.PROVEN_DUP
_SUSPECTED, _BENIGN = Verdict.SUSPECTED, Verdict.BENIGN_HOLE
_READ, _BROKER, _STORAGE, _SCAN = Level.L0, Level.L1, Level.L2, Level.L3
_SECOND = Level.L4

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        FindingCode.EXPIRED,
        RuleClass.LOSS,
        "same log, log start above the frontier; of a new log, above 0",
        {_BROKER: Ending.ACCEPTANCE},
        (_LOSS, _UNKNOWN),
        "log start equals the frontier; all was landed before it expired; a live attempt holds it",
        "recorded as lost; land more often, or lengthen the retention; two people may waive it",
    ),
    Rule(
        FindingCode.PURGED,
        RuleClass.LOSS,
        "as A1, and the log begins within a batch",
        {_BROKER: Ending.ACCEPTANCE},
        (_LOSS, _UNKNOWN),
        "the log begins with a whole batch: retention looks the same, so A1 is said",
        "recorded as lost; find out who deleted them; two people may waive it",
    ),
    Rule(
        FindingCode.TRUNCATED,
        RuleClass.LOSS,
        "same log, high watermark or end of the epoch in which it was seen, against what was"
        " readable",
        {_BROKER: Ending.NEW_GENERATION},
        (_LOSS,),
        "a high watermark that lags while the epochs show a whole log",
        "the partition stops; a new generation on the operator's word",
    ),
    Rule(
        FindingCode.OVERWRITTEN,
        RuleClass.LOSS,
        "last landed record, or end of the epoch in which the log was seen, against the log",
        {_BROKER: Ending.NEW_GENERATION},
        (_LOSS, _UNKNOWN),
        "the record expired or was compacted, and the epochs reach past it; an idle log that has"
        " expired",
        "as A3; the old rows stay in the old generation",
    ),
    Rule(
        FindingCode.RECREATED,
        RuleClass.LOSS,
        "topic id and cluster id",
        {_BROKER: Ending.ACCEPTANCE},
        (_LOSS, _UNKNOWN),
        "earliest offset 0: a young topic begins there too",
        "a new generation in a directory of its own",
    ),
    Rule(
        FindingCode.RESET_SKIP,
        RuleClass.LOSS,
        "ranges of the ledger against its frontier; of a log that a rebuild closed, against all"
        " that was seen",
        {_BROKER: Ending.LEDGER},
        (_LOSS, _UNKNOWN),
        "a gap beyond the frontier: the next plan asks for it",
        "land the offsets by a feed of their own",
    ),
    Rule(
        FindingCode.SHORT_READ,
        RuleClass.LOSS,
        "planned offsets against rows and proven holes",
        {_READ: Ending.LEDGER},
        (_UNKNOWN,),
        "a hole at a marker, an aborted or a compacted record, at a range's very end too",
        "nothing was committed; the next run lands it again",
    ),
    Rule(
        FindingCode.PHANTOM_COMMIT,
        RuleClass.LOSS,
        "committed files against the listing; ranges that a repair has recorded as lost",
        {_BROKER: Ending.ACCEPTANCE, _STORAGE: Ending.LISTING, _SCAN: Ending.FULL_READ},
        (_LOSS, _UNKNOWN),
        "a range of holes alone has no file; a batch on its way from staging",
        "landed again while the broker has it; moved back, or given up, when named",
    ),
    Rule(
        FindingCode.STRAY_FILE,
        RuleClass.DUPLICATE,
        "the listing against committed files",
        {_STORAGE: Ending.LISTING},
        (_SUSPECTED,),
        "names that every reader skips; staging; a batch that was committed meanwhile; a committed"
        " file that was moved",
        "moved to quarantine; by its number where it may be the only copy of its rows",
    ),
    Rule(
        FindingCode.LEDGER_BEHIND,
        RuleClass.DUPLICATE,
        "published manifests, and rows in batches' directories without one, against the ledger",
        {_STORAGE: Ending.LISTING},
        (_UNKNOWN,),
        "a copy of a batch that the ledger knows, or of committed rows, is A9",
        "planning stops; rebuild or restore the ledger; a directory without a manifest is moved"
        " aside by its number",
    ),
    Rule(
        FindingCode.UNREADABLE_RECORD,
        RuleClass.LOSS,
        "single offsets that Spark failed to read twice, beside one of the partition that it read",
        {_READ: Ending.LEDGER},
        (_UNKNOWN,),
        "nothing of the partition can be read; the landing fails for another reason",
        "all around it is landed; a repair tries it again; two people may give it up",
    ),
    Rule(
        FindingCode.LEDGER_OVERLAP,
        RuleClass.DUPLICATE,
        "ranges of the ledger against each other, and those of two lives of one topic id",
        {_BROKER: Ending.LEDGER},
        (_DUP,),
        "the claim of a repair over what it replaces; ranges that touch; a log that was cut",
        "find out who wrote past the schema",
    ),
    Rule(
        FindingCode.LANDED_TWICE,
        RuleClass.DUPLICATE,
        "offset columns of the files that readers see",
        {_STORAGE: Ending.LISTING, _SCAN: Ending.FULL_READ},
        (_DUP, _SUSPECTED),
        "the same numbers in two generations; retracted files",
        "a stray moves aside; batches that share offsets are landed once more, in place of all of"
        " them",
    ),
    Rule(
        FindingCode.PAYLOAD_TWICE,
        RuleClass.DUPLICATE,
        "key, value and headers of landed rows within a horizon",
        {_SCAN: Ending.PAYLOADS},
        (_SUSPECTED,),
        "equal heartbeats are legal, so it is asked for by reconcile.payload_horizon",
        "make the producer idempotent; never touch raw rows",
    ),
    Rule(
        FindingCode.CONTENT_CHANGED,
        RuleClass.CORRUPTION,
        "length and checksum against those of the commit, or content fingerprint against that of"
        " the first full read",
        {_STORAGE: Ending.LISTING, _SCAN: Ending.FULL_READ},
        (_LOSS, _UNKNOWN),
        "-",
        "landed again while the broker has it",
    ),
    Rule(
        FindingCode.ABORTED_LANDED,
        RuleClass.CORRUPTION,
        "landed offsets against the broker's aborted transactions",
        {_BROKER: Ending.REPAIR},
        (_DUP,),
        "the feed reads uncommitted records; the range is not retained any more",
        "landed again, read committed",
    ),
    Rule(
        FindingCode.ROWS_DIFFER,
        RuleClass.CORRUPTION,
        "landed rows against the records that another Kafka client reads",
        {_SECOND: Ending.SECOND_READ},
        (_LOSS, _UNKNOWN),
        "expired, or cleaned from a compacted topic; the log is known to be cut",
        "before the commit: nothing was committed, the next run lands it again; after it: landed"
        " again while the broker has it",
    ),
    Rule(
        FindingCode.UNREAD_PARTITION,
        RuleClass.LOSS,
        "the broker's partitions against the ledger's",
        {_BROKER: Ending.BROKER},
        (_UNKNOWN,),
        "a partition without a record",
        "the next run starts it at its log start",
    ),
    Rule(
        FindingCode.STALLED_STABLE_OFFSET,
        RuleClass.STALLED,
        "last stable offset and high watermark against earlier snapshots",
        {_BROKER: Ending.BROKER},
        (_UNKNOWN,),
        "open for less than the brokers allow; nothing has come behind it; read_uncommitted",
        "abort the producer's transaction",
    ),
    Rule(
        FindingCode.UNFINISHED_BATCH,
        RuleClass.STALLED,
        "batches against the ledger's clock; published directories against their manifests",
        {_BROKER: Ending.LEDGER, _STORAGE: Ending.LISTING},
        (_UNKNOWN,),
        "a lease runs, for as long as it may; it waits for its turn, or for its rename",
        "the next run adopts, publishes or sweeps it; a repair writes its manifest anew",
    ),
    Rule(
        FindingCode.FAILING_BATCH,
        RuleClass.STALLED,
        "attempts of unfinished batches that have ended without a commit",
        {_BROKER: Ending.LEDGER},
        (_UNKNOWN,),
        "two failures; the first success ends it",
        "the last attempt's reason says what to mend; the next run tries again",
    ),
    Rule(
        FindingCode.NO_RUN,
        RuleClass.STALLED,
        "the ledger's last sign of a run against the feed's schedule, where records wait",
        {_BROKER: Ending.BROKER},
        (_UNKNOWN,),
        "nothing waits; a batch is held; less than three pauses of the schedule have passed",
        "find out why the scheduler does not run the feed",
    ),
    Rule(
        FindingCode.LOSS_NEAR,
        RuleClass.WARNING,
        "age and size of what is unread against the topic's retention",
        {_BROKER: Ending.BROKER},
        (_SUSPECTED,),
        "nothing is unread; more than half of the retention is left",
        "land it now, or lengthen the retention first",
    ),
    Rule(
        FindingCode.CONTROL_MARKER,
        RuleClass.BENIGN,
        "holes at control batches",
        {_READ: Ending.NEVER_RECORDED},
        (_BENIGN,),
        "-",
        "none: each transaction ends with a marker",
    ),
    Rule(
        FindingCode.ABORTED_RECORD,
        RuleClass.BENIGN,
        "holes inside aborted transactions, read_committed",
        {_READ: Ending.NEVER_RECORDED},
        (_BENIGN,),
        "-",
        "none: nobody is to see them",
    ),
    Rule(
        FindingCode.COMPACTED_RECORD,
        RuleClass.BENIGN,
        "holes in, or between, batches of a compacted topic",
        {_READ: Ending.NEVER_RECORDED},
        (_BENIGN,),
        "-",
        "none: a newer record has the key",
    ),
    Rule(
        FindingCode.NOTHING_THERE,
        RuleClass.BENIGN,
        "log start equals high watermark",
        {_BROKER: Ending.NEVER_RECORDED},
        (_BENIGN,),
        "-",
        "none: idle, empty or never written",
    ),
    Rule(
        FindingCode.NO_PROGRESS,
        RuleClass.STALLED,
        "the window's cut against the first record after now",
        {_BROKER: Ending.LANDING},
        (_UNKNOWN,),
        "late or unordered times; no record that late; nothing behind it",
        "plan.until: now; correct the producer's clock",
    ),
    Rule(
        FindingCode.COULD_NOT_TELL,
        RuleClass.STALLED,
        "the witnesses' answers against what was asked",
        {
            _BROKER: Ending.BROKER,
            _STORAGE: Ending.LISTING,
            _SCAN: Ending.FULL_READ,
            _SECOND: Ending.BROKER,
        },
        (_UNKNOWN,),
        "every witness answered, and the broker for every partition",
        "mend the witness and run again",
    ),
)

RULE_OF: Final[Mapping[FindingCode, Rule]] = {rule.code: rule for rule in RULES}
if list(RULE_OF) != list(FindingCode):
    raise TypeError("every code has one rule, in the order of the codes")
