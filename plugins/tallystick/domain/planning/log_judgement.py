"""What a broker snapshot means for the generations that the ledger knows.

Decides which generations open, close or stop, which offsets are lost, and which claims shrink.
Performs nothing. The rules are the table "Logs that change under us" in docs/design.md.

1. One sick partition never holds up, resets or repeats another one.
2. A lost range never overlaps a committed range, nor a claim that is left standing.
3. The start policy is asked for the feed's very first plan only.
4. A repair is carried out whole or not at all: what can't be read any more ends it, and what was
   committed before stays as it was.
5. A claim stands while an attempt may hold it: one that lives, or whose files lie in staging. So
   do offsets that nobody claims, and repairs; no generation is closed before, for nobody asks for
   the offsets of a closed one again.
6. What stands for files of dead attempts is told as UNKNOWN.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.attempts.staged import Staged
from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import UNKNOWN, Sameness
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range, subtract
from tallystick.domain.planning.log_changes import (
    NOT_IN_THE_LOG,
    Accounts,
    CutClaim,
    EndedGeneration,
    LogChanges,
    LostRange,
    Observation,
    OpenedGeneration,
)

_NOTHING_STAGED: Final = Staged()


def judge_logs(
    accounts: Accounts, seen: Observation, staged: Staged = _NOTHING_STAGED
) -> LogChanges:
    """What the ledger must change before it plans, partition by partition.

    `staged` is what attempts may hold; where it is left out, dead ones hold nothing.
    """
    changes = _Collected(accounts, seen, staged)
    is_first_plan = not accounts.generations
    identity = (seen.snapshot.cluster_id, seen.snapshot.topic_id)
    ordinal = _ordinal_of(identity, accounts)
    for account in accounts.generations.values():
        changes.look_at(account)
    waiting = {each.generation_id for each in changes.waiting}
    for partition, bounds in seen.snapshot.partitions.items():
        known = accounts.generations.get(partition)
        if known and (known.generation_id in waiting or seen.snapshot.is_of(known)):
            continue
        first = seen.start_offsets[partition] if is_first_plan else bounds.log_start_offset
        changes.opened.append(
            OpenedGeneration(
                TopicPartition(seen.snapshot.topic, partition),
                *identity,
                ordinal=ordinal,
                first_offset=first,
                reason=_reason_to_open(is_first_plan, known),
                # Where the feed itself begins, the start policy has said so: nothing before it is
                # wanted.
                begins_unseen=first > 0 and not is_first_plan,
                seen_until=bounds.high_watermark,
                seen_epoch=bounds.leader_epoch,
            )
        )
    return changes.frozen()


def _ordinal_of(identity: tuple[str, str], accounts: Accounts) -> int:
    """The number of this life of the topic: the one it has, or one more than any before."""
    known = accounts.generations.values()
    same = [each.ordinal for each in known if (each.cluster_id, each.topic_id) == identity]
    return max(same) if same else max((each.ordinal for each in known), default=0) + 1


def _reason_to_open(is_first_plan: bool, account: GenerationAccount | None) -> str:
    if is_first_plan:
        return "the feed's first plan"
    return "the topic was re-created" if account else "the partition was added"


class _Collected:
    """The changes while they are gathered, one generation after the other."""

    def __init__(self, accounts: Accounts, seen: Observation, staged: Staged) -> None:
        self.seen = seen
        self._staged = staged
        self.opened: list[OpenedGeneration] = []
        self.closed: list[EndedGeneration] = []
        self.waiting: list[EndedGeneration] = []
        self.stopped: list[EndedGeneration] = []
        self.cut_again: list[EndedGeneration] = []
        self.lost: list[LostRange] = []
        self.held: list[LostRange] = []
        self.cuts: list[CutClaim] = []
        self._claims: defaultdict[GenerationId, list[_Claim]] = defaultdict(list)
        self._repairs = [each for each in accounts.unfinished if each.plan.is_repair]
        for batch in accounts.unfinished:
            if batch.plan.is_repair:
                continue
            for planned in batch.plan.ranges:
                claim = _Claim(
                    batch.plan.batch_id,
                    planned.offsets,
                    is_living=staged.has_begun(batch),
                )
                self._claims[planned.generation_id].append(claim)

    def frozen(self) -> LogChanges:
        """The changes as a value."""
        return LogChanges(
            tuple(self.opened),
            tuple(self.closed),
            tuple(self.waiting),
            tuple(self.stopped),
            tuple(self.cut_again),
            tuple(self.lost),
            tuple(self.held),
            (*self.cuts, *self._ended_repairs()),
        )

    def _ended_repairs(self) -> Iterator[CutClaim]:
        """Every claim of the repairs that can't be carried out any more."""
        ended = {each.generation_id: each.code for each in (*self.closed, *self.stopped)}
        for repair in self._repairs:
            codes = [self._why_unreadable(each, ended) for each in repair.plan.ranges]
            code = next((each for each in codes if each), None)
            # An attempt may have read the records in time: its verification will tell.
            if code is None or (code in NOT_IN_THE_LOG and self._staged.may_hold(repair)):
                continue
            for planned in repair.plan.ranges:
                yield CutClaim(
                    repair.plan.batch_id,
                    planned.generation_id,
                    planned.offsets,
                    RangeState.RELEASED,
                    code,
                )

    def _why_unreadable(
        self, planned: PlannedRange, ended: Mapping[GenerationId, FindingCode]
    ) -> FindingCode | None:
        bounds = self.seen.snapshot.partitions.get(planned.offsets.partition.partition)
        is_expired = bounds and bounds.log_start_offset > planned.offsets.from_offset
        return ended.get(planned.generation_id) or (FindingCode.EXPIRED if is_expired else None)

    def look_at(self, account: GenerationAccount) -> None:
        """Gather what the snapshot means for one generation."""
        if account.state is GenerationState.CLOSED:
            return
        if not self.seen.snapshot.is_of(account):
            self._close(account)
            return
        partition = account.partition.partition
        bounds = self.seen.snapshot.partitions.get(partition)
        if bounds is None:
            return
        check = self.seen.logs.get(partition, UNKNOWN)
        if account.state is GenerationState.STOPPED:
            if check.sameness is Sameness.CUT:
                reason = "it had stopped, and was cut again"
                ended = EndedGeneration(account.generation_id, FindingCode.LOG_CUT, reason)
                self.cut_again.append(ended)
            return
        readable_before = account.readable_before
        # Right after a change of leaders the high watermark may lag behind for minutes: where the
        # epochs show that the log is whole, nothing was cut.
        is_shorter = bounds.high_watermark < readable_before
        if is_shorter and check.sameness is not Sameness.SAME:
            reason = (
                f"the log ends at {bounds.high_watermark}, but offsets up to {readable_before}"
                " were readable before"
            )
            self._stop(account, reason)
        elif check.is_overwritten:
            offset = account.anchor.offset if account.anchor else account.frontier
            reason = f"the record landed from offset {offset} is not there any more as it was"
            self._stop(account, reason, is_overwritten=True)
        elif check.sameness is Sameness.CUT:
            reason = (
                f"it ended at {check.cut_at} and has grown again, but offsets up to"
                f" {readable_before} were readable before"
            )
            self._stop(account, reason)
        elif bounds.log_start_offset > account.frontier:
            self._expire(account, bounds.log_start_offset)

    def _expire(self, account: GenerationAccount, log_start_offset: int) -> None:
        first = self.seen.first_batches.get(account.partition.partition)
        evidence = {
            "log_start_offset": log_start_offset,
            "frontier": account.frontier,
            "topic_id": account.topic_id,
            "seen_at": self.seen.snapshot.taken_at.isoformat(),
            "first_batch": [first.base_offset, first.until_offset] if first else None,
        }
        # Such a claim is left alone: its attempt may have read the records in time. If it did not,
        # its verification fails, and the next plan cuts the claim.
        claims = self._claims[account.generation_id]
        cuttable = [each for each in claims if not each.is_living]
        self._tell_held(account, log_start_offset, FindingCode.EXPIRED, evidence)
        self._lose(account, log_start_offset, FindingCode.EXPIRED, evidence, cuttable)

    def _close(self, account: GenerationAccount) -> None:
        snapshot = self.seen.snapshot
        reason = (
            f"topic id {account.topic_id} of cluster {account.cluster_id} became"
            f" {snapshot.topic_id} of cluster {snapshot.cluster_id}"
        )
        ended = EndedGeneration(account.generation_id, FindingCode.TOPIC_RECREATED, reason)
        evidence = {
            "topic_id": account.topic_id,
            "topic_id_now": snapshot.topic_id,
            "cluster_id": account.cluster_id,
            "cluster_id_now": snapshot.cluster_id,
            "last_seen_until": account.last_seen_until,
            "seen_at": snapshot.taken_at.isoformat(),
        }
        until = account.readable_before
        is_told = self._tell_held(account, until, FindingCode.TOPIC_RECREATED, evidence)
        if is_told or self._is_worked_on(account):
            self.waiting.append(ended)
            return
        self.closed.append(ended)
        claims = self._claims[account.generation_id]
        self._lose(account, until, FindingCode.TOPIC_RECREATED, evidence, claims)

    def _is_worked_on(self, account: GenerationAccount) -> bool:
        """True while a living attempt, or one of a repair, may hold some of it."""
        is_living = any(each.is_living for each in self._claims[account.generation_id])
        return is_living or any(
            planned.generation_id == account.generation_id
            for repair in self._repairs
            if self._staged.may_hold(repair)
            for planned in repair.plan.ranges
        )

    def _stop(
        self, account: GenerationAccount, reason: str, *, is_overwritten: bool = False
    ) -> None:
        number, code = account.partition.partition, FindingCode.LOG_CUT
        bounds, check = self.seen.snapshot.partitions[number], self.seen.logs.get(number, UNKNOWN)
        ends = [account.frontier, bounds.high_watermark]
        first = min(ends if check.cut_at is None else [*ends, check.cut_at])
        gone = offset_range(account.partition, first, account.readable_before)
        kept = self._staged.places_for(account, gone) if gone else ()
        ended = EndedGeneration(account.generation_id, code, reason, kept, is_overwritten)
        self.stopped.append(ended)
        for claim in self._claims[account.generation_id]:
            self.cuts.append(claim.cut(account, claim.offsets, RangeState.RELEASED, code))

    def _lose(
        self,
        account: GenerationAccount,
        until_offset: int,
        code: FindingCode,
        evidence: Mapping[str, object],
        cuttable: Sequence[_Claim],
    ) -> None:
        """Everything below `until_offset` that no commit and no standing claim holds is lost.

        What could not be read is gone with the rest of the log.
        """
        for claim in cuttable:
            gone = claim.offsets.clipped(0, until_offset)
            held = self._staged.held_of(account, gone) if gone else ()
            stays = claim.standing(until_offset, held)
            for each in subtract(gone, stays) if gone else ():
                cut = claim.cut(account, each, RangeState.LOST, code)
                self.cuts.append(replace(cut, kept=self._staged.places_for(account, each)))
        for unclaimed in self._unclaimed(account, until_offset):
            for each in subtract(unclaimed, self._staged.held_of(account, unclaimed)):
                kept = self._staged.places_for(account, each)
                told = {**evidence, "kept": list(kept)} if kept else evidence
                self.lost.append(LostRange(account.generation_id, each, code, told))

    def _unclaimed(self, account: GenerationAccount, until_offset: int) -> tuple[OffsetRange, ...]:
        """Everything below `until_offset` that no range holds."""
        whole = offset_range(account.partition, account.frontier, until_offset)
        standing = set(account.beyond).difference(account.unreadable)
        return subtract(whole, standing) if whole else ()

    def _tell_held(
        self,
        account: GenerationAccount,
        until_offset: int,
        code: FindingCode,
        evidence: Mapping[str, object],
    ) -> bool:
        """Tell what would be lost below `until_offset`, if no dead attempt held it; True for any.

        Not what a living one holds: it may commit.
        """
        dead = [each for each in self._claims[account.generation_id] if not each.is_living]
        perhaps: list[OffsetRange] = []
        for claim in dead:
            if gone := claim.offsets.clipped(0, until_offset):
                perhaps += claim.standing(until_offset, self._staged.held_of(account, gone))
        for each in self._unclaimed(account, until_offset):
            perhaps += self._staged.held_of(account, each)
        for each in perhaps:
            reasons = {one.path: one.reason for one in self._staged.holders(account, each)}
            self.held.append(LostRange(account.generation_id, each, code, evidence, reasons))
        return bool(perhaps)


@dataclass(frozen=True, slots=True)
class _Claim:
    """An unfinished batch's claim on one generation."""

    batch_id: BatchId
    offsets: OffsetRange
    is_living: bool
    """True while an attempt holds its lease, and where one has begun since staging was listed."""

    def standing(self, until_offset: int, held: Sequence[OffsetRange]) -> list[OffsetRange]:
        """What stays below `until_offset` of a claim that is held in part: it stays one range."""
        has_rest = self.offsets.until_offset > until_offset
        ends = [until_offset] if has_rest else [each.until_offset for each in held]
        first = min((each.from_offset for each in held), default=until_offset)
        return [OffsetRange(self.offsets.partition, first, max(ends))] if held else []

    def cut(
        self,
        account: GenerationAccount,
        offsets: OffsetRange,
        becomes: RangeState,
        code: FindingCode,
    ) -> CutClaim:
        return CutClaim(self.batch_id, account.generation_id, offsets, becomes, code)
