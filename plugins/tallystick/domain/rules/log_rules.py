"""The log against what the ledger holds of it: expired, purged, cut, re-created (A1 to A5).

1. What a plan recorded stays as it was stated then: today's bounds can't tell a cut any more.
2. A log that can't be judged is UNKNOWN, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import UNKNOWN, Sameness
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import (
    CutClaim,
    EndedGeneration,
    LogChanges,
    LostRange,
    Observation,
    OpenedGeneration,
)
from tallystick.domain.rules.a1_expired import A1
from tallystick.domain.rules.a4_overwritten import A4
from tallystick.domain.rules.a5_topic_recreated import A5
from tallystick.domain.rules.findings import Finding, FindingCode, Level, finding, foreseen, kept_in
from tallystick.domain.rules.registry import RULE_OF

OF_LOST: Final = "recorded as lost"
"""The subject of findings about landed rows that a repair could not land again: the same offsets
may be told of for their file, too."""
_ACCEPT: Final = "Two people may accept it: ./tallystick waive --help"


def lost_finding(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    code: str,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """What a range recorded as lost means: produced, and to be had nowhere any more."""
    causes = {
        FindingCode.EXPIRED: "the log start passed these offsets before they were read",
        FindingCode.PURGED: (
            "these offsets were deleted on purpose before they were read: the log begins within a"
            " batch, and retention deletes whole segments"
        ),
        FindingCode.TOPIC_RECREATED: "the topic was re-created before these offsets were read",
        FindingCode.COMMITTED_FILE_MISSING: (
            "the file with these rows is gone, and the log had them no more when a repair took its"
            " place"
        ),
        FindingCode.UNREADABLE_RECORD: "two people gave this record up, which Spark could not read",
    }
    against_more = {
        FindingCode.EXPIRED: (
            " Land more often, or lengthen retention.ms, and tell the producers' owners."
        ),
        FindingCode.PURGED: " Find out who deleted them, and why.",
        FindingCode.TOPIC_RECREATED: " Find out who re-created the topic, and why.",
    }
    kind = FindingCode(code)
    was_landed = kind is FindingCode.COMMITTED_FILE_MISSING
    was_there = kind is FindingCode.UNREADABLE_RECORD
    kept = kept_in(evidence)
    cause = causes.get(kind, "these offsets can be read nowhere any more")
    found = finding(
        feed,
        account,
        offsets,
        RULE_OF[kind],
        Verdict.UNKNOWN if was_there else Verdict.PROVEN_LOSS,
        level=Level.L0 if was_there else Level.L1,
        cause=(
            f"{cause}, or before what was read was proven."
            if kept and not (was_landed or was_there)
            else f"{cause}."
        ),
        next_step=(
            f"{kept}Nothing can bring them back from this topic. Tell who reads them. {_ACCEPT}"
            if was_landed
            else f"{kept}Nothing can bring them back from this topic; landing goes on after them."
            f"{against_more.get(kind, '')} {_ACCEPT}"
        ),
        evidence=evidence,
    )
    return replace(found, subject=OF_LOST) if was_landed else found


def change_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the changes that a snapshot forces mean for the feed."""
    by_id = {each.generation_id: each for each in generations.values()}
    gone = [(each.generation_id, each.offsets, each.code, each.evidence) for each in changes.lost]
    gone += [
        (each.generation_id, each.offsets, each.code, _claim_evidence(each))
        for each in changes.cuts
        if each.becomes == "lost"
    ]
    lost = [
        lost_finding(feed, by_id[generation_id], offsets, code, evidence)
        for generation_id, offsets, code, evidence in gone
    ]
    stopped = [
        stopped_finding(feed, by_id[each.generation_id], seen, each) for each in changes.stopped
    ]
    closed = [
        _recreated(feed, by_id[each.generation_id], each, seen, is_waiting=each in changes.waiting)
        for each in (*changes.closed, *changes.waiting)
    ]
    not_lost = [_not_lost(feed, by_id[each.generation_id], each) for each in changes.not_lost]
    # Where the feed itself begins, the start policy has said so, and nothing before it is wanted.
    begun = [
        _unseen_beginning(feed, each)
        for each in (changes.opened if generations else ())
        if each.first_offset > 0
    ]
    return (*lost, *not_lost, *stopped, *closed, *begun, *_doubted(feed, generations, seen))


def _not_lost(feed: str, account: GenerationAccount, gone: LostRange) -> Finding:
    """What the log has no more, as long as files that may hold it could not be asked.

    No plan records it, so it is as foreseen: a look that could ask says what became of it.
    """
    told = lost_finding(feed, account, gone.offsets, gone.code, gone.evidence)
    not_asked = gone.evidence["not_asked"]
    why = " ".join(f"{path}: {reason}" for path, reason in not_asked.items())  # type: ignore[attr-defined]
    return foreseen(
        replace(
            told,
            verdict=Verdict.UNKNOWN,
            cause=f"{told.cause} But files that may hold them could not be asked: {why}",
            next_step="The finding about each of these directories (U1) says what ends this.",
        )
    )


def _recreated(
    feed: str,
    account: GenerationAccount,
    ended: EndedGeneration,
    seen: Observation,
    *,
    is_waiting: bool,
) -> Finding:
    """What nobody saw of a log that is over."""
    waits = (
        " Attempts may hold rows of the old log that are not landed yet; nothing of the new log is"
        " planned before all of them could be asked."
    )
    return finding(
        feed,
        account,
        None,
        A5,
        Verdict.UNKNOWN,
        level=Level.L1,
        cause=(
            f"{ended.reason}: what was produced at and after offset {account.last_seen_until}"
            f" before that is not known.{waits if is_waiting else ''}"
        ),
        next_step="Ask who re-created the topic; the new log lands in a directory of its own.",
        evidence={
            "topic_id_now": seen.snapshot.topic_id,
            **({"is_waiting": True} if is_waiting else {}),
        },
    )


def _claim_evidence(cut: CutClaim) -> Mapping[str, object]:
    kept = {"kept": list(cut.kept)} if cut.kept else {}
    return {"batch": cut.batch_id, **kept}


def foreseen_findings(
    feed: str, generations: Mapping[int, GenerationAccount], changes: LogChanges, seen: Observation
) -> tuple[Finding, ...]:
    """What the next plan will find, as it is told before that plan has recorded it."""
    return tuple(foreseen(each) for each in change_findings(feed, generations, changes, seen))


def _unseen_beginning(feed: str, opened: OpenedGeneration) -> Finding:
    """A log that began above offset 0 before the feed first saw it: a new log begins at 0."""
    return finding(
        feed,
        opened.account(GenerationId(-1)),
        OffsetRange(opened.partition, 0, opened.first_offset),
        A1,
        Verdict.UNKNOWN,
        level=Level.L1,
        cause=(
            f"{opened.reason}, and when it was first looked at, its log began at offset"
            f" {opened.first_offset} already: what was below that, nobody has seen."
        ),
        next_step=(
            "Ask what was produced to it before; landing goes on after it."
            " Lengthen retention.ms, or land soon after partitions or topics are made."
            f" {_ACCEPT}"
        ),
        evidence={"log_start_offset": opened.first_offset, "topic_id": opened.topic_id},
    )


def stopped_finding(
    feed: str,
    account: GenerationAccount,
    seen: Observation,
    stopped: EndedGeneration,
) -> Finding:
    """A partition whose log was cut: it stops, all others go on.

    Where the log has grown since, the leader epochs say where it was cut; without them all that is
    known is that the last landed record was.
    """
    partition, code = account.partition.partition, stopped.code
    bounds, cut_at = (
        seen.snapshot.partitions.get(partition),
        seen.logs.get(partition, UNKNOWN).cut_at,
    )
    is_visible = code is FindingCode.TRUNCATED and bounds is not None
    until = account.readable_before
    ends = [bounds.high_watermark] if is_visible and bounds else []
    from_offset = min([*ends, *([] if cut_at is None else [cut_at])], default=None)
    if from_offset is None and account.anchor:
        from_offset = account.anchor.offset
    interval = (
        OffsetRange(account.partition, from_offset, until)
        if from_offset is not None and from_offset < until
        else None
    )
    evidence = {
        "reason": stopped.reason,
        "landed_until": account.frontier,
        # Below it the log is as it was, by its epochs; not named where they can't tell.
        **({} if cut_at is None else {"cut_at": cut_at}),
        **({"kept": list(stopped.kept)} if stopped.kept else {}),
    }
    return finding(
        feed,
        account,
        interval,
        RULE_OF[code],
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=f"the log was cut: {stopped.reason}.",
        next_step=(
            f"{kept_in(evidence)}This partition has stopped, all others go on. Its landed rows are"
            " kept. When you know what happened, name this finding:"
            f" ./tallystick repair {feed} NUMBER"
        ),
        evidence=evidence,
    )


def has_lost_unlanded(cut: Finding) -> bool:
    """True where offsets were cut that had not been landed: no new generation brings them back."""
    landed_until = cut.evidence.get("landed_until")
    if not isinstance(landed_until, int) or cut.until_offset is None:
        return False
    return cut.until_offset > landed_until


def _doubted(
    feed: str, generations: Mapping[int, GenerationAccount], seen: Observation
) -> Iterator[Finding]:
    """Logs that no witness can judge: landing goes on under a new one, and the doubt stays.

    Not where nothing was landed and all that was seen has expired: what is lost is told as that.
    """
    for partition, check in sorted(seen.logs.items()):
        if check.sameness is not Sameness.UNKNOWN:
            continue
        account, bounds = generations[partition], seen.snapshot.partitions[partition]
        if account.read_until is None and bounds.log_start_offset >= account.last_seen_until:
            continue
        yield finding(
            feed,
            account,
            None,
            A4,
            Verdict.UNKNOWN,
            level=Level.L1,
            cause=(
                f"nobody can tell if the log was cut below offset {account.last_seen_until}: the"
                " broker has forgotten the leader epoch in which it was seen to reach there, and"
                " the last landed record is gone."
            ),
            next_step=(
                "Look at the topic's leader changes in the broker's log. If none of them was"
                f" unclean, two people may accept this. {_ACCEPT}"
            ),
            evidence={
                "seen_until": account.last_seen_until,
                "seen_epoch": account.seen_epoch,
                "log_start_offset": bounds.log_start_offset,
            },
        )


def recorded_stops(
    generations: Mapping[int, GenerationAccount], recorded: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The findings with which partitions stopped that are stopped still, as they were stated then.

    Today's bounds can't tell any more where the log was cut: it may have grown since.
    """
    stopped = {
        (partition, account.ordinal)
        for partition, account in generations.items()
        if account.state is GenerationState.STOPPED
    }
    return tuple(
        each
        for each in recorded
        if each.code in (FindingCode.TRUNCATED, FindingCode.OVERWRITTEN)
        and each.verdict is Verdict.PROVEN_LOSS
        and not each.is_foreseen
        and (each.partition, each.generation) in stopped
    )


def recorded_unknown_tails(recorded: Sequence[Finding]) -> tuple[Finding, ...]:
    """What nobody saw of logs that were re-created: unknown for ever, until a person waives it."""
    return tuple(
        each
        for each in recorded
        if each.code is FindingCode.TOPIC_RECREATED
        and each.verdict is Verdict.UNKNOWN
        and not each.is_foreseen
    )
