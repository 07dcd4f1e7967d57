"""U1, could not tell: a witness did not answer, so all that it would have said is unknown.

What could not be asked changes nothing that is on record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import file_in, of_topic, path_in
from tallystick.domain.rules.file_findings import FileRows, finding_at_path, findings_of_file
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

_WITNESSES: Final = {Level.L1: "broker", Level.L2: "storage", Level.L3: "landed rows"}


def _its_witness(found: Finding) -> str:
    if file_in(found.evidence):
        return its_file(found)
    return found.subject or f"brokers of topic {found.topic}"


U1: Final = Rule(
    code=FindingCode.COULD_NOT_TELL,
    kind=RuleClass.STALLED,
    compares="the witnesses' answers against what was asked",
    endings={
        Level.L1: Ending.BROKER,
        Level.L2: Ending.LISTING,
        Level.L3: Ending.FULL_READ,
        Level.L4: Ending.BROKER,
    },
    verdicts=(Verdict.UNKNOWN,),
    not_when="every witness answered, and the broker for every partition",
    remedy="mend the witness and run again",
    one_cause=_its_witness,
    mending=Mending.LAND_AGAIN_IF_NAMED,
    traits={Trait.SILENCE, Trait.LACKS_WITNESS, Trait.OF_RUNS, Trait.DOUBTS_FILE},
)


def unheard_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions of which the broker said nothing: unknown as long as it lasts; others go on."""
    leaderless = (
        Finding(
            rule=U1,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            cause=(
                "no leader can say how far this partition may be read: it has none, or a new one"
                " waits for its replicas."
            ),
            next_step="Bring its brokers back; the next run lands what has piled up.",
            evidence=of_topic(snapshot.topic_id),
        )
        for partition in sorted(snapshot.leaderless)
    )
    unlisted = (_unlisted(feed, generations[each], snapshot) for each in sorted(snapshot.unlisted))
    return (*leaderless, *unlisted)


def _unlisted(feed: str, account: GenerationAccount, snapshot: BrokerSnapshot) -> Finding:
    unread = offset_range(account.partition, account.frontier, account.last_seen_until)
    seen = (
        f"it was seen to reach offset {unread.until_offset}, and is landed up to"
        f" {unread.from_offset}"
        if unread
        else f"all that was seen of it, up to offset {account.last_seen_until}, is accounted for"
    )
    return finding(
        feed,
        account,
        unread,
        U1,
        level=Level.L1,
        cause=f"the broker does not list this partition any more, under the same topic id; {seen}.",
        next_step=(
            "A topic never loses a partition, so a broker lags behind: compare what each of them"
            f" says (kafka-topics.sh --describe --topic {snapshot.topic}). The look that shows the"
            " partition again ends this."
        ),
        evidence={**of_topic(snapshot.topic_id), "last_seen_until": account.last_seen_until},
    )


def could_not_tell(
    feed: str,
    topic: str,
    level: Level,
    *,
    what: str,
    reason: str,
    seen_at: datetime,
    remedy: str = "",
) -> Finding:
    """A witness did not answer: everything it would have said is unknown.

    `remedy` is for what waiting alone does not mend.
    """
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=level,
        feed=feed,
        topic=topic,
        cause=f"{what} could not be asked: {reason}",
        next_step=remedy or f"Run again when it answers: tallystick reconcile {feed}",
        evidence={"seen_at": seen_at.isoformat()},
        subject=_WITNESSES[level],
    )


def could_not_compare(feed: str, topic: str, reason: str) -> Finding:
    """The second reader, or what it is compared with, gave no answer."""
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L4,
        feed=feed,
        topic=topic,
        cause=f"the second reader could not compare: {reason}",
        next_step=f"Run again when it answers: tallystick reconcile {feed} --level 4",
        subject="second reader",
    )


def unread_file(plan: BatchPlan, file: LandedFile, path: str, now: StoredFile) -> Iterator[Finding]:
    """A committed file that is there, and whose checksum nobody could tell, or compare."""
    if now.trouble is None or (now.is_stored_anew and now.length_bytes != file.length_bytes):
        return iter(())
    if now.is_stored_anew:
        cause = f"{path} is there, and its bytes are not compared yet: {now.trouble}."
        next_step = f"Let them be read: tallystick reconcile {plan.feed} --level 3"
    else:
        cause = f"{path} is there and can't be read: {now.trouble}"
        next_step = (
            "Bring its blocks back (hdfs fsck); if they are lost, name this finding's number to"
            f" tallystick repair {plan.feed}"
        )
    return findings_of_file(
        plan,
        file,
        U1,
        cause=cause,
        next_step=next_step,
        evidence={"length_bytes": now.length_bytes, "said": now.trouble},
    )


def unread_rows(rows: FileRows, reason: str) -> Finding:
    """A committed file that could not be read in full, which proves nothing about it."""
    return _not_proven(rows, "could not be read, which proves nothing about it", reason)


def read_of_unknown_file(rows: FileRows, reason: str) -> Finding:
    """Rows that were read in full, nobody can tell of which file."""
    doubt = "was read, but nobody can tell if it is the file that was committed"
    return _not_proven(rows, doubt, reason)


def _not_proven(rows: FileRows, doubt: str, reason: str) -> Finding:
    return rows.finding(
        U1,
        Verdict.UNKNOWN,
        cause=f"{rows.path} {doubt}: {reason}.",
        next_step=f"Read again when it answers: tallystick reconcile {rows.plan.feed} --level 3",
        evidence={"said": reason},
    )


def could_not_scrub(feed: str, topic: str, batch_ids: Sequence[BatchId], reason: str) -> Finding:
    """Batches that nobody has read in full: the engine, or storage as a whole, gave no answer."""
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L3,
        feed=feed,
        topic=topic,
        cause=f"{len(batch_ids)} batch(es) could not be read in full: {reason}",
        next_step=f"Run again when it answers: tallystick reconcile {feed} --level 3",
        evidence={"batches": list(batch_ids), "reason": reason},
        subject="scrub",
    )


def unlisted(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that could not be listed, each with the reason: what they hold is unknown."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            path,
            U1,
            cause=f"{path} could not be listed: {reason}",
            next_step=f"Let our user read it, then: tallystick reconcile {feed}",
            evidence={"path": path, "said": reason},
        )
        for path, reason in sorted(refused.items())
    )


def is_unlisted(found: Finding) -> bool:
    """True for a finding about a directory that could not be listed."""
    is_of_storage = found.rule == U1 and found.level is Level.L2
    return is_of_storage and path_in(found.evidence) is not None


def unread_strays(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Strays of which nobody could tell what they hold, or if committed files hold that too."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            each.path,
            U1,
            cause=(
                f"nobody can tell which committed rows are in the stray file {each.path} too:"
                f" {each.trouble}"
            ),
            next_step=f"Mend what the reason names, then: tallystick reconcile {feed}",
            evidence={"stray": each.path, "said": each.trouble},
        )
        for each in strays
        if each.trouble is not None
    )


def unread_feeds(feed: str, topic: str, unread: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that may be another feed's, each with the reason why nobody can tell."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            directory,
            U1,
            cause=f"nobody can tell if another feed lands in {directory}: {reason}",
            next_step=(
                f"Let our user read the manifests below it, then: tallystick reconcile {feed}"
            ),
            evidence={"directory": directory, "said": reason},
        )
        for directory, reason in sorted(unread.items())
    )


def unread_manifests(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Published directories whose manifest could not be read, each with the reason."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            manifest,
            U1,
            cause=f"{manifest} could not be read: {reason}",
            next_step=(
                f"Let our user read it, then: tallystick reconcile {feed}. If its blocks are"
                f" lost, delete the file: tallystick repair {feed} writes it anew after a"
                " reconcile."
            ),
            evidence={"manifest": manifest, "said": reason},
        )
        for each, reason in refused.items()
        for manifest in [f"{each}/{MANIFEST_NAME}"]
    )
