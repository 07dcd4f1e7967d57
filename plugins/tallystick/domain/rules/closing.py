"""Which standing findings have ended: what was looked for again, and is not there any more.

1. Only who looked can close: a witness that did not answer closes nothing, and a partition without
   a leader, one that the broker did not list, or whose batches could not be read, has not answered.
   Nor has storage for a file that could not be asked (U1 of the same subject).
2. What is lost stays lost: losses, cuts, doubts about a log and unknown tails end by an operator's
   word, never by a look. The witness that a doubt is about is not there to be asked again.
3. What is provisional ends where a look tells it no more: what came of it is told by findings of
   its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import assert_never

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.a3_log_cut import ended_by_reopening
from tallystick.domain.rules.a10_ledger_behind import A10
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.c3_rows_differ import ComparedPlace, place_of
from tallystick.domain.rules.evidence import batch_in, file_in, topic_id_in
from tallystick.domain.rules.file_findings import is_of_batch_rows
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.rule import Ending, SubjectKind, Trait


class Payloads(Enum):
    """What a look says of payloads that are there twice."""

    NOT_ASKED_FOR = auto()
    """The feed sets no horizon within which they are told."""
    NOT_COMPARED = auto()
    """Not in this look, or not of all rows."""
    COMPARED = auto()


@dataclass(frozen=True, slots=True)
class Heard:
    """Who answered in this look."""

    taken_at: datetime
    broker: BrokerSnapshot | None
    """What it showed; None when it did not answer."""
    storage: bool
    """True when every directory was listed."""
    read_in_full: Mapping[BatchId, bool] = field(default_factory=dict)
    """Batches that a scrub read as a whole, and if nothing was found in their rows."""
    offsets_read: Mapping[BatchId, bool] = field(default_factory=dict)
    """Batches whose offset columns were read, and if nothing was found in their rows."""
    equal_again: Collection[ComparedPlace] = ()
    """Places whose differing slices a second reader compared again, and found equal."""
    replaced: Collection[CommittedFile] = ()
    """Files whose place a repair has taken."""
    payloads: Payloads = Payloads.NOT_COMPARED
    not_told: Collection[int] = ()
    """Partitions of which it did not tell with what their unread part begins."""

    def is_broker_heard_on(self, each: Finding, account: GenerationAccount | None) -> bool:
        """True when the broker answered for the finding's partition, or for the topic without one.

        Where it shows no such partition it has answered only for a topic that was re-created: that
        log is over. `account` is the partition's newest generation; None before the first plan.
        """
        if self.broker is None or each.partition is None:
            return self.broker is not None
        if each.partition in self.broker.partitions:
            return True
        topic_id = account.topic_id if account else topic_id_in(each.evidence)
        is_over = topic_id is not None and topic_id != self.broker.topic_id
        return is_over and each.partition not in self.broker.unheard


def ending_of(found: Finding) -> Ending:
    """What ends it: by what it is about where its rule says so, by its level everywhere else.

    What is provisional ends with the look that tells it no more.
    """
    if found.is_provisional:
        return Ending.BROKER
    about = SubjectKind.BATCH_ROWS if is_of_batch_rows(found) else found.level
    return found.rule.endings[about]


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
    behind = {each.subject for each in found if each.rule == A10}
    unasked = {
        each.subject for each in found if each.rule.has(Trait.SILENCE) and each.level is Level.L2
    }
    ended = {}
    for number, each in standing.items():
        is_there = each.rule == B2 and each.subject in behind
        is_unasked = each.level is Level.L2 and each.subject in unasked
        if each.key in still or is_there or is_unasked:
            continue
        if reason := _reason(each, heard, generations):
            ended[number] = reason
    return ended


def _reason(
    each: Finding, heard: Heard, generations: Mapping[int, GenerationAccount]
) -> str | None:
    """What ended a finding that this look did not find; None when it says nothing about it."""
    file = file_in(each.evidence)
    if file and file in heard.replaced:
        return f"A repair took the place of {file.name}."
    gone = f"It was looked for at {heard.taken_at.isoformat(timespec='seconds')}, and is gone."
    account = each.account_in(generations)
    match ending_of(each):
        case Ending.LEDGER:
            return gone
        case Ending.BROKER | Ending.UNREAD_HEAD | Ending.LISTING as ending:
            return gone if _was_looked_for(each, ending, heard, account) else None
        case Ending.OFFSETS_READ | Ending.FULL_READ | Ending.SECOND_READ as ending:
            return gone if _is_well_by_now(each, ending, heard) else None
        case Ending.PAYLOADS:
            return _payloads_ended(heard, gone)
        case Ending.LANDING:
            return _passed(each, account)
        case Ending.NEW_GENERATION:
            return ended_by_reopening(each, account)
        case Ending.REPAIR | Ending.ACCEPTANCE:
            return None
        case _ as never:
            assert_never(never)


def _was_looked_for(
    each: Finding, ending: Ending, heard: Heard, account: GenerationAccount | None
) -> bool:
    """True where the witness answered that would have shown the finding again."""
    if ending is Ending.LISTING:
        return heard.storage
    if ending is Ending.UNREAD_HEAD and each.partition in heard.not_told:
        return False
    return heard.is_broker_heard_on(each, account)


def _is_well_by_now(each: Finding, ending: Ending, heard: Heard) -> bool:
    """True for what was read again in this way, and is as it should be."""
    if ending is Ending.SECOND_READ:
        return place_of(each) in heard.equal_again
    read = heard.read_in_full if ending is Ending.FULL_READ else heard.offsets_read
    batch_id = batch_in(each.evidence)
    return batch_id is not None and read.get(batch_id, False)


def _payloads_ended(heard: Heard, gone: str) -> str | None:
    if heard.payloads is Payloads.NOT_ASKED_FOR:
        return "The feed sets no reconcile.payload_horizon: it does not ask for this any more."
    return gone if heard.payloads is Payloads.COMPARED else None


def _passed(each: Finding, account: GenerationAccount | None) -> str | None:
    """What ended a finding about offsets that wait; only their own log can land them."""
    if account is None or each.generation is None or each.until_offset is None:
        return None
    if account.ordinal > each.generation:
        opened = f"generation {account.ordinal} was opened at offset {account.first_offset}"
        return f"That log is over: {opened}."
    if account.state is GenerationState.CLOSED:
        return f"That log is over: generation {account.ordinal} is closed."
    has_passed = account.ordinal == each.generation and account.frontier >= each.until_offset
    return "Landing has passed these offsets." if has_passed else None
