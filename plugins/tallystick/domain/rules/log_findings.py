"""What the changes of a log are told as, and each recorded loss: by the rule of each (A1 to A5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import (
    EndedGeneration,
    LogChanges,
    LostRange,
    Observation,
)
from tallystick.domain.rules.a1_expired import unseen_beginning
from tallystick.domain.rules.a3_log_cut import cut_finding, doubted_logs
from tallystick.domain.rules.a5_topic_recreated import A5, unknown_tail
from tallystick.domain.rules.causes import ACCEPT, look_in_kept
from tallystick.domain.rules.evidence import of_batch, of_held, of_kept
from tallystick.domain.rules.findings import Finding, Place, finding, provisional
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.rule import Trait
from tallystick.domain.verdicts import Verdict


def change_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the changes that a snapshot forces mean for the feed."""
    by_id = {each.generation_id: each for each in generations.values()}
    gone = [(each.generation_id, each.offsets, each.code, each.evidence) for each in changes.lost]
    gone += [
        (
            each.generation_id,
            each.offsets,
            each.code,
            {**of_batch(each.batch_id), **of_kept(each.kept)},
        )
        for each in changes.cuts
        if each.becomes is RangeState.LOST
    ]
    lost = [
        lost_finding(feed, by_id[generation_id], offsets, code, evidence)
        for generation_id, offsets, code, evidence in gone
    ]
    stopped = [
        cut_finding(feed, by_id[each.generation_id].since_cut, seen, each)
        for each in (*changes.stopped, *changes.cut_again)
    ]
    closed = [
        unknown_tail(
            feed,
            by_id[each.generation_id],
            each.reason,
            topic_id_now=seen.snapshot.topic_id,
            is_waiting=is_waiting,
        )
        for ended, is_waiting in ((changes.closed, False), (changes.waiting, True))
        for each in ended
    ]
    held = [_held(feed, by_id[each.generation_id], each) for each in changes.held]
    begun = [
        unseen_beginning(feed, each.account(GenerationId(-1)))
        for each in changes.opened
        if each.begins_unseen
    ]
    return (*lost, *held, *stopped, *closed, *begun, *doubted_logs(feed, generations, seen))


def lost_finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    code: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """What a range recorded as lost means, by the code under which it was recorded."""
    rule, evidence = RULE_OF[FindingCode(code)], evidence or {}
    if rule.loss is None:
        raise ValueError(f"no range is recorded as lost under {code}")
    loss = rule.loss(evidence)
    return finding(
        rule,
        replace(Place.of_log(feed, account, offsets), subject=loss.subject),
        cause=loss.cause,
        next_step=f"{look_in_kept(evidence)}{loss.next_step} {ACCEPT}",
        evidence=evidence,
    )


def end_findings(
    feed: str, ended: Iterable[tuple[GenerationAccount, str, str]], recorded: Iterable[Finding]
) -> tuple[Finding, ...]:
    """What it means that these logs have ended: as it was stated then, where that stands.

    Today's bounds can't tell any more where a log was cut: it may have grown since. Where somebody
    has closed the finding, the log's own row tells what is left to tell.
    """
    told: defaultdict[tuple[object, ...], list[Finding]] = defaultdict(list)
    for each in recorded:
        if _tells_end(each):
            told[each.rule.code, each.partition, each.generation].append(each)
    return tuple(
        found
        for account, code, reason in ended
        for found in told[code, account.partition.partition, account.ordinal]
        or [_end_on_record(feed, account, code, reason)]
    )


def _tells_end(each: Finding) -> bool:
    verdict = Verdict.PROVEN_LOSS if each.rule.has(Trait.CUT) else Verdict.UNKNOWN
    is_end = each.rule.has(Trait.CUT) or each.rule == A5
    return is_end and each.verdict is verdict and not each.is_provisional


def _end_on_record(feed: str, account: GenerationAccount, code: str, reason: str) -> Finding:
    if code == A5.code:
        return unknown_tail(feed, account, reason)
    ended = EndedGeneration(account.generation_id, FindingCode(code), reason)
    return cut_finding(feed, account, None, ended)


def _held(feed: str, account: GenerationAccount, gone: LostRange) -> Finding:
    """What the log has no more, as long as files of attempts may hold it."""
    evidence = {**gone.evidence, **of_held(gone.held_in)}
    told = lost_finding(feed, account, gone.offsets, gone.code, evidence)
    why = " ".join(f"{path}: {reason}" for path, reason in gone.held_in.items())
    return provisional(
        replace(
            told,
            verdict=Verdict.UNKNOWN,
            cause=f"{told.cause} But attempts may hold them: {why}",
            next_step=(
                "Bring back what can't be read. The next run commits what it can prove of these"
                " files, and gives the rest up, before it plans. If nobody can read them again,"
                f" give them up by this finding's number: tallystick repair {feed} NUMBER. They are"
                " kept in quarantine, and the next plan names the place with what is lost."
            ),
        )
    )
