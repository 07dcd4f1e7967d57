"""Every rule of reconciliation in one table: what it compares, what it says, what it must not say.

The same table stands in docs/runbook.md, under "Findings", and its codes, levels and verdicts in
the tests; a test proves the three equal. Nothing here finds anything: the predicates are in the
modules of the families, `*_rules.py`.

1. A rule says one of its verdicts, at one of its levels, and no other.
2. What is normal has its reason in `not_when`: a finding there is a defect of the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tallystick.domain.findings import FindingCode, Level
from tallystick.domain.states import Verdict


class RuleClass(StrEnum):
    """What kind of trouble a rule is about."""

    LOSS = "loss"
    DUPLICATE = "duplicate"
    CORRUPTION = "corruption"
    STALLED = "stalled or unknown"
    WARNING = "warning"
    BENIGN = "benign"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table."""

    code: FindingCode
    kind: RuleClass
    compares: str
    levels: tuple[Level, ...]
    verdicts: tuple[Verdict, ...]
    not_when: str
    """The nearest facts that are normal, or that another rule is about."""
    remedy: str

    @property
    def name(self) -> str:
        """The code's name in words."""
        return self.code.name.lower().replace("_", " ")


_LOSS, _UNKNOWN, _DUP = Verdict.PROVEN_LOSS, Verdict.UNKNOWN, Verdict.PROVEN_DUP
_SUSPECTED, _BENIGN = Verdict.SUSPECTED, Verdict.BENIGN_HOLE
_READ, _BROKER, _STORAGE, _SCAN = Level.L0, Level.L1, Level.L2, Level.L3

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        FindingCode.EXPIRED,
        RuleClass.LOSS,
        "same log, log start above the frontier; of a new log, above 0",
        (_BROKER,),
        (_LOSS, _UNKNOWN),
        "log start equals the frontier; all was landed before it expired; a live attempt holds it",
        "recorded as lost; land more often, or lengthen the retention; two people may waive it",
    ),
    Rule(
        FindingCode.PURGED,
        RuleClass.LOSS,
        "as A1, and the log begins within a batch",
        (_BROKER,),
        (_LOSS, _UNKNOWN),
        "the log begins with a whole batch: retention looks the same, so A1 is said",
        "recorded as lost; find out who deleted them; two people may waive it",
    ),
    Rule(
        FindingCode.TRUNCATED,
        RuleClass.LOSS,
        "same log, high watermark below what was readable",
        (_BROKER,),
        (_LOSS,),
        "a regress that passes, as right after a change of leaders",
        "the partition stops; a new generation on the operator's word",
    ),
    Rule(
        FindingCode.OVERWRITTEN,
        RuleClass.LOSS,
        "last landed record, or end of the epoch in which it was read, against the log",
        (_BROKER,),
        (_LOSS, _UNKNOWN),
        "the record expired or was compacted, and the epochs reach past it",
        "as A3; the old rows stay in the old generation",
    ),
    Rule(
        FindingCode.RECREATED,
        RuleClass.LOSS,
        "topic id and cluster id",
        (_BROKER,),
        (_LOSS, _UNKNOWN),
        "earliest offset 0: a young topic begins there too",
        "a new generation in a directory of its own",
    ),
    Rule(
        FindingCode.RESET_SKIP,
        RuleClass.LOSS,
        "ranges of the ledger against its frontier",
        (_BROKER,),
        (_LOSS, _UNKNOWN),
        "a gap beyond the frontier: the next plan asks for it",
        "land the offsets by a feed of their own",
    ),
    Rule(
        FindingCode.SHORT_READ,
        RuleClass.LOSS,
        "planned offsets against rows and proven holes",
        (_READ,),
        (_UNKNOWN,),
        "a hole at a marker, an aborted or a compacted record, at a range's very end too",
        "nothing was committed; the next run lands it again",
    ),
    Rule(
        FindingCode.PHANTOM_COMMIT,
        RuleClass.LOSS,
        "committed files against the listing",
        (_STORAGE, _SCAN),
        (_LOSS, _UNKNOWN),
        "a range of holes alone has no file; a batch on its way from staging",
        "landed again while the broker has it",
    ),
    Rule(
        FindingCode.STRAY_FILE,
        RuleClass.DUPLICATE,
        "the listing against committed files",
        (_STORAGE,),
        (_SUSPECTED,),
        "names that readers skip; staging; a batch that was committed meanwhile",
        "moved to quarantine",
    ),
    Rule(
        FindingCode.LEDGER_BEHIND,
        RuleClass.DUPLICATE,
        "published manifests against the ledger's batches",
        (_STORAGE,),
        (_UNKNOWN,),
        "a copy of a batch that the ledger knows is A9",
        "planning stops; rebuild or restore the ledger",
    ),
    Rule(
        FindingCode.LEDGER_OVERLAP,
        RuleClass.DUPLICATE,
        "ranges of the ledger against each other",
        (_BROKER,),
        (_DUP,),
        "the claim of a repair over what it replaces; ranges that touch",
        "find out who wrote past the schema",
    ),
    Rule(
        FindingCode.LANDED_TWICE,
        RuleClass.DUPLICATE,
        "offset columns of the files that readers see",
        (_STORAGE, _SCAN),
        (_DUP, _SUSPECTED),
        "the same numbers in two generations; retracted files",
        "a stray moves aside; batches that share offsets are landed once more, in place of all of"
        " them",
    ),
    Rule(
        FindingCode.PAYLOAD_TWICE,
        RuleClass.DUPLICATE,
        "key, value and headers of landed rows within a horizon",
        (_SCAN,),
        (_SUSPECTED,),
        "equal heartbeats are legal, so it is asked for by reconcile.payload_horizon",
        "make the producer idempotent; never touch raw rows",
    ),
    Rule(
        FindingCode.CONTENT_CHANGED,
        RuleClass.CORRUPTION,
        "length and checksum, or content fingerprint, against those of the commit",
        (_STORAGE, _SCAN),
        (_LOSS,),
        "-",
        "landed again while the broker has it",
    ),
    Rule(
        FindingCode.ABORTED_LANDED,
        RuleClass.CORRUPTION,
        "landed offsets against the broker's aborted transactions",
        (_BROKER,),
        (_DUP,),
        "the feed reads uncommitted records; the range is not retained any more",
        "landed again, read committed",
    ),
    Rule(
        FindingCode.UNREAD_PARTITION,
        RuleClass.LOSS,
        "the broker's partitions against the ledger's",
        (_BROKER,),
        (_UNKNOWN,),
        "a partition without a record",
        "the next run starts it at its log start",
    ),
    Rule(
        FindingCode.STALLED_STABLE_OFFSET,
        RuleClass.STALLED,
        "last stable offset and high watermark against earlier snapshots",
        (_BROKER,),
        (_UNKNOWN,),
        "open for less than the brokers allow; nothing has come behind it; read_uncommitted",
        "abort the producer's transaction",
    ),
    Rule(
        FindingCode.UNFINISHED_BATCH,
        RuleClass.STALLED,
        "batches against the ledger's clock; published directories against their manifests",
        (_BROKER, _STORAGE),
        (_UNKNOWN,),
        "a lease runs; it waits for its turn, or for its rename",
        "the next run adopts, publishes or sweeps it; a repair writes its manifest anew",
    ),
    Rule(
        FindingCode.LOSS_NEAR,
        RuleClass.WARNING,
        "age and size of what is unread against the topic's retention",
        (_BROKER,),
        (_SUSPECTED,),
        "nothing is unread; more than half of the retention is left",
        "land it now, or lengthen the retention first",
    ),
    Rule(
        FindingCode.CONTROL_MARKER,
        RuleClass.BENIGN,
        "holes at control batches",
        (_READ,),
        (_BENIGN,),
        "-",
        "none: each transaction ends with a marker",
    ),
    Rule(
        FindingCode.ABORTED_RECORD,
        RuleClass.BENIGN,
        "holes inside aborted transactions, read_committed",
        (_READ,),
        (_BENIGN,),
        "-",
        "none: nobody is to see them",
    ),
    Rule(
        FindingCode.COMPACTED_RECORD,
        RuleClass.BENIGN,
        "holes in, or between, batches of a compacted topic",
        (_READ,),
        (_BENIGN,),
        "-",
        "none: a newer record has the key",
    ),
    Rule(
        FindingCode.NOTHING_THERE,
        RuleClass.BENIGN,
        "log start equals high watermark",
        (_BROKER,),
        (_BENIGN,),
        "-",
        "none: idle, empty or never written",
    ),
    Rule(
        FindingCode.NO_PROGRESS,
        RuleClass.STALLED,
        "the window's cut against the first record after now",
        (_BROKER,),
        (_UNKNOWN,),
        "late or unordered times; no record that late; nothing behind it",
        "plan.until: now; correct the producer's clock",
    ),
    Rule(
        FindingCode.COULD_NOT_TELL,
        RuleClass.STALLED,
        "-",
        (_BROKER, _STORAGE, _SCAN),
        (_UNKNOWN,),
        "every witness answered",
        "mend the witness and run again",
    ),
)
