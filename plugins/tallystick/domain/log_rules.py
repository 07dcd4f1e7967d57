"""The log against what the ledger holds of it: expired, purged, cut, re-created (A1 to A5).

1. What a plan recorded stays as it was stated then: today's bounds can't tell a cut any more.
2. An anchor that can't be judged is UNKNOWN, never an empty answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tallystick.domain.findings import Finding, FindingCode, Level, finding
from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.identities import GenerationId
from tallystick.domain.log_changes import AnchorCheck, LogChanges, Observation, OpenedGeneration
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.states import Verdict

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
        FindingCode.RECREATED: "the topic was re-created before these offsets were read",
        FindingCode.PHANTOM_COMMIT: (
            "the file with these rows is gone, and the log had them no more when a repair took its"
            " place"
        ),
    }
    against_more = {
        FindingCode.EXPIRED: (
            " Land more often, or lengthen retention.ms, and tell the producers' owners."
        ),
        FindingCode.PURGED: " Find out who deleted them, and why.",
        FindingCode.RECREATED: " Find out who re-created the topic, and why.",
    }
    kind = FindingCode(code)
    was_landed = kind is FindingCode.PHANTOM_COMMIT
    found = finding(
        feed,
        account,
        offsets,
        kind,
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=causes.get(kind, "these offsets can be read nowhere any more") + ".",
        next_step=(
            f"Nothing can bring them back from this topic. Tell who reads them. {_ACCEPT}"
            if was_landed
            else "Nothing can bring them back from this topic; landing goes on after them."
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
        (each.generation_id, each.offsets, each.code, {"batch": each.batch_id})
        for each in changes.cuts
        if each.becomes == "lost"
    ]
    lost = [
        lost_finding(feed, by_id[generation_id], offsets, code, evidence)
        for generation_id, offsets, code, evidence in gone
    ]
    stopped = [
        stopped_finding(feed, by_id[each.generation_id], seen, each.code, each.reason)
        for each in changes.stopped
    ]
    closed = [
        finding(
            feed,
            by_id[each.generation_id],
            None,
            FindingCode.RECREATED,
            Verdict.UNKNOWN,
            level=Level.L1,
            cause=(
                f"{each.reason}: what was produced at and after offset"
                f" {by_id[each.generation_id].last_seen_until} before that is not known."
            ),
            next_step="Ask who re-created the topic; the new log lands in a directory of its own.",
            evidence={"topic_id_now": seen.snapshot.topic_id},
        )
        for each in changes.closed
    ]
    # Where the feed itself begins, the start policy has said so, and nothing before it is wanted.
    begun = [
        _unseen_beginning(feed, each)
        for each in (changes.opened if generations else ())
        if each.first_offset > 0
    ]
    return (*lost, *stopped, *closed, *begun)


def _unseen_beginning(feed: str, opened: OpenedGeneration) -> Finding:
    """A log that began above offset 0 before the feed first saw it: a new log begins at 0."""
    return finding(
        feed,
        opened.account(GenerationId(-1)),
        OffsetRange(opened.partition, 0, opened.first_offset),
        FindingCode.EXPIRED,
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
    code: FindingCode,
    reason: str,
) -> Finding:
    """A partition whose log was cut: it stops, all others go on.

    Where the log has grown since, the leader epochs say where it was cut; without them all that is
    known is that the last landed record was.
    """
    partition = account.partition.partition
    bounds, cut_at = seen.snapshot.partitions.get(partition), seen.cut_at.get(partition)
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
    return finding(
        feed,
        account,
        interval,
        code,
        Verdict.PROVEN_LOSS,
        level=Level.L1,
        cause=f"the log was cut: {reason}.",
        next_step=(
            "This partition has stopped, all others go on. Its landed rows are kept."
            f" When you know what happened, name this finding: ./tallystick repair {feed} NUMBER"
        ),
        evidence={"reason": reason, "landed_until": account.frontier},
    )


def has_lost_unlanded(cut: Finding) -> bool:
    """True where offsets were cut that had not been landed: no new generation brings them back."""
    landed_until = cut.evidence.get("landed_until")
    if not isinstance(landed_until, int) or cut.until_offset is None:
        return False
    return cut.until_offset > landed_until


def standing_findings(
    feed: str, generations: Mapping[int, GenerationAccount], seen: Observation
) -> tuple[Finding, ...]:
    """Anchors that can't be judged: unknown as long as it lasts."""
    return tuple(
        finding(
            feed,
            account,
            None,
            FindingCode.OVERWRITTEN,
            Verdict.UNKNOWN,
            level=Level.L1,
            cause=(
                f"the last landed record, offset {account.anchor.offset}, is gone, and the"
                " leader epochs do not say if the log was cut."
            ),
            next_step="Nothing, if the topic was not touched; look at its leader changes.",
        )
        for partition, account in sorted(generations.items())
        if account.state is not GenerationState.STOPPED
        and seen.anchors.get(partition) is AnchorCheck.GONE
        and account.anchor
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
        and (each.partition, each.generation) in stopped
    )


def recorded_unknown_tails(recorded: Sequence[Finding]) -> tuple[Finding, ...]:
    """What nobody saw of logs that were re-created: unknown for ever, until a person waives it."""
    return tuple(
        each
        for each in recorded
        if each.code is FindingCode.RECREATED and each.verdict is Verdict.UNKNOWN
    )
