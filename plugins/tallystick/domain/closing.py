"""Which standing findings have ended: what was looked for again, and is not there any more.

1. Only who looked can close: a witness that did not answer closes nothing, and a partition without
   a leader, or whose batches could not be read, has not answered.
2. What is lost stays lost: losses, cuts and unknown tails end by an operator's word, never by a
   look.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tallystick.domain.findings import Finding, FindingCode, Level
from tallystick.domain.generation import GenerationAccount
from tallystick.domain.identities import BatchId
from tallystick.domain.log_rules import has_lost_unlanded
from tallystick.domain.offset_rules import OF_ROWS
from tallystick.domain.states import Verdict

# Told again by every look at this witness, for as long as they last.
_OF_LEDGER: Final = frozenset(
    {
        FindingCode.RESET_SKIP,
        FindingCode.SHORT_READ,
        FindingCode.LEDGER_OVERLAP,
        FindingCode.UNFINISHED_BATCH,
    }
)
_OF_BROKER: Final = frozenset(
    {
        FindingCode.UNREAD_PARTITION,
        FindingCode.STALLED_STABLE_OFFSET,
        FindingCode.LOSS_NEAR,
        FindingCode.COULD_NOT_TELL,
    }
)
_OF_STORAGE: Final = frozenset(
    {
        FindingCode.PHANTOM_COMMIT,
        FindingCode.STRAY_FILE,
        FindingCode.LEDGER_BEHIND,
        FindingCode.LANDED_TWICE,
        FindingCode.CONTENT_CHANGED,
        FindingCode.COULD_NOT_TELL,
        FindingCode.UNFINISHED_BATCH,
    }
)


@dataclass(frozen=True, slots=True)
class Heard:
    """Who answered in this look."""

    taken_at: datetime
    broker: bool
    storage: bool
    """True when every directory was listed."""
    read_in_full: Mapping[BatchId, bool] = field(default_factory=dict)
    """Batches that a scrub read as a whole, and if each was clean."""
    offsets_read: Mapping[BatchId, bool] = field(default_factory=dict)
    """Batches whose offset columns were read, and if each was clean."""
    replaced: Collection[tuple[str, str]] = ()
    """Files by batch and name whose place a repair has taken."""
    leaderless: Collection[int] = ()
    """Partitions of which the broker could say nothing; it answered for all others."""
    not_told: Collection[int] = ()
    """Partitions of which it did not tell with what their unread part begins."""

    def is_broker_heard_on(self, partition: int | None) -> bool:
        """True when the broker answered for this partition; None is the topic."""
        return self.broker and partition not in self.leaderless


def ended_findings(
    standing: Mapping[int, Finding],
    found: Sequence[Finding],
    heard: Heard,
    generations: Mapping[int, GenerationAccount],
) -> dict[int, str]:
    """The numbers of findings that have ended, each with what ended it."""
    still = {each.key for each in found}
    # A rebuild names the offsets of a directory that the ledger can't hold beside another batch: it
    # stands as long as the directory is there.
    behind = {each.subject for each in found if each.code is FindingCode.LEDGER_BEHIND}
    ended = {}
    for number, each in standing.items():
        is_there = each.code is FindingCode.LANDED_TWICE and each.subject in behind
        if each.key not in still and not is_there:
            reason = _reason(each, heard, generations)
            if reason:
                ended[number] = reason
    return ended


def _reason(
    each: Finding, heard: Heard, generations: Mapping[int, GenerationAccount]
) -> str | None:
    """What ended a finding that this look did not find; None when it says nothing about it."""
    gone = f"It was looked for at {heard.taken_at.isoformat(timespec='seconds')}, and is gone."
    file = (str(each.evidence.get("batch")), str(each.evidence.get("file")))
    if file in heard.replaced:
        return f"A repair took the place of {file[1]}."
    if each.subject == OF_ROWS:
        return gone if heard.offsets_read.get(BatchId(file[0])) else None
    if each.level is Level.L3:
        return gone if heard.read_in_full.get(BatchId(file[0])) else None
    account = generations.get(-1 if each.partition is None else each.partition)
    match each.code:
        case FindingCode.LOSS_NEAR if each.partition in heard.not_told:
            return None
        case code if code in _OF_STORAGE and each.level is Level.L2:
            return gone if heard.storage else None
        case code if code in _OF_LEDGER:
            return gone
        case code if code in _OF_BROKER and each.level is Level.L1:
            return gone if heard.is_broker_heard_on(each.partition) else None
        case FindingCode.TRUNCATED | FindingCode.OVERWRITTEN:
            return _cut_ended(each, heard, account, gone)
        case FindingCode.NO_PROGRESS:
            until = each.until_offset
            has_passed = account and until is not None and account.frontier >= until
            return "Landing has passed these offsets." if has_passed else None
        case _:
            return None


def _cut_ended(
    each: Finding, heard: Heard, account: GenerationAccount | None, gone: str
) -> str | None:
    reopened = ended_by_reopening(each, account)
    if reopened:
        return reopened
    # An anchor that could not be judged, and can be now.
    is_judged = each.verdict is Verdict.UNKNOWN and heard.is_broker_heard_on(each.partition)
    return gone if is_judged else None


def ended_by_reopening(each: Finding, account: GenerationAccount | None) -> str | None:
    """What a new generation says of a cut before it; None where that leaves the cut standing."""
    is_cut = each.code in (FindingCode.TRUNCATED, FindingCode.OVERWRITTEN)
    if account is None or not is_cut or each.generation is None:
        return None
    if account.ordinal <= each.generation or has_lost_unlanded(each):
        return None
    return f"Generation {account.ordinal} was opened at offset {account.first_offset}."
