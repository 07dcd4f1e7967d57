"""What the changes of a log are told as, and each recorded loss: by the rule of each (A1 to A5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import is_foreseen
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import (
    CutClaim,
    EndedGeneration,
    LogChanges,
    LostRange,
    Observation,
)
from tallystick.domain.rules.a1_expired import expired, unseen_beginning
from tallystick.domain.rules.a2_purged import purged
from tallystick.domain.rules.a3_truncated import truncated
from tallystick.domain.rules.a4_overwritten import doubted_logs, overwritten
from tallystick.domain.rules.a5_topic_recreated import lost_with_topic, unknown_tail
from tallystick.domain.rules.a8_committed_file_missing import lost_rows
from tallystick.domain.rules.a11_unreadable_record import given_up
from tallystick.domain.rules.evidence import of_attempts_not_asked, of_batch, of_kept
from tallystick.domain.rules.findings import Finding, foreseen
from tallystick.domain.verdicts import Verdict

_Loss = Callable[[str, GenerationAccount, OffsetRange, Mapping[str, object] | None], Finding]
_LOSSES: Final[Mapping[FindingCode, _Loss]] = {
    FindingCode.EXPIRED: expired,
    FindingCode.PURGED: purged,
    FindingCode.TOPIC_RECREATED: lost_with_topic,
    FindingCode.COMMITTED_FILE_MISSING: lost_rows,
    FindingCode.UNREADABLE_RECORD: given_up,
}
_Cut = Callable[[str, GenerationAccount, Observation, EndedGeneration], Finding]
_CUTS: Final[Mapping[FindingCode, _Cut]] = {
    FindingCode.TRUNCATED: truncated,
    FindingCode.OVERWRITTEN: overwritten,
}


def change_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the changes that a snapshot forces mean for the feed."""
    by_id = {each.generation_id: each for each in generations.values()}
    gone = [(each.generation_id, each.offsets, each.code, each.evidence) for each in changes.lost]
    gone += [
        (each.generation_id, each.offsets, each.code, _claim_evidence(each))
        for each in changes.cuts
        if each.becomes is RangeState.LOST
    ]
    lost = [
        lost_finding(feed, by_id[generation_id], offsets, code, evidence)
        for generation_id, offsets, code, evidence in gone
    ]
    stopped = [
        _CUTS[each.code](feed, by_id[each.generation_id], seen, each) for each in changes.stopped
    ]
    closed = [
        unknown_tail(feed, by_id[each.generation_id], each, seen, is_waiting=is_waiting)
        for ended, is_waiting in ((changes.closed, False), (changes.waiting, True))
        for each in ended
    ]
    not_lost = [_not_lost(feed, by_id[each.generation_id], each) for each in changes.not_lost]
    # Where the feed itself begins, the start policy has said so, and nothing before it is wanted.
    begun = [
        unseen_beginning(feed, each)
        for each in (changes.opened if generations else ())
        if each.first_offset > 0
    ]
    return (*lost, *not_lost, *stopped, *closed, *begun, *doubted_logs(feed, generations, seen))


def lost_finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    code: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """What a range recorded as lost means, by the code under which it was recorded."""
    return _LOSSES[FindingCode(code)](feed, account, offsets, evidence)


def foreseen_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the next plan will find, as it is told before that plan has recorded it."""
    return tuple(foreseen(each) for each in change_findings(feed, generations, changes, seen))


def _not_lost(feed: str, account: GenerationAccount, gone: LostRange) -> Finding:
    """What the log has no more, as long as files that may hold it could not be asked.

    No plan records it, so it is as foreseen: a look that could ask says what became of it.
    """
    evidence = {**gone.evidence, **of_attempts_not_asked(gone.not_asked)}
    told = lost_finding(feed, account, gone.offsets, gone.code, evidence)
    why = " ".join(f"{path}: {reason}" for path, reason in gone.not_asked.items())
    return foreseen(
        replace(
            told,
            verdict=Verdict.UNKNOWN,
            cause=f"{told.cause} But files that may hold them could not be asked: {why}",
            next_step="The finding about each of these directories (U1) says what ends this.",
        )
    )


def _claim_evidence(cut: CutClaim) -> Mapping[str, object]:
    batch = {} if is_foreseen(cut.batch_id) else of_batch(cut.batch_id)
    return {**batch, **of_kept(cut.kept)}
